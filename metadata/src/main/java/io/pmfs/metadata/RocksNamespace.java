package io.pmfs.metadata;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * A {@link Namespace} in RocksDB. All of it can be rebuilt: a directory that cannot be used may be
 * removed, and pmfs builds it again from the source.
 *
 * <p>Limits, whatever the size of the dataset: blocks, indexes, filters and write buffers together
 * take about {@code memoryBytes} (one block cache, to which the write buffers, at most half of it,
 * are charged; a writer waits when they are full); 512 open files; one flush and one compaction
 * thread; 64 MiB of write-ahead log; three log files of 1 MiB. An import holds one batch of 1024
 * entries and the entries that it found to be gone.
 *
 * <p>Writes go to the write-ahead log at once and survive a killed process. The start of a session
 * and its clean stop are synced and survive a power loss.
 */
public final class RocksNamespace implements Namespace {
  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
  private static final int MAX_DEPTH = 100_000;

  /**
   * While the state is not known, numbers are assigned from here on, above all numbers that the
   * state may contain.
   */
  private static final long UNRECORDED = 1L << 32;

  private static final int UNRECORDED_EACH_HOUR_SHIFT = 16;
  private static final Instant UNRECORDED_SINCE = Instant.parse("2026-01-01T00:00:00Z");

  private final StateDirectory directory;
  private final Database database;
  private final InodeNumbers numbers;
  private final long firstNumber;
  private final Lineage lineage = new Lineage(new SecureRandom());
  private final boolean stoppedCleanly;
  private final String bootId;
  private final Consumer<String> log;
  private volatile RecentInodes recent = new RecentInodes();
  private final UUID id;
  private volatile int opening;
  private volatile int session;

  /** The last opening according to the state; written while no other call runs. */
  private long recordedOpening;

  // Held from reading inodes to writing their changes, and from looking up a hard link to recording
  // it. LOCK ORDER: inodeUpdates < Database.use.
  private final ReentrantLock inodeUpdates = new ReentrantLock();
  private int imports; // GUARDED_BY(inodeUpdates)

  // By directory: entries that unfinished imports replaced, to be reported by the next import.
  private final Map<Long, List<DirectoryEntry>> replaced =
      new HashMap<>(); // GUARDED_BY(inodeUpdates)

  /**
   * Opens the namespace in a directory, or creates it there. Throws {@link NamespaceException} if
   * it belongs to another dataset or is already open. A namespace that is damaged or has another
   * format is set aside. If the directory cannot be written or read, names are kept in memory.
   *
   * @param source the identity of the dataset
   * @param memoryBytes at least 16 MiB
   * @param session the session's identity, since several processes may serve one session after
   *     another: if the last opening was of the same session, that session continues
   * @param numbers a file outside the directory, in which the session's next process finds the
   *     bound of the assigned inode numbers; null for none
   * @param log receives a line for each problem
   */
  public static RocksNamespace open(
      Path directory,
      String source,
      long memoryBytes,
      UUID session,
      @Nullable Path numbers,
      Consumer<String> log) {
    NumberMark mark = new NumberMark(numbers, log);
    return open(directory, source, memoryBytes, session, readBootId(), mark, log, Faults.NONE);
  }

  /** The same without log lines. */
  public static RocksNamespace open(Path directory, String source, long memoryBytes, UUID session) {
    return open(directory, source, memoryBytes, session, null, line -> {});
  }

  /** The same for a new session. */
  public static RocksNamespace open(Path directory, String source, long memoryBytes) {
    return open(directory, source, memoryBytes, UUID.randomUUID());
  }

  static RocksNamespace open(
      Path directory,
      String source,
      long memoryBytes,
      UUID session,
      String bootId,
      NumberMark mark,
      Consumer<String> log,
      Faults faults) {
    StateDirectory state = new StateDirectory(directory, source, memoryBytes, log, faults);
    return new RocksNamespace(
        directory.toString(), state, state.open(), memoryBytes, session, bootId, mark, log);
  }

  /** Empty if this machine does not provide it; then no stop counts as clean. */
  private static String readBootId() {
    try {
      return Files.readString(BOOT_ID).strip();
    } catch (IOException e) {
      return "";
    }
  }

  private RocksNamespace(
      String place,
      StateDirectory directory,
      StateDirectory.Found found,
      long memoryBytes,
      UUID id,
      String bootId,
      NumberMark mark,
      Consumer<String> log) {
    this.directory = directory;
    this.id = id;
    this.bootId = bootId;
    this.log = log;
    recordedOpening = found.opening();
    opening = Math.toIntExact(found.opening() + 1);
    FileName last = found.session();
    boolean goesOn = last != null && last.equals(openingOf(id, found.opening()));
    session = goesOn ? Math.toIntExact(found.sessionStart()) : opening;
    long first = found.store() == null ? unrecorded(Instant.now()) : found.next();
    firstNumber = Math.max(first, mark.read());
    stoppedCleanly = found.store() != null && isClean(found, bootId);
    database =
        new Database(place, found.store(), found.failure(), RocksFiles::openInMemory, memoryBytes);
    numbers = new InodeNumbers(database, mark, firstNumber);
    database.onChange(this::changed);
    if (found.failure() != null) {
      log.accept(unrecorded(found.failure()));
    } else {
      begin();
    }
  }

  private static long unrecorded(Instant now) {
    long hours = Math.max(0, Duration.between(UNRECORDED_SINCE, now).toHours());
    return UNRECORDED + (hours << UNRECORDED_EACH_HOUR_SHIFT);
  }

  private static String unrecorded(String failure) {
    return "the state: %s; names are kept in memory, and no copies are made until it can be written"
        .formatted(failure);
  }

  private static boolean isClean(StateDirectory.Found found, String bootId) {
    FileName boot = found.boot();
    return found.opening() == 0
        || (boot != null && !bootId.isEmpty() && boot.equals(FileName.of(bootId)));
  }

  /** Records the opening in the state; if that fails, continues in memory. */
  private void begin() {
    try {
      directory.takeBallast();
    } catch (IOException e) {
      log.accept("the state: no room for " + StateDirectory.BALLAST + ": " + e);
    }
    database.writeSynced(batch -> beginning(0).forEach(batch::add));
    if (database.isRecording()) {
      recordedOpening = opening;
    }
  }

  /** A session with its last opening: an opening by another pmfs since then ends the session. */
  private static FileName openingOf(UUID session, long opening) {
    return FileName.of(session + " " + opening);
  }

  private List<Change> beginning(long reserved) {
    return List.of(
        directory.superblock(),
        Change.put(Family.DEFAULT, Keys.OPENING, Values.number(opening)),
        Change.put(Family.DEFAULT, Keys.SESSION_ID, Values.bytes(openingOf(id, opening).raw())),
        Change.put(Family.DEFAULT, Keys.SESSION_START, Values.number(session)),
        Change.put(Family.DEFAULT, Keys.NEXT_NUMBER, Values.number(numbers.next() + reserved)),
        Change.delete(Family.DEFAULT, Keys.CLEAN_STOP));
  }

  /** Called while no other call runs. */
  private void changed(@Nullable StoreFailure failed) {
    recent = new RecentInodes();
    if (failed != null) {
      directory.releaseBallast();
      log.accept(unrecorded(String.valueOf(failed.getMessage())));
    }
  }

  @Override
  public int losses() {
    return database.losses();
  }

  @Override
  public @Nullable String failure() {
    return database.failure();
  }

  @Override
  public void recover() {
    if (database.isRecording()) {
      return;
    }
    try {
      directory.takeBallast();
    } catch (IOException e) {
      database.setFailure(e.toString());
      return;
    }
    database.replace(this::reopen);
    if (database.isRecording()) {
      log.accept("the state can be written again: names and copies are recorded");
    } else {
      directory.releaseBallast();
    }
  }

  /** Called while no other call runs. */
  private Database.Opened reopen(Overlay overlay, long lastChange, boolean isDamaged) {
    StateDirectory.Found found;
    try {
      if (isDamaged && !directory.setAside(directory.damage())) {
        return new Database.Opened(null, "the damaged state cannot be set aside", false);
      }
      found = directory.open();
    } catch (NamespaceException e) {
      return new Database.Opened(null, String.valueOf(e.getMessage()), false);
    }
    RocksStore store = found.store();
    boolean isOurs = found.opening() == recordedOpening;
    boolean isAnothers = !isOurs && !found.isNew();
    if (store == null) {
      return new Database.Opened(null, found.failure(), false);
    }
    // A disk that was repaired may have lost changes that were not synced. The overlay may record a
    // directory as listed whose names are among the lost changes.
    boolean isAsItWas = lastChange >= 0 && isOurs && store.lastChange() >= lastChange;
    if (found.failure() != null || (isAnothers && found.next() > firstNumber)) {
      String failure =
          found.failure() == null
              ? "another mount used the state directory in the meantime; unmount and mount again"
              : found.failure();
      if (isAsItWas) {
        return new Database.Opened(store, failure, false);
      }
      store.close();
      return new Database.Opened(null, failure, false);
    }
    // The overlay cannot be applied to an unknown state, whose names have their own numbers.
    boolean isLaidOn = lastChange >= 0 ? isAsItWas : found.isNew();
    boolean isOther = !isLaidOn;
    try {
      numbers.raise(found.next());
      if (isAnothers) {
        opening = Math.toIntExact(found.opening() + 1);
        session = opening;
      }
      store.apply(beginning(InodeNumbers.RESERVED), true);
      if (isLaidOn) {
        overlay.pour(changes -> store.apply(changes, false));
        store.apply(beginning(InodeNumbers.RESERVED), true);
      }
      recordedOpening = opening;
      return new Database.Opened(store, null, isOther);
    } catch (StoreFailure e) {
      if (isAsItWas) {
        return new Database.Opened(store, String.valueOf(e.getMessage()), false);
      }
      store.close();
      return new Database.Opened(null, String.valueOf(e.getMessage()), false);
    }
  }

  @Override
  public long seenIn(long number) {
    return lineage.parent(number);
  }

  @Override
  public @Nullable Inode adopt(long number) {
    return locked(
        () -> {
          Inode there = inode(number);
          long parent = lineage.parent(number);
          if (there != null || parent == 0) {
            return there;
          }
          Inode[] found = {null};
          list(
              parent,
              0,
              entry -> {
                Inode inode = inode(entry.inode());
                if (inode != null
                    && lineage.isSame(number, entry.name(), inode.identity(), inode.attributes())) {
                  found[0] = RocksImport.numbered(inode, number, parent, entry.name());
                }
                return found[0] == null;
              });
          Inode adopted = found[0];
          if (adopted != null) {
            storeInode(adopted);
          }
          return adopted;
        });
  }

  /** Runs steps against one state, while no other thread changes inodes. */
  <T extends @Nullable Object> T locked(Supplier<T> steps) {
    inodeUpdates.lock();
    try {
      return database.within(steps);
    } finally {
      inodeUpdates.unlock();
    }
  }

  @Override
  public int opening() {
    return opening;
  }

  @Override
  public int session() {
    return session;
  }

  @Override
  public boolean stoppedCleanly() {
    return stoppedCleanly;
  }

  @Override
  public @Nullable Inode inode(long number) {
    Inode known = recentInode(number);
    if (known != null) {
      return known;
    }
    // The state's lock first, then the entry's lock: a visitor already holds the state's lock.
    return database.within(
        () -> database.isRecording() ? recent.get(number, this::storedInode) : storedInode(number));
  }

  @Override
  public @Nullable Inode recentInode(long number) {
    RecentInodes kept = recent;
    return database.isRecording() ? kept.get(number) : null;
  }

  private @Nullable Inode storedInode(long number) {
    byte[] value = database.get(Family.INODES, Keys.number(number));
    if (value == null) {
      return null;
    }
    Inode inode = Values.inode(number, value);
    if (inode == null) {
      throw database.damaged("inode " + number);
    }
    lineage.note(inode);
    return inode.listing() == null || database.isListed(number)
        ? inode
        : RocksImport.withListing(inode, null, inode.attributes());
  }

  @Override
  public void putInode(Inode inode) {
    locked(
        () -> {
          if (inode.listing() != null) {
            markListed(inode.number());
          }
          storeInode(inode);
          return true;
        });
  }

  @Override
  public @Nullable Inode updateInode(long number, UnaryOperator<@Nullable Inode> change) {
    return locked(
        () -> {
          Inode now = change.apply(inode(number));
          if (now != null) {
            storeInode(now);
          }
          return now;
        });
  }

  /**
   * Records that all names of a directory are present; in the overlay if the state cannot record
   * it.
   */
  void markListed(long directory) {
    if (!database.isRecording()) {
      database.put(Family.LISTING, Keys.listedMark(directory), Values.bytes(new byte[0]));
    }
  }

  /** The caller holds {@link #inodeUpdates}. */
  void storeInode(Inode inode) {
    RecentInodes kept = recent;
    database.put(Family.INODES, Keys.number(inode.number()), Values.inode(inode));
    keep(kept, inode);
  }

  /**
   * Call after the write, with the recent inodes from before the write, because a state change
   * replaces them.
   */
  void keep(RecentInodes kept, Inode inode) {
    kept.put(inode);
    lineage.note(inode);
  }

  @Override
  public @Nullable DirectoryEntry find(long directory, FileName name) {
    byte[] value = database.get(Family.NAMES, Keys.name(directory, name));
    if (value == null) {
      return null;
    }
    Values.NameValue found = Values.name(value);
    if (found == null) {
      throw database.damaged("a name in directory " + directory);
    }
    return found.entry(name);
  }

  @Override
  public void list(long directory, long afterPosition, EntryVisitor visitor) {
    if (afterPosition == Long.MAX_VALUE) {
      return;
    }
    database.scanGroup(
        Family.LISTING,
        Keys.position(directory, afterPosition + 1),
        (key, value) -> {
          DirectoryEntry entry = Values.listed(Keys.second(key), value);
          if (entry == null) {
            throw database.damaged("the listing of directory " + directory);
          }
          return visitor.visit(entry);
        });
  }

  @Override
  public DirectoryImport beginImport(long directory) {
    database.limitMemory();
    return locked(
        () -> {
          Inode inode = inode(directory);
          if (inode == null) {
            throw new NamespaceLostException("there is no directory " + directory + " to import");
          }
          database.write(
              batch -> {
                if (inode.listing() != null || !database.isRecording()) {
                  Inode unlisted = RocksImport.withListing(inode, null, inode.attributes());
                  batch.put(Family.INODES, Keys.number(directory), Values.inode(unlisted));
                }
                batch.deleteGroup(Family.LISTING, directory);
              });
          recent.remove(directory);
          boolean fresh = database.isGroupEmpty(Family.NAMES, directory);
          long token = ((long) opening << Integer.SIZE) | ++imports;
          return new RocksImport(this, directory, token, fresh);
        });
  }

  @Override
  public @Nullable FileName path(long number) {
    return database.within(() -> joinedPath(number));
  }

  private @Nullable FileName joinedPath(long number) {
    Deque<FileName> names = new ArrayDeque<>();
    for (long at = number; at != ROOT; ) {
      Inode inode = inode(at);
      if (inode == null) {
        return null;
      }
      if (names.size() == MAX_DEPTH) {
        throw database.damaged("the chain of parents of inode " + number);
      }
      names.push(inode.name());
      at = inode.parent();
    }
    if (inode(ROOT) == null) {
      return null;
    }
    return join(names);
  }

  private static FileName join(Deque<FileName> names) {
    int size = Math.max(0, names.size() - 1);
    for (FileName name : names) {
      size = Math.addExact(size, name.size());
    }
    byte[] path = new byte[size];
    int at = 0;
    for (FileName name : names) {
      if (at > 0) {
        path[at++] = '/';
      }
      System.arraycopy(name.raw(), 0, path, at, name.size());
      at += name.size();
    }
    return FileName.wrap(path);
  }

  @Override
  public void removeInode(long number) {
    locked(
        () -> {
          byte[] key = Keys.number(number);
          byte[] value = database.get(Family.INODES, key);
          Inode inode = value == null ? null : Values.inode(number, value);
          boolean linked = inode != null && isLinkTo(inode.identity(), number);
          database.write(
              batch -> {
                batch.delete(Family.INODES, key);
                batch.delete(Family.TARGETS, key);
                batch.delete(Family.XATTRS, key);
                for (Family family : Family.values()) {
                  if (family.grouped()) {
                    batch.deleteGroup(family, number);
                  }
                }
                if (linked && inode != null) {
                  batch.delete(Family.LINKS, Keys.link(inode.identity()));
                }
              });
          recent.remove(number);
          return true;
        });
  }

  private boolean isLinkTo(FileIdentity identity, long number) {
    byte[] value = database.get(Family.LINKS, Keys.link(identity));
    Long linked = value == null ? null : Values.number(value);
    return linked != null && linked == number;
  }

  @Override
  public @Nullable FileName symbolicLinkTarget(long number) {
    byte[] value = database.get(Family.TARGETS, Keys.number(number));
    byte[] target = value == null ? null : Values.content(value);
    return target == null ? null : FileName.wrap(target);
  }

  @Override
  public void putSymbolicLinkTarget(long number, FileName target) {
    database.put(Family.TARGETS, Keys.number(number), Values.bytes(target.raw()));
  }

  @Override
  public @Nullable Map<FileName, byte[]> extendedAttributes(long number) {
    byte[] value = database.get(Family.XATTRS, Keys.number(number));
    return value == null ? null : Values.extendedAttributes(value);
  }

  @Override
  public void putExtendedAttributes(long number, Map<FileName, byte[]> attributes) {
    database.put(Family.XATTRS, Keys.number(number), Values.attributes(attributes));
  }

  @Override
  public void removeExtendedAttributes(long number) {
    database.delete(Family.XATTRS, Keys.number(number));
  }

  @Override
  public List<CopyRecord> copies(long number) {
    List<CopyRecord> copies = new ArrayList<>();
    database.scanGroup(
        Family.COPIES,
        Keys.number(number),
        (key, value) -> {
          CopyRecord copy = Values.copy(Keys.tier(key), value);
          if (copy != null) {
            copies.add(copy);
          }
          return true;
        });
    return copies;
  }

  @Override
  public @Nullable CopyRecord copy(long number, String tier) {
    byte[] value = database.get(Family.COPIES, Keys.copy(number, tier));
    return value == null ? null : Values.copy(tier, value);
  }

  @Override
  public void putCopy(long number, CopyRecord copy) {
    database.put(Family.COPIES, Keys.copy(number, copy.tier()), Values.copy(copy));
  }

  @Override
  public void removeCopy(long number, String tier) {
    database.delete(Family.COPIES, Keys.copy(number, tier));
  }

  @Override
  public void listCopies(long fromNumber, CopyVisitor visitor) {
    database.scan(
        Family.COPIES,
        Keys.number(fromNumber),
        (key, value) -> {
          CopyRecord copy = Values.copy(Keys.tier(key), value);
          return copy == null || visitor.visit(Keys.first(key), copy);
        });
  }

  @Override
  public long lastNumber() {
    return numbers.next() - 1;
  }

  @Override
  public @Nullable Long counter(String key) {
    byte[] value = database.get(Family.DEFAULT, Keys.counter(key));
    return value == null ? null : Values.number(value);
  }

  @Override
  public void putCounter(String key, long value) {
    database.put(Family.DEFAULT, Keys.counter(key), Values.number(value));
  }

  @Override
  public void close() {
    boolean isClean = !database.hasFailed();
    database.close(
        batch -> {
          batch.put(Family.DEFAULT, Keys.NEXT_NUMBER, Values.number(numbers.next()));
          if (isClean) {
            batch.put(Family.DEFAULT, Keys.CLEAN_STOP, Values.bytes(FileName.of(bootId).raw()));
          }
        });
  }

  /**
   * Entries that imports of a directory replaced since its last finished import; the caller holds
   * the lock.
   */
  List<DirectoryEntry> replacedIn(long directory) {
    return replaced.computeIfAbsent(directory, absent -> new ArrayList<>());
  }

  /** Call when they were reported. */
  void forgetReplacedIn(long directory) {
    replaced.remove(directory);
  }

  Database database() {
    return database;
  }

  RecentInodes recent() {
    return recent;
  }

  InodeNumbers numbers() {
    return numbers;
  }

  Lineage lineage() {
    return lineage;
  }
}
