package io.pmfs.metadata;

import io.pmfs.table.Family;
import io.pmfs.table.Faults;
import io.pmfs.table.RocksFiles;
import io.pmfs.table.StateException;
import io.pmfs.table.StoreFailure;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * A {@link Namespace} in RocksDB. pmfs can rebuild all of it from the source, so a directory that
 * cannot be used may be removed.
 *
 * <p>Limits, regardless of the size of the dataset: blocks, indexes, filters and write buffers
 * together take about {@code memoryBytes} (one block cache, to which the write buffers, at most
 * half of it, are charged; a writer waits when they are full); 512 open files; one flush and one
 * compaction thread; 64 MiB of write-ahead log; three log files of 1 MiB. An import holds one batch
 * of 1024 entries.
 *
 * <p>Writes go to the write-ahead log at once and survive a killed process. The start of a session
 * and its clean stop are synced and survive a power loss.
 */
public final class RocksNamespace implements Namespace {
  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

  private static final String RENUMBERED_FILES = "source.renumbered";

  private static final String RENUMBERED =
      "the source gives files other inode numbers from time to time: they are known by path, size and times";

  private final AtomicLong renumbered = new AtomicLong();
  private final Consumer<String> log;
  private final StateSession session;
  private final Database database;
  private final AttributeRecords attributes;
  private final InodeNumbers numbers;
  private final Lineage lineage = new Lineage(new SecureRandom());
  private volatile RecentInodes recent = new RecentInodes();

  // Held from reading inodes to writing their changes, and from looking up a hard link to recording
  // it. LOCK ORDER: inodeUpdates < Database.use.
  private final ReentrantLock inodeUpdates = new ReentrantLock();
  private int imports; // GUARDED_BY(inodeUpdates)

  /** How often inodes may have lost names. */
  private final AtomicLong nameLosses = new AtomicLong();

  /** How many of these are settled; -1 before the state was looked at. */
  private volatile long settledLosses = -1;

  /**
   * Loads RocksDB's native library, which {@link #open} does otherwise; may run in another thread
   * meanwhile.
   *
   * @throws StateException if it cannot be loaded
   */
  public static void loadLibrary() {
    RocksFiles.loadLibrary();
  }

  /**
   * Opens the namespace in a directory, or creates it there. Throws {@link StateException} if it
   * belongs to another dataset or is already open. A namespace that is damaged or has another
   * format is set aside. If the directory cannot be written or read, names are kept in memory.
   *
   * @param source the identity of the dataset
   * @param memoryBytes at least 16 MiB
   * @param session identifies the session, which several processes may serve one after another: if
   *     the last opening was of the same session, that session continues
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
    this.log = log;
    session = new StateSession(directory, found, id, bootId, mark.load(), log);
    database =
        new Database(place, found.store(), found.failure(), RocksFiles::openInMemory, memoryBytes);
    attributes = new AttributeRecords(database);
    numbers = new InodeNumbers(database, mark, session.firstNumber());
    database.onChange(this::changed);
    if (found.failure() != null) {
      session.sayUnrecorded(found.failure());
    } else {
      session.begin(database, numbers);
    }
    Long recorded = counter(RENUMBERED_FILES);
    renumbered.set(recorded == null ? 0 : recorded);
  }

  /** Called while no other call runs. */
  private void changed(@Nullable StoreFailure failed) {
    recent = new RecentInodes();
    noteLostNames();
    if (failed != null) {
      session.failed(String.valueOf(failed.getMessage()));
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
    session.recover(database, numbers);
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
    return session.opening();
  }

  @Override
  public int session() {
    return session.session();
  }

  @Override
  public boolean stoppedCleanly() {
    return session.stoppedCleanly();
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
    return inode.listing() == null || database.isListed(number) ? inode : inode.withListing(null);
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

  /** Records that all names of a directory are present, if necessary in the overlay. */
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
  public @Nullable Inode linked(FileIdentity identity) {
    byte[] value = database.get(Family.LINKS, Keys.link(identity));
    Long number = value == null ? null : Values.number(value);
    return number == null ? null : inode(number);
  }

  @Override
  public void noteRenumbered(int files) {
    if (files == 0) {
      return;
    }
    long all = renumbered.addAndGet(files);
    long before = all - files;
    if (before == 0) {
      log.accept(RENUMBERED);
    }
    // Only powers of two are written, to limit the number of writes.
    long mark = Long.highestOneBit(all);
    if (mark != Long.highestOneBit(before)) {
      putCounter(RENUMBERED_FILES, mark);
    }
  }

  @Override
  public long renumbered() {
    return renumbered.get();
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
  public void identify(long directory, SourceEntry entry) {
    locked(
        () -> {
          RocksImport.identify(this, directory, entry);
          return true;
        });
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
                  Inode unlisted = inode.withListing(null);
                  batch.put(Family.INODES, Keys.number(directory), Values.inode(unlisted));
                }
                batch.deleteGroup(Family.LISTING, directory);
              });
          recent.remove(directory);
          boolean fresh = database.isGroupEmpty(Family.NAMES, directory);
          long token = ((long) session.opening() << Integer.SIZE) | ++imports;
          return new RocksImport(this, directory, token, fresh);
        });
  }

  @Override
  public @Nullable FileName path(long number) {
    return database.within(() -> ParentChain.path(this, number));
  }

  /** Call after the write of lost names. */
  void noteLostNames() {
    nameLosses.incrementAndGet();
  }

  @Override
  public List<Long> lostNames(long from) {
    long losses = nameLosses.get();
    if (losses == settledLosses) {
      return List.of();
    }
    List<Long> numbers = new ArrayList<>();
    database.scan(
        Family.DEFAULT,
        Keys.lostName(from),
        (key, value) -> {
          long number = Keys.lostName(key);
          if (number >= 0) {
            numbers.add(number);
          }
          return number >= 0 && numbers.size() < RocksImport.BATCH_ENTRIES;
        });
    if (from == 0 && numbers.isEmpty()) {
      settledLosses = losses;
    }
    return numbers;
  }

  @Override
  public boolean removeNameless(long number) {
    return locked(
        () -> {
          Inode inode = inode(number);
          if (inode == null) {
            return true;
          }
          Inode named = named(inode);
          if (named == null) {
            remove(inode);
            return true;
          }
          if (!named.equals(inode)) {
            storeInode(named);
          }
          forgotten(List.of(number));
          return false;
        });
  }

  /** The inode by a name that stands for it, the recorded one if that does; null if none does. */
  private @Nullable Inode named(Inode inode) {
    Inode[] named = {isNamed(inode) ? inode : null};
    if (named[0] == null) {
      database.scanGroup(
          Family.ALIASES,
          Keys.number(inode.number()),
          (key, ignored) -> {
            Inode other = inode.withName(Keys.second(key), Keys.aliasName(key));
            named[0] = isNamed(other) ? other : null;
            return named[0] == null;
          });
    }
    return named[0];
  }

  private boolean isNamed(Inode inode) {
    DirectoryEntry entry = find(inode.parent(), inode.name());
    return entry != null && entry.inode() == inode.number();
  }

  private void remove(Inode inode) {
    long number = inode.number();
    RocksImport.removeNames(this, number, name -> true);
    boolean isLinked = isLinkTo(inode.identity(), number);
    database.write(
        batch -> {
          batch.delete(Family.INODES, Keys.number(number));
          attributes.remove(batch, number);
          for (Family family : Family.values()) {
            if (family.grouped() && family != Family.COPIES) {
              batch.deleteGroup(family, number);
            }
          }
          if (isLinked) {
            batch.delete(Family.LINKS, Keys.link(inode.identity()));
          }
        });
    recent.remove(number);
  }

  @Override
  public void forgotten(List<Long> numbers) {
    database.write(
        batch -> numbers.forEach(number -> batch.delete(Family.DEFAULT, Keys.lostName(number))));
  }

  private boolean isLinkTo(FileIdentity identity, long number) {
    byte[] value = database.get(Family.LINKS, Keys.link(identity));
    Long linked = value == null ? null : Values.number(value);
    return linked != null && linked == number;
  }

  @Override
  public @Nullable FileName symbolicLinkTarget(long number, Instant changeTime) {
    return attributes.target(number, changeTime);
  }

  @Override
  public void putSymbolicLinkTarget(long number, Instant changeTime, FileName target) {
    attributes.putTarget(number, changeTime, target);
  }

  @Override
  public @Nullable Map<FileName, byte[]> extendedAttributes(long number, Instant changeTime) {
    return attributes.extendedAttributes(number, changeTime);
  }

  @Override
  public void putExtendedAttributes(
      long number, Instant changeTime, Map<FileName, byte[]> attributes) {
    this.attributes.putExtendedAttributes(number, changeTime, attributes);
  }

  @Override
  public @Nullable FileName accessList(long number, Instant changeTime) {
    return attributes.accessList(number, changeTime);
  }

  @Override
  public void putAccessList(long number, Instant changeTime, FileName list) {
    attributes.putAccessList(number, changeTime, list);
  }

  @Override
  public void recordAttributes() {
    attributes.writeAll();
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
  public void listInodes(Predicate<Inode> visitor) {
    database.scan(
        Family.INODES,
        Keys.number(0),
        (key, value) -> {
          Inode inode = Values.inode(Keys.first(key), value);
          return inode == null || visitor.test(inode);
        });
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
  public void removeCounter(String key) {
    database.delete(Family.DEFAULT, Keys.counter(key));
  }

  @Override
  public Map<String, Long> counters(String prefix) {
    Map<String, Long> found = new HashMap<>();
    database.scan(
        Family.DEFAULT,
        Keys.counter(prefix),
        (key, value) -> {
          String name = Keys.counterName(key);
          Long number = Values.number(value);
          if (name == null || !name.startsWith(prefix)) {
            return false;
          }
          if (number != null) {
            found.put(name.substring(prefix.length()), number);
          }
          return true;
        });
    return found;
  }

  @Override
  public void close() {
    boolean isClean = !database.hasFailed();
    database.close(
        batch -> {
          attributes.addUnwritten(batch);
          session.ending(numbers, isClean).forEach(batch::add);
        });
  }

  AttributeRecords attributes() {
    return attributes;
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
