package io.pmfs.cache;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import io.pmfs.cache.SharedCopy.State;
import io.pmfs.cache.SharedCopy.Waiting;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.tier.FsException;
import io.pmfs.tier.TierInUseException;
import io.pmfs.tier.TierLock;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The copies of a node's cache: files below one directory, with one limit for all users. A copy is
 * written below {@code incoming} and renamed into {@code copies} when it is whole; its path there
 * is all that a later run needs to know. Safe for use by many threads.
 *
 * <p>INVARIANT: a copy that a connection may have open is never removed to make room: its room
 * would not be free before it is closed.
 */
final class SharedCopies implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SharedCopies.class);

  private static final FileAttribute<?> DIRECTORY_MODE = mode("rwx------");
  private static final FileAttribute<?> FILE_MODE = mode("rw-------");

  /** How exactly the time of a copy's last use survives a restart. */
  private static final Duration USE_RECORDED = Duration.ofMinutes(1);

  private static final int COMPARED_BYTES = 256 << 10;

  /** A report is one message. */
  private static final int MOST_REPORTED = 200;

  /** This part of the disk stays free. */
  private static final int FREE_PART = 20;

  private final Path copies;
  private final Path incoming;
  private final FileStore disk;
  private final long keepFreeBytes;
  private final TierLock lock;
  private final long capacityBytes;
  private final Duration evictAfter;
  private final InstantSource clock;
  private final Map<CopyKey, SharedCopy> byKey = new HashMap<>(); // GUARDED_BY(this)
  private final Map<Integer, CacheUser> users = new TreeMap<>(); // GUARDED_BY(this)
  private long usedBytes; // GUARDED_BY(this)
  private long evicted; // GUARDED_BY(this)
  private long serial; // GUARDED_BY(this)

  /**
   * Opens the copies that an earlier run left, and makes room if there are too many.
   *
   * @param evictAfter how long a copy must not have been asked for before another one may take its
   *     room, unless its user has more than a share
   * @throws IOException if another process has them, or they cannot be read
   */
  SharedCopies(Path directory, long capacityBytes, Duration evictAfter, InstantSource clock)
      throws IOException {
    this.copies = directory.resolve("copies");
    this.incoming = directory.resolve("incoming");
    this.capacityBytes = capacityBytes;
    this.evictAfter = evictAfter;
    this.clock = clock;
    Files.createDirectories(copies, DIRECTORY_MODE);
    Files.createDirectories(incoming, DIRECTORY_MODE);
    this.disk = Files.getFileStore(incoming);
    this.keepFreeBytes = disk.getTotalSpace() / FREE_PART;
    this.lock = lock(directory);
    find();
  }

  private static TierLock lock(Path directory) throws IOException {
    try {
      return new TierLock(directory);
    } catch (TierInUseException e) {
      throw new IOException(directory + " is in use by another cache", e);
    }
  }

  private static FileAttribute<?> mode(String mode) {
    return PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(mode));
  }

  private synchronized void find() throws IOException {
    try (DirectoryStream<Path> leftovers = Files.newDirectoryStream(incoming)) {
      for (Path leftover : leftovers) {
        Files.deleteIfExists(leftover);
      }
    }
    List<SharedCopy> found = new ArrayList<>();
    try (Stream<Path> files = Files.find(copies, 3, (path, status) -> status.isRegularFile())) {
      for (Path file : (Iterable<Path>) files::iterator) {
        CopyKey.Named named = CopyKey.parse(copies.relativize(file));
        if (named == null || Files.size(file) != named.key().size()) {
          Files.deleteIfExists(file);
          continue;
        }
        Instant used = Files.getLastModifiedTime(file).toInstant();
        SharedCopy copy = new SharedCopy(named.key(), named.user(), State.FOUND, file, used);
        copy.checksum = named.checksum();
        copy.reached = named.key().size();
        found.add(copy);
      }
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
    found.sort(Comparator.comparing(copy -> copy.used));
    for (SharedCopy copy : found) {
      SharedCopy twin = byKey.put(copy.key, copy);
      user(copy.user).add(copy);
      usedBytes += copy.room();
      if (twin != null) {
        remove(twin);
      }
    }
    for (SharedCopy oldest : found) {
      if (usedBytes > capacityBytes && oldest.state != State.GONE) {
        remove(oldest);
      }
    }
  }

  /** Called with the lock held. */
  private CacheUser user(int uid) {
    return users.computeIfAbsent(uid, number -> new CacheUser());
  }

  /** The copy with a key, held for a user; null if there is none. It may be of any state. */
  synchronized @Nullable SharedCopy hold(CopyKey key, int user) {
    SharedCopy copy = byKey.get(key);
    if (copy != null) {
      touch(copy);
      hold(copy, user);
    }
    return copy;
  }

  /** Called with the lock held. */
  private void hold(SharedCopy copy, int user) {
    copy.holders++;
    user(user).hold(copy);
  }

  /** Called with the lock held. */
  private void touch(SharedCopy copy) {
    Instant now = clock.instant();
    if (copy.used.plus(USE_RECORDED).isBefore(now)) {
      copy.used = now;
      if (copy.state == State.WHOLE || copy.state == State.FOUND) {
        try {
          Files.setLastModifiedTime(copy.file, FileTime.from(now));
        } catch (IOException e) {
          log.debug("{}: {}", copy.file, e.getMessage());
        }
      }
    }
    user(copy.user).touch(copy);
  }

  /** Undoes one hold. */
  synchronized void release(SharedCopy copy, int user) {
    user(user).release(copy);
    touch(copy);
    if (--copy.holders == 0 && copy.state == State.GONE) {
      free(copy);
    }
  }

  /** Called with the lock held, when nobody can have it open any more. */
  private void free(SharedCopy copy) {
    usedBytes -= copy.room();
    user(copy.user).remove(copy);
  }

  /** Whether a copy is of an earlier run, and was not compared with its checksum yet. */
  synchronized boolean isFound(SharedCopy copy) {
    return copy.state == State.FOUND;
  }

  /** How many bytes of a copy can be read. */
  synchronized long reachedBytes(SharedCopy copy) {
    return copy.reached;
  }

  /** The bytes of the copies that a user has open. */
  synchronized long heldBytes(int user) {
    return user(user).heldBytes();
  }

  /**
   * Makes an empty copy that grows, held for the user, if there is none with this key and there is
   * room or others may go for it; else null.
   */
  @Nullable SharedCopy create(CopyKey key, int user) {
    if (!fitsOnDisk(key.size())) {
      return null;
    }
    SharedCopy made;
    synchronized (this) {
      if (byKey.containsKey(key) || !makeRoom(SharedCopy.room(key.size()), user)) {
        return null;
      }
      Path file = incoming.resolve(Long.toHexString(++serial));
      made = new SharedCopy(key, user, State.GROWING, file, clock.instant());
      byKey.put(key, made);
      user(user).add(made);
      usedBytes += made.room();
      hold(made, user);
    }
    try {
      FileChannel.open(made.file, Set.of(CREATE_NEW, WRITE), FILE_MODE).close();
      return made;
    } catch (IOException e) {
      log.warn("{}: {}", made.file, e.getMessage());
      fail(made).forEach(Waiting::answer);
      release(made, user);
      return null;
    }
  }

  private boolean fitsOnDisk(long bytes) {
    try {
      return disk.getUsableSpace() - bytes >= keepFreeBytes;
    } catch (IOException e) {
      return false;
    }
  }

  /** Called with the lock held. Removes copies only if that is enough. */
  private boolean makeRoom(long bytes, int user) {
    if (bytes > capacityBytes) {
      return false;
    }
    user(user); // he gets a share, too
    Eviction eviction = new Eviction(users, capacityBytes, user, clock.instant().minus(evictAfter));
    List<SharedCopy> victims = eviction.victims(usedBytes + bytes - capacityBytes, bytes);
    if (victims == null) {
      return false;
    }
    victims.forEach(this::remove);
    evicted += victims.size();
    return true;
  }

  /** Called with the lock held. */
  private void remove(SharedCopy copy) {
    copy.state = State.GONE;
    byKey.remove(copy.key, copy);
    try {
      Files.deleteIfExists(copy.file);
    } catch (IOException e) {
      log.warn("{}: {}", copy.file, e.getMessage());
    }
    if (copy.holders == 0) {
      free(copy);
    }
  }

  /** A growing copy waits for a thread that makes it. */
  synchronized void queued(SharedCopy copy) {
    copy.isQueued = true;
  }

  /** Whether a copy will grow only later. */
  synchronized boolean isQueued(SharedCopy copy) {
    return copy.state == State.GROWING && copy.isQueued && !copy.isBegun;
  }

  /** A channel that writes a growing copy, by the thread that makes it. */
  FileChannel write(SharedCopy copy) throws IOException {
    Path file;
    synchronized (this) {
      copy.isBegun = true;
      file = copy.file;
    }
    return FileChannel.open(file, WRITE);
  }

  /** More of a growing copy can be read. Returns whose questions to answer now. */
  synchronized List<Waiting> reached(SharedCopy copy, long bytes) {
    copy.reached = bytes;
    List<Waiting> ready = new ArrayList<>();
    copy.waiting.removeIf(one -> one.wanted() <= bytes && ready.add(one));
    return ready;
  }

  /** A growing copy has all its bytes. Returns whose questions to answer now. */
  synchronized List<Waiting> complete(SharedCopy copy, int checksum) throws IOException {
    Path target = copies.resolve(copy.key.path(copy.user, checksum));
    Files.createDirectories(target.getParent(), DIRECTORY_MODE);
    Files.move(copy.file, target, StandardCopyOption.ATOMIC_MOVE);
    copy.file = target;
    copy.checksum = checksum;
    copy.reached = copy.key.size();
    copy.state = State.WHOLE;
    return takeWaiting(copy);
  }

  /** A copy could not be made, or is bad. Returns whose questions to answer now. */
  synchronized List<Waiting> fail(SharedCopy copy) {
    if (copy.state != State.GONE) {
      remove(copy);
    }
    return takeWaiting(copy);
  }

  /** Called with the lock held. */
  private static List<Waiting> takeWaiting(SharedCopy copy) {
    List<Waiting> all = copy.waiting;
    copy.waiting = new ArrayList<>();
    return all;
  }

  /** Keeps a question until the copy is as far as it asks; false if it is to be answered now. */
  synchronized boolean await(SharedCopy copy, Waiting question) {
    return copy.state == State.GROWING
        && copy.reached < question.wanted()
        && copy.waiting.add(question);
  }

  /** Takes a question back; false if it was answered, or is being answered. */
  synchronized boolean takeBack(SharedCopy copy, Waiting question) {
    return copy.waiting.remove(question);
  }

  /**
   * A copy as it is now.
   *
   * @param file open for reading if that was asked for; the caller closes it
   */
  record Present(State state, long reached, @Nullable PassedFile file) {}

  /** Returns a copy as it is now, and opens it if it can be read. */
  synchronized Present present(SharedCopy copy, boolean open) throws FsException {
    boolean isReadable = copy.state == State.GROWING || copy.state == State.WHOLE;
    return new Present(
        copy.state, copy.reached, open && isReadable ? PassedFile.open(copy.file) : null);
  }

  /** Compares a copy of an earlier run with its checksum; drops it if they differ. */
  void compare(SharedCopy copy) {
    boolean isGood = false;
    try {
      isGood = checksum(copy) == copy.checksum;
    } catch (IOException e) {
      log.warn("{}: {}", copy.file, e.getMessage());
    }
    List<Waiting> waiting;
    synchronized (this) {
      if (isGood && copy.state == State.FOUND) {
        copy.state = State.WHOLE;
      }
      waiting = isGood ? List.of() : fail(copy);
    }
    if (!isGood) {
      log.warn("dropped a copy of {} bytes that does not match its checksum", copy.key.size());
    }
    waiting.forEach(Waiting::answer);
  }

  private static int checksum(SharedCopy copy) throws IOException {
    CRC32C crc = new CRC32C();
    ByteBuffer buffer = ByteBuffer.allocate(COMPARED_BYTES);
    try (FileChannel file = FileChannel.open(copy.file, READ)) {
      for (long at = 0; at < copy.key.size(); at += buffer.limit()) {
        buffer.clear().limit((int) Math.min(COMPARED_BYTES, copy.key.size() - at));
        while (buffer.hasRemaining()) {
          if (file.read(buffer, at + buffer.position()) < 0) {
            throw new EOFException("truncated");
          }
        }
        crc.update(buffer.flip());
      }
    }
    return (int) crc.getValue();
  }

  /** What there is, for a report. */
  synchronized CacheReport.Room room() {
    Map<Integer, CacheReport.OfUser> all = new TreeMap<>();
    users.entrySet().stream()
        .sorted(Comparator.comparing(entry -> -entry.getValue().bytes()))
        .limit(MOST_REPORTED)
        .forEach(
            entry -> {
              CacheUser user = entry.getValue();
              all.put(entry.getKey(), new CacheReport.OfUser(user.bytes(), user.heldBytes()));
            });
    return new CacheReport.Room(capacityBytes, usedBytes, byKey.size(), evicted, all);
  }

  @Override
  public void close() {
    lock.close();
  }
}
