package io.pmfs.metadata;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A {@link Namespace} in RocksDB. Everything is regenerable: a directory that cannot be used may be
 * removed, and is built again from the source.
 *
 * <p>Limits, whatever the size of the dataset: blocks, indexes, filters and write buffers together
 * take about {@code memoryBytes} (one block cache that the write buffers, at most half of it, are
 * charged to; a writer waits when they are full); 512 open files; one flush and one compaction
 * thread; 64 MiB of write-ahead log; three log files of 1 MiB. An import holds one batch of 1024
 * entries and the entries it found gone.
 *
 * <p>Writes go to the write-ahead log at once and survive a killed process; an opening and its
 * clean stop are synced and survive a machine that loses power.
 */
public final class RocksNamespace implements Namespace {
  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
  private static final int MAX_DEPTH = 100_000;

  private final String place;
  private final Database database;
  private final InodeNumbers numbers;
  private final RecentInodes recent = new RecentInodes();
  private final int opening;
  private final int session;
  private final boolean stoppedCleanly;
  private final String bootId;

  // Held from reading inodes to writing them changed, and from looking for a hard link to
  // recording it. LOCK ORDER: inodeUpdates < Database.use.
  private final ReentrantLock inodeUpdates = new ReentrantLock();
  private int imports; // GUARDED_BY(inodeUpdates)

  // By directory: what unfinished imports replaced, for the next one to report.
  private final Map<Long, List<DirectoryEntry>> replaced =
      new HashMap<>(); // GUARDED_BY(inodeUpdates)

  private RocksNamespace(
      String place,
      Database database,
      InodeNumbers numbers,
      int opening,
      int session,
      boolean stoppedCleanly,
      String bootId) {
    this.place = place;
    this.database = database;
    this.numbers = numbers;
    this.opening = opening;
    this.session = session;
    this.stoppedCleanly = stoppedCleanly;
    this.bootId = bootId;
  }

  /**
   * Opens the namespace in a directory, or creates it there. A {@link NamespaceException} if it is
   * another dataset's or another program's, is of another format, is damaged, or is open already.
   *
   * @param source the identity of the dataset
   * @param memoryBytes at least 16 MiB
   */
  public static RocksNamespace open(Path directory, String source, long memoryBytes) {
    return open(directory, source, memoryBytes, readBootId());
  }

  /**
   * The same for a session that several processes may serve, one after the other.
   *
   * @param session which one it is: if the last opening was of the same, it goes on
   */
  public static RocksNamespace open(Path directory, String source, long memoryBytes, UUID session) {
    return open(directory, source, memoryBytes, session, readBootId());
  }

  static RocksNamespace open(Path directory, String source, long memoryBytes, String bootId) {
    return open(directory, source, memoryBytes, UUID.randomUUID(), bootId);
  }

  static RocksNamespace open(
      Path directory, String source, long memoryBytes, UUID session, String bootId) {
    String place = directory.toString();
    Database database = RocksFiles.open(directory, memoryBytes);
    try {
      return start(place, database, source, session, bootId);
    } catch (RuntimeException e) {
      database.close();
      throw e;
    }
  }

  /** Empty if this machine does not say; then no stop counts as clean. */
  private static String readBootId() {
    try {
      return Files.readString(BOOT_ID).strip();
    } catch (IOException e) {
      return "";
    }
  }

  private static RocksNamespace start(
      String place, Database database, String source, UUID id, String bootId) {
    boolean created = checkSuperblock(place, database, source);
    long before = storedNumber(place, database, Keys.OPENING, 0);
    long next = storedNumber(place, database, Keys.NEXT_NUMBER, InodeNumbers.FIRST);
    byte[] mark = database.get(Family.DEFAULT, Keys.CLEAN_STOP);
    byte[] markedBoot = mark == null ? null : Values.content(mark);
    boolean clean =
        before == 0
            || (markedBoot != null
                && !bootId.isEmpty()
                && FileName.wrap(markedBoot).equals(FileName.of(bootId)));
    int opening = Math.toIntExact(before + 1);
    byte[] last = database.get(Family.DEFAULT, Keys.SESSION_ID);
    int session =
        last != null && Arrays.equals(last, openingOf(id, before))
            ? Math.toIntExact(storedNumber(place, database, Keys.SESSION_START, opening))
            : opening;
    database.writeSynced(
        batch -> {
          if (created) {
            byte[] superblock = Values.superblock(new Values.Superblock(Values.FORMAT, source));
            batch.put(Family.DEFAULT, Keys.SUPERBLOCK, superblock);
          }
          batch.put(Family.DEFAULT, Keys.OPENING, Values.number(opening));
          batch.put(Family.DEFAULT, Keys.SESSION_ID, openingOf(id, opening));
          batch.put(Family.DEFAULT, Keys.SESSION_START, Values.number(session));
          batch.delete(Family.DEFAULT, Keys.CLEAN_STOP);
        });
    InodeNumbers numbers = new InodeNumbers(database, next);
    return new RocksNamespace(place, database, numbers, opening, session, clean, bootId);
  }

  /** A session with its last opening: one of another pmfs since then ends it. */
  private static byte[] openingOf(UUID session, long opening) {
    return Values.bytes(FileName.of(session + " " + opening).raw());
  }

  /** Whether the database is new. */
  private static boolean checkSuperblock(String place, Database database, String source) {
    byte[] value = database.get(Family.DEFAULT, Keys.SUPERBLOCK);
    if (value == null) {
      boolean[] empty = {true};
      database.scan(Family.DEFAULT, new byte[0], (k, v) -> empty[0] = false);
      if (!empty[0]) {
        throw RocksFiles.foreign(place);
      }
      return true;
    }
    Values.Superblock superblock = Values.superblock(value);
    if (superblock == null) {
      throw RocksFiles.foreign(place);
    }
    if (superblock.format() != Values.FORMAT) {
      throw new NamespaceException(
          "%s is of format %d, this pmfs reads format %d; choose another state directory, or remove this one"
              .formatted(place, superblock.format(), Values.FORMAT),
          null);
    }
    if (!superblock.source().equals(source)) {
      throw new NamespaceException(
          "%s belongs to the dataset %s, not to %s; choose another state directory, or remove this one"
              .formatted(place, superblock.source(), source),
          null);
    }
    return false;
  }

  private static long storedNumber(String place, Database database, byte[] key, long otherwise) {
    byte[] value = database.get(Family.DEFAULT, key);
    Long number = value == null ? (Long) otherwise : Values.number(value);
    if (number == null) {
      throw damaged(place, "a counter");
    }
    return number;
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
    return recent.get(number, this::storedInode);
  }

  private @Nullable Inode storedInode(long number) {
    byte[] value = database.get(Family.INODES, Keys.number(number));
    if (value == null) {
      return null;
    }
    Inode inode = Values.inode(number, value);
    if (inode == null) {
      throw damaged(place, "inode " + number);
    }
    return inode;
  }

  @Override
  public void putInode(Inode inode) {
    inodeUpdates.lock();
    try {
      storeInode(inode);
    } finally {
      inodeUpdates.unlock();
    }
  }

  /** For the holder of {@link #inodeUpdates}. */
  void storeInode(Inode inode) {
    database.put(Family.INODES, Keys.number(inode.number()), Values.inode(inode));
    recent.put(inode);
  }

  @Override
  public @Nullable DirectoryEntry find(long directory, FileName name) {
    byte[] value = database.get(Family.NAMES, Keys.name(directory, name));
    if (value == null) {
      return null;
    }
    Values.NameValue found = Values.name(value);
    if (found == null) {
      throw damaged(place, "a name in directory " + directory);
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
            throw damaged(place, "the listing of directory " + directory);
          }
          return visitor.visit(entry);
        });
  }

  @Override
  public DirectoryImport beginImport(long directory) {
    inodeUpdates.lock();
    try {
      Inode inode = inode(directory);
      if (inode == null) {
        throw new NamespaceException("there is no directory " + directory + " to import", null);
      }
      database.write(
          batch -> {
            if (inode.listing() != null) {
              Inode unlisted = RocksImport.withListing(inode, null, inode.attributes());
              batch.put(Family.INODES, Keys.number(directory), Values.inode(unlisted));
            }
            batch.deleteGroup(Family.LISTING, directory);
          });
      recent.remove(directory);
      boolean fresh = database.isGroupEmpty(Family.NAMES, directory);
      long token = ((long) opening << Integer.SIZE) | ++imports;
      return new RocksImport(this, directory, token, fresh);
    } finally {
      inodeUpdates.unlock();
    }
  }

  @Override
  public @Nullable FileName path(long number) {
    Deque<FileName> names = new ArrayDeque<>();
    for (long at = number; at != ROOT; ) {
      Inode inode = inode(at);
      if (inode == null) {
        return null;
      }
      if (names.size() == MAX_DEPTH) {
        throw damaged(place, "the chain of parents of inode " + number);
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
    inodeUpdates.lock();
    try {
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
    } finally {
      inodeUpdates.unlock();
    }
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
    database.close(
        batch -> {
          batch.put(Family.DEFAULT, Keys.NEXT_NUMBER, Values.number(numbers.next()));
          batch.put(Family.DEFAULT, Keys.CLEAN_STOP, Values.bytes(FileName.of(bootId).raw()));
        });
  }

  /**
   * What the imports of a directory replaced since one was finished; for the holder of the lock.
   */
  List<DirectoryEntry> replacedIn(long directory) {
    return replaced.computeIfAbsent(directory, absent -> new ArrayList<>());
  }

  /** That it was reported. */
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

  ReentrantLock inodeUpdates() {
    return inodeUpdates;
  }

  private static NamespaceException damaged(String place, String what) {
    return new NamespaceException(
        what
            + " in "
            + place
            + " is damaged; unmount and remove the directory to build it again from the source",
        null);
  }
}
