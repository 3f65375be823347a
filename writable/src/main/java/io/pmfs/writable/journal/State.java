package io.pmfs.writable.journal;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.table.StateException;
import io.pmfs.table.TableStore;
import io.pmfs.table.TableStore.Table;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/**
 * The tables of a writable mount, their cached part in memory, and the lock for changes. Every
 * change is one {@link Update}. While the disk fails, every call fails with EIO.
 */
public final class State implements AutoCloseable {
  private static final int CACHED_INODES = 30_000;
  private static final int KEPT_RESULTS = 16_384;
  private static final int RESERVED_NUMBERS = 16_384;
  private static final long FORMAT_NUMBER = 2;
  private static final byte[] FORMAT = fact("format");
  private static final byte[] NEXT_NUMBER = fact("next");
  private static final byte[] COMMITTED = fact("committed");
  private static final byte[] SESSION = fact("session");

  // LOCK ORDER: OutputFile.lock < State.lock < Listing. No call to the source while holding it.
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final Held held =
      lock::unlock; // Allocated now: once the lock is held, memory may be short.
  private final TableStore store;
  private final InstantSource clock;
  private final Cache<Long, Inode> inodes =
      CacheBuilder.newBuilder().maximumSize(CACHED_INODES).concurrencyLevel(4).build();
  private final ArrayDeque<Long> recorded = new ArrayDeque<>(); // GUARDED_BY(lock)
  private Map<Long, Long> former = Map.of(); // GUARDED_BY(lock)
  private long next; // GUARDED_BY(lock)
  private long reserved; // GUARDED_BY(lock)
  private int openings; // GUARDED_BY(lock)
  private long wakeUps; // GUARDED_BY(lock)

  /** Whether the cached values may differ from the tables, and must be loaded again. */
  private boolean isUncertain; // GUARDED_BY(lock)

  private final Deferred deferred = new Deferred();
  private final Waiting waiting = new Waiting();
  private volatile Runnable afterSync = () -> {};
  private volatile long head;
  private volatile long committed;

  /**
   * Takes ownership of the tables.
   *
   * @param clock dates the records
   */
  public State(TableStore store, InstantSource clock) throws FsException {
    this.store = store;
    this.clock = clock;
    openings = store.openings();
    load();
    countWaiting();
  }

  public InstantSource clock() {
    return clock;
  }

  public Instant now() {
    return clock.instant();
  }

  public long millis() {
    return clock.millis();
  }

  private void load() throws FsException {
    checkFormat();
    byte[] there = get(Tables.FACTS, NEXT_NUMBER);
    next = Math.max(next, there == null ? Inode.ROOT + 1 : Tables.first(there));
    reserved = next;
    byte[] done = get(Tables.FACTS, COMMITTED);
    committed = done == null ? 0 : Tables.first(done);
    long[] last = {committed};
    // Changes are numbered without gaps, so the last one is found by binary search.
    long step = 1L << 40;
    while (step > 0) {
      long probe = last[0] + step;
      if (get(Tables.JOURNAL, Tables.key(probe)) != null) {
        last[0] = probe;
      } else {
        step >>= 1;
      }
    }
    head = last[0];
    loadDeferred();
  }

  private void loadDeferred() throws FsException {
    Map<Long, byte[]> rows = new LinkedHashMap<>();
    scan(
        Tables.DEFERRED,
        new byte[0],
        (key, value) -> {
          rows.put(Tables.first(key), value);
          return true;
        });
    List<Deferred.Entry> entries = new ArrayList<>();
    for (Map.Entry<Long, byte[]> row : rows.entrySet()) {
      Change change = change(row.getKey());
      if (change != null) {
        boolean isRefused = row.getValue().length > 0;
        entries.add(new Deferred.Entry(change, isRefused ? Refusal.decode(row.getValue()) : null));
      }
    }
    deferred.set(entries);
  }

  /** Rejects a state of another version: its contents may exist nowhere else. */
  private void checkFormat() throws FsException {
    byte[] there = get(Tables.FACTS, FORMAT);
    if (there == null) {
      Update update = update();
      update.put(Tables.FACTS, FORMAT, Tables.key(FORMAT_NUMBER));
      update.commit();
    } else if (Tables.first(there) != FORMAT_NUMBER) {
      throw new FsException(
          Errno.EIO,
          "the state has format %d; this pmfs knows %d"
              .formatted(Tables.first(there), FORMAT_NUMBER));
    }
  }

  /**
   * Forgets the requests of other kernel sessions. Returns whether this is a new session.
   *
   * @param isHere whether a request number is from this node's kernel
   */
  public boolean beginSession(String session, boolean resumed, LongPredicate isHere)
      throws FsException {
    lock.lock();
    try {
      byte[] before = get(Tables.FACTS, SESSION);
      byte[] now = session.getBytes(StandardCharsets.UTF_8);
      boolean goesOn = resumed && before != null && Arrays.equals(before, now);
      Map<Long, Long> results = new LinkedHashMap<>();
      scan(
          Tables.RESULTS,
          new byte[0],
          (key, value) -> {
            results.put(Tables.first(key), Tables.first(value));
            return true;
          });
      Update update = update();
      if (!goesOn) {
        for (long unique : results.keySet()) {
          if (isHere.test(unique)) {
            update.delete(Tables.RESULTS, Tables.key(unique));
          }
        }
        results.keySet().removeIf(isHere::test);
      }
      former = new HashMap<>(results);
      recorded.addAll(results.keySet());
      update.put(Tables.FACTS, SESSION, now);
      update.commit();
      return !goesOn;
    } finally {
      lock.unlock();
    }
  }

  private static byte[] fact(String name) {
    return name.getBytes(StandardCharsets.US_ASCII);
  }

  // ---- the lock

  /** Takes the lock: only the calling thread changes the state until it is released. */
  public Held hold() throws FsException {
    lock.lock();
    try {
      int now = store.openings();
      isUncertain |= now != openings; // until they were read, even if that fails this time
      openings = now;
      if (isUncertain) {
        inodes.invalidateAll();
        load();
        isUncertain = false;
      }
      return held;
    } catch (FsException | RuntimeException | Error e) {
      lock.unlock();
      throw e;
    }
  }

  /** The scope in which a thread holds the lock. */
  public interface Held extends AutoCloseable {
    @Override
    void close();
  }

  /** Waits for the next change, or for some milliseconds. The caller must not hold the lock. */
  public void awaitChange(long headThen, long committedThen, long millis)
      throws InterruptedException {
    lock.lock();
    try {
      long woken = wakeUps;
      long left = TimeUnit.MILLISECONDS.toNanos(millis);
      while (left > 0 && head == headThen && committed == committedThen && wakeUps == woken) {
        left = changed.awaitNanos(left);
      }
    } finally {
      lock.unlock();
    }
  }

  public void wake() {
    lock.lock();
    try {
      wakeUps++;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  // ---- reading

  /** Sequence number of the last change in the journal. */
  public long head() {
    return head;
  }

  /** The last change that the committer has handled: the source has these, except deferred ones. */
  public long committed() {
    return committed;
  }

  /** The changes up to the committed one that the source lacks. */
  public Deferred deferred() {
    return deferred;
  }

  public Waiting waiting() {
    return waiting;
  }

  private void countWaiting() throws FsException {
    scan(
        Tables.JOURNAL,
        new byte[0],
        (key, value) -> {
          if (ChangeRow.decode(Tables.first(key), value) instanceof Change.Content content) {
            waiting.add(content.size());
          }
          return true;
        });
  }

  public long waitingCount() {
    lock.lock(); // A change that is being deferred is counted once.
    try {
      return head - committed + deferred.size();
    } finally {
      lock.unlock();
    }
  }

  /** Whether the source lacks a change; 0 stands for none. */
  public boolean isPending(long sequence) {
    return sequence > committed || deferred.contains(sequence);
  }

  /** Whether the source lacks a change of a node or of a name in it. */
  public boolean isPending(Inode inode) {
    return inode.change() > committed
        || inode.contentChange() > committed
        || deferred.concerns(inode.number());
  }

  /** The source's progress at a moment. */
  public record Progress(long committed, long settled) {}

  public Progress progress() {
    return new Progress(committed, deferred.settledCount());
  }

  /** Whether the source lacks changes of a node, or others are being made. */
  public boolean isBusy(Inode inode) {
    return isPending(inode) || inode.is(Inode.WRITING) || !inode.is(Inode.ANNOUNCED);
  }

  /**
   * Whether the source lacked changes of a node at that moment: its answer may be older than the
   * node.
   */
  public boolean isBusy(Inode inode, Progress then) {
    return inode.change() > then.committed()
        || inode.contentChange() > then.committed()
        || deferred.settledCount() != then.settled()
        || isBusy(inode);
  }

  public byte @Nullable [] get(Table table, byte[] key) throws FsException {
    try {
      return store.get(table, key);
    } catch (StateException e) {
      throw failed(e);
    }
  }

  public void scan(Table table, byte[] from, TableStore.Visitor visitor) throws FsException {
    try {
      store.scan(table, from, visitor);
    } catch (StateException e) {
      throw failed(e);
    }
  }

  public void scanGroup(Table table, byte[] from, TableStore.Visitor visitor) throws FsException {
    try {
      store.scanGroup(table, from, visitor);
    } catch (StateException e) {
      throw failed(e);
    }
  }

  private static FsException failed(StateException e) {
    return new FsException(Errno.EIO, String.valueOf(e.getMessage()), e);
  }

  /** The node with this number; null if unknown. */
  @Nullable
  public Inode find(long number) throws FsException {
    Inode cached = inodes.getIfPresent(number);
    if (cached != null) {
      return cached;
    }
    lock.lock();
    try {
      byte[] value = get(Tables.INODES, Tables.key(number));
      if (value == null) {
        return null;
      }
      Inode found = Inode.decode(number, value);
      inodes.put(number, found);
      return found;
    } finally {
      lock.unlock();
    }
  }

  /** The node with this number, which the kernel knows. */
  public Inode inode(long number) throws FsException {
    Inode found = find(number);
    if (found == null) {
      throw new FsException(Errno.ESTALE, "inode " + number);
    }
    return found;
  }

  @Nullable
  public NameRow name(long directory, FileName name) throws FsException {
    byte[] value = get(Tables.NAMES, Tables.nameKey(directory, name));
    return value == null ? null : NameRow.decode(value);
  }

  @Nullable
  public DataRow data(long number, long generation) throws FsException {
    byte[] value = get(Tables.DATA, Tables.key(number, generation));
    return value == null ? null : DataRow.decode(value);
  }

  /**
   * How many bytes the data file of a file being written has at least, unless a power failure took
   * its content; 1 also if the file was emptied and not synced since.
   */
  public long leastSize(long number) throws FsException {
    byte[] value = get(Tables.WRITING, Tables.key(number));
    return value == null || value.length == 0 ? 0 : Tables.first(value);
  }

  /**
   * A {@linkplain Update#newNumber number} of the time when a file was last begun to be written.
   */
  public long begun(long number) throws FsException {
    byte[] value = get(Tables.WRITING, Tables.key(number));
    return value == null || value.length < 2 * Long.BYTES ? 0 : Tables.second(value);
  }

  @Nullable
  public Change change(long sequence) throws FsException {
    byte[] value = get(Tables.JOURNAL, Tables.key(sequence));
    return value == null ? null : ChangeRow.decode(sequence, value);
  }

  /** At most this many changes after a sequence number. */
  public List<Change> changesAfter(long sequence, int count) throws FsException {
    List<Change> found = new ArrayList<>();
    if (sequence < head) {
      scan(
          Tables.JOURNAL,
          Tables.key(sequence + 1),
          (key, value) -> {
            found.add(ChangeRow.decode(Tables.first(key), value));
            return found.size() < count;
          });
    }
    return found;
  }

  /** The node that an earlier process created for this request; null if there is none. */
  @Nullable
  public Long result(long unique) {
    if (unique == 0) {
      return null;
    }
    lock.lock();
    try {
      return former.get(unique);
    } finally {
      lock.unlock();
    }
  }

  public void sync() throws FsException {
    try {
      store.sync();
    } catch (StateException e) {
      throw failed(e);
    }
    afterSync.run();
  }

  /** Sets a hook that runs after each sync of the tables, for tests of power failures. */
  public void afterSyncs(Runnable then) {
    afterSync = then;
  }

  /** Why nothing can be changed at the moment; null if it can. */
  @Nullable
  public String failure() {
    return store.failure();
  }

  /** Why nothing can be added now, although other changes are possible; null if it can. */
  @Nullable
  public String shortage() {
    return store.shortage();
  }

  /** The first number that this process will assign. */
  public long firstNumber() {
    lock.lock();
    try {
      return next;
    } finally {
      lock.unlock();
    }
  }

  // ---- changing

  /** Begins an update. The caller holds the lock until it is committed or dropped. */
  public Update update() {
    return new Update();
  }

  /**
   * Reserves the numbers below an end. This is synced before one is used: a data file that was not
   * synced may survive a power failure, and another file must not get it.
   */
  private void reserve(long end) throws FsException { // GUARDED_BY(lock)
    TableStore.Changes changes = new TableStore.Changes();
    changes.put(Tables.FACTS, NEXT_NUMBER, Tables.key(end));
    try {
      store.apply(changes);
    } catch (StateException e) {
      throw failed(e);
    }
    sync();
    reserved = end;
  }

  /** An atomic set of changes. */
  public final class Update {
    private final TableStore.Changes changes = new TableStore.Changes();
    private final Map<Long, Inode> changedInodes = new LinkedHashMap<>();
    private final List<Long> deletedInodes = new ArrayList<>();
    private final List<Runnable> afterwards = new ArrayList<>();
    private final List<Long> settled = new ArrayList<>();
    private final List<Deferred.Entry> passed = new ArrayList<>();

    private long lastSequence = head;
    private long committedThen = committed;
    private @Nullable Long unique;

    /** The node as this update leaves it. */
    public Inode inode(long number) throws FsException {
      Inode changed = changedInodes.get(number);
      return changed != null ? changed : State.this.inode(number);
    }

    @Nullable
    public Inode find(long number) throws FsException {
      Inode changed = changedInodes.get(number);
      return changed != null || deletedInodes.contains(number) ? changed : State.this.find(number);
    }

    public void put(Inode inode) {
      changedInodes.put(inode.number(), inode);
    }

    public void remove(long number) {
      changedInodes.remove(number);
      deletedInodes.add(number);
      changes.delete(Tables.INODES, Tables.key(number));
    }

    public void put(Table table, byte[] key, byte[] value) {
      changes.put(table, key, value);
    }

    public void delete(Table table, byte[] key) {
      changes.delete(table, key);
    }

    public void name(long directory, FileName name, NameRow row) {
      changes.put(Tables.NAMES, Tables.nameKey(directory, name), row.encode());
    }

    public void deleteName(long directory, FileName name) {
      changes.delete(Tables.NAMES, Tables.nameKey(directory, name));
    }

    public void data(long number, long generation, DataRow row) {
      changes.put(Tables.DATA, Tables.key(number, generation), row.encode());
    }

    /** Marks a file as being written; see {@link #leastSize} and {@link #begun}. */
    public void writing(long number, long leastSize, long begun) {
      changes.put(Tables.WRITING, Tables.key(number), Tables.key(leastSize, begun));
    }

    /** A number that no process assigns again, not even after a power failure. */
    public long newNumber() throws FsException {
      if (next >= reserved) {
        reserve(next + RESERVED_NUMBERS);
      }
      return next++;
    }

    /** Detaches an identity at the source from a node, unless another node has it by now. */
    public void deleteSource(Stat seen, long number) throws FsException {
      byte[] key = Tables.key(seen.device(), seen.inode());
      byte[] row = get(Tables.SOURCES, key);
      if (row != null && Tables.first(row) == number) {
        changes.delete(Tables.SOURCES, key);
      }
    }

    public long nextSequence() {
      return lastSequence + 1;
    }

    public void journal(Change change) {
      lastSequence++;
      assert change.sequence() == lastSequence;
      changes.put(Tables.JOURNAL, Tables.key(change.sequence()), ChangeRow.encode(change));
      if (change instanceof Change.Content content) {
        afterwards(() -> waiting.add(content.size()));
      }
    }

    /** A waiting change is replaced by another one. */
    public void replace(Change before, Change change) {
      if (before instanceof Change.Content earlier && change instanceof Change.Content later) {
        afterwards(
            () -> {
              waiting.remove(earlier.size());
              waiting.add(later.size());
            });
      }
      changes.put(Tables.JOURNAL, Tables.key(change.sequence()), ChangeRow.encode(change));
      Deferred.Entry entry = deferred.get(change.sequence());
      if (entry != null) {
        passed.add(new Deferred.Entry(change, entry.refusal()));
      }
    }

    /** Removes a change that the source has, or that was given up. */
    public void done(Change change) {
      byte[] key = Tables.key(change.sequence());
      changes.delete(Tables.JOURNAL, key);
      if (change instanceof Change.Content content) {
        afterwards(() -> waiting.remove(content.size()));
      }
      if (deferred.contains(change.sequence())) {
        changes.delete(Tables.DEFERRED, key);
        settled.add(change.sequence());
      }
    }

    /** Defers a change, so that others proceed without it. */
    public void defer(Change change, @Nullable Refusal refusal) {
      changes.put(
          Tables.DEFERRED,
          Tables.key(change.sequence()),
          refusal == null ? new byte[0] : refusal.encode());
      passed.add(new Deferred.Entry(change, refusal));
    }

    public void committed(long sequence) {
      if (sequence > committedThen) {
        committedThen = sequence;
        changes.put(Tables.FACTS, COMMITTED, Tables.key(sequence));
      }
    }

    /** Remembers what a request created, in case the next process gets the request again. */
    public void result(long request, long number) {
      if (request != 0) {
        unique = request;
        changes.put(Tables.RESULTS, Tables.key(request), Tables.key(number));
      }
    }

    /** Adds a task that runs after the commit, while the lock is still held. */
    public void afterwards(Runnable then) {
      afterwards.add(then);
    }

    /** Marks the update as one that adds something: these are refused first on a full disk. */
    public void add() {
      changes.add();
    }

    public boolean isEmpty() {
      return changes.isEmpty() && changedInodes.isEmpty() && passed.isEmpty();
    }

    public void commit() throws FsException {
      Long request = unique;
      boolean isFull = request != null && recorded.size() >= KEPT_RESULTS;
      if (isFull) {
        changes.delete(Tables.RESULTS, Tables.key(recorded.element()));
      }
      for (Inode inode : changedInodes.values()) {
        changes.put(Tables.INODES, Tables.key(inode.number()), inode.encode());
      }
      try {
        store.apply(changes);
      } catch (StateException e) {
        throw failed(e);
      } catch (RuntimeException | Error e) {
        isUncertain = true;
        throw e;
      }
      isUncertain = true;
      for (Inode inode : changedInodes.values()) {
        inodes.put(inode.number(), inode);
      }
      for (long number : deletedInodes) {
        if (!changedInodes.containsKey(number)) {
          inodes.invalidate(number);
        }
      }
      if (request != null) {
        if (isFull) {
          recorded.remove();
        }
        recorded.add(request);
      }
      boolean wakes = lastSequence != head || committedThen != committed || !settled.isEmpty();
      passed.forEach(deferred::put);
      settled.forEach(deferred::remove);
      head = lastSequence;
      committed = committedThen;
      for (Runnable then : afterwards) {
        then.run();
      }
      if (wakes) {
        changed.signalAll();
      }
      isUncertain = false;
    }
  }

  @Override
  public void close() {
    store.close();
  }
}
