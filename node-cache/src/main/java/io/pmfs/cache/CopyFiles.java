package io.pmfs.cache;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.TRUNCATE_EXISTING;
import static java.nio.file.StandardOpenOption.WRITE;

import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.fuse.system.FileUse;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.tier.TierInUseException;
import io.pmfs.tier.TierLock;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The files of the copies, below a directory that this process has locked and that contains a
 * marker file. A copy is written below {@code incoming} and renamed into {@code copies} once
 * complete. Discarded files that may still be open lie below {@code leaving}. Thread-safe.
 */
final class CopyFiles implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(CopyFiles.class);

  /** The marker file: a directory with files but without this one is refused. */
  static final String MARK = "pmfs-node-cache";

  private static final String LOST_AND_FOUND = "lost+found";

  private static final FileAttribute<?> DIRECTORY_MODE = mode("rwx------");
  private static final FileAttribute<?> FILE_MODE = mode("rw-------");

  /** One part in so many of the disk's bytes and inodes stays free. */
  private static final int FREE_PART = 20;

  /** The inode limit is at least this, however small the capacity. */
  private static final long LEAST_FILES = 1 << 16;

  private final Path directory;
  private final Path copies;
  private final Path incoming;
  private final Path leaving;
  private final TierLock lock;
  private final DirectoryStore disk;
  private final long run = new SecureRandom().nextLong();
  private final AtomicLong serial = new AtomicLong();

  /**
   * Opens a directory; creates it if it is missing.
   *
   * @throws IOException if the directory is not a cache's, is in use or is unusable
   */
  CopyFiles(Path directory) throws IOException {
    this.directory = directory;
    this.copies = directory.resolve("copies");
    this.incoming = directory.resolve("incoming");
    this.leaving = directory.resolve("leaving");
    Files.createDirectories(directory, DIRECTORY_MODE);
    claim();
    this.lock = lock();
    try {
      for (Path part : List.of(copies, incoming, leaving)) {
        Files.createDirectories(part, DIRECTORY_MODE);
      }
      FileUse.recordNoReads(incoming);
      this.disk = new DirectoryStore(directory);
    } catch (IOException e) {
      lock.close();
      throw e;
    } catch (FsException e) {
      lock.close();
      throw new IOException(directory + ": " + e.getMessage(), e);
    }
  }

  /** Marks a directory that is empty. */
  private void claim() throws IOException {
    Path mark = directory.resolve(MARK);
    if (!Files.exists(mark)) {
      List<String> names = new ArrayList<>(names(directory));
      names.remove(LOST_AND_FOUND);
      if (!names.isEmpty()) {
        throw new IOException(
            directory
                + " contains files but is not a cache of pmfs node-cache; choose an empty"
                + " directory");
      }
      Files.write(mark, "Cache of pmfs node-cache. Put no other files here.\n".getBytes(UTF_8));
    }
  }

  private static List<String> names(Path directory) throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files.map(file -> String.valueOf(file.getFileName())).toList();
    }
  }

  private TierLock lock() throws IOException {
    try {
      return new TierLock(directory);
    } catch (TierInUseException e) {
      throw new IOException(directory + " is in use by another cache", e);
    }
  }

  private static FileAttribute<?> mode(String mode) {
    return PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(mode));
  }

  Path copies() {
    return copies;
  }

  Path index() {
    return directory.resolve("index");
  }

  /** A number unique to this run. */
  long run() {
    return run;
  }

  /**
   * Truncates the incomplete copies of an earlier run. Their readers then read the source.
   *
   * @return files that may still be open
   * @throws IOException also if the disk's file system cannot tell whether files are open
   */
  List<Path> leftovers() throws IOException {
    for (String name : names(incoming)) {
      discard(incoming.resolve(name));
    }
    requireLeases();
    return names(leaving).stream().map(leaving::resolve).toList();
  }

  private void requireLeases() throws IOException {
    Path file = incoming();
    create(file);
    try {
      boolean isSeen;
      try (FileChannel open = FileChannel.open(file)) {
        isSeen = FileUse.isOpen(file) && open.isOpen();
      }
      if (!isSeen || FileUse.isOpen(file)) {
        throw new IOException(directory + ": its file system cannot tell which files are open");
      }
    } catch (FsException e) {
      throw new IOException(
          directory
              + ": its file system has no leases ("
              + e.errno()
              + "); use a local ext4 or XFS",
          e);
    } finally {
      delete(file);
    }
  }

  /** The space for copies: the same fraction of the disk's inodes as of its bytes. */
  Space capacity(long bytes) throws IOException {
    StoreStatistics of = statistics();
    double part = (double) bytes / Math.max(1, of.blocks() * of.fragmentSize());
    long files = (long) (Math.min(1, part) * of.files());
    return new Space(bytes, of.files() == 0 ? Long.MAX_VALUE : Math.max(LEAST_FILES, files));
  }

  private StoreStatistics statistics() throws IOException {
    try {
      return disk.statistics();
    } catch (FsException e) {
      throw new IOException(directory + ": " + e.getMessage(), e);
    }
  }

  boolean hasRoomFor(long bytes) {
    try {
      StoreStatistics of = statistics();
      return of.blocksAvailable() - bytes / of.fragmentSize() >= of.blocks() / FREE_PART
          && of.filesFree() >= of.files() / FREE_PART;
    } catch (IOException e) {
      return false;
    }
  }

  /** A path for a new copy until it is complete. */
  Path incoming() {
    return incoming.resolve(Long.toHexString(serial.incrementAndGet()));
  }

  void create(Path file) throws IOException {
    FileChannel.open(file, Set.of(CREATE_NEW, WRITE), FILE_MODE).close();
  }

  /** The path of a complete copy. */
  Path whole(CopyKey key, int checksum) {
    return copies.resolve(key.path(checksum));
  }

  /** Renames the file of a complete copy; returns its new path. */
  Path keep(Path file, CopyKey key, int checksum) throws IOException {
    Path target = whole(key, checksum);
    Files.createDirectories(target.getParent(), DIRECTORY_MODE);
    return Files.move(file, target, StandardCopyOption.ATOMIC_MOVE);
  }

  private Path leaving() {
    return leaving.resolve("%x-%x".formatted(run, serial.incrementAndGet()));
  }

  /** Moves a file, which may be open, out of the copies; returns its new path. */
  Path leave(Path file) {
    Path target = leaving();
    try {
      return Files.move(file, target, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      log.warn("{}: {}", file, e.getMessage());
      delete(file);
      return target;
    }
  }

  /** Whether a file may be open: true also if that cannot be determined. */
  boolean isOpen(Path file) {
    try {
      return FileUse.isOpen(file);
    } catch (FsException e) {
      return e.errno() != Errno.ENOENT;
    }
  }

  /**
   * Truncates a file. Its readers see a shorter file but never a wrong byte, because nothing writes
   * to it afterwards.
   *
   * @param writer the channel that writes it; null if none does
   */
  void empty(Path file, @Nullable FileChannel writer) {
    try {
      if (writer != null) {
        writer.close(); // waits for a write in progress
      }
    } catch (IOException e) {
      log.warn("{}: {}", file, e.getMessage());
    }
    truncate(file);
  }

  private static void truncate(Path file) {
    try {
      FileChannel.open(file, WRITE, TRUNCATE_EXISTING).close();
    } catch (NoSuchFileException e) {
      // Somebody else has removed it.
    } catch (IOException e) {
      log.warn("{}: {}", file, e.getMessage());
    }
  }

  /**
   * Removes a file that has no readers; truncated first, because an O_PATH descriptor would keep
   * its blocks.
   */
  void discard(Path file) {
    truncate(file);
    delete(file);
  }

  void delete(Path file) {
    try {
      Files.deleteIfExists(file);
    } catch (IOException e) {
      log.warn("{}: {}", file, e.getMessage());
    }
  }

  @Override
  public void close() {
    disk.close();
    lock.close();
  }
}
