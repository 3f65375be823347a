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
 * The files of the copies, below a directory that no other process has and that bears the mark of a
 * node's cache. A copy is written below {@code incoming} and renamed into {@code copies} when it is
 * whole. A file that is of no use any more and that somebody may have open lies below {@code
 * leaving}. Safe for use by many threads.
 */
final class CopyFiles implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(CopyFiles.class);

  /** Without this file, a directory with anything in it is somebody else's. */
  static final String MARK = "pmfs-node-cache";

  private static final String LOST_AND_FOUND = "lost+found";

  private static final FileAttribute<?> DIRECTORY_MODE = mode("rwx------");
  private static final FileAttribute<?> FILE_MODE = mode("rw-------");

  /** This part of the disk's bytes and of its inodes stays free. */
  private static final int FREE_PART = 20;

  /** A small capacity limits its own files only. */
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
   * Opens a directory, which it makes if it is missing.
   *
   * @throws IOException if it is another program's or in use, or cannot be used
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
            directory + " has files that are no copies of a node's cache; give an empty directory");
      }
      Files.write(mark, "Copies of pmfs node-cache. Nothing else may lie here.\n".getBytes(UTF_8));
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

  /** A number that no other run has. */
  long run() {
    return run;
  }

  /**
   * Removes what an earlier run had not finished. Whoever reads such a file finds it shorter, and
   * reads the source.
   *
   * @return files that somebody may still read
   * @throws IOException also if this disk does not show whether files are open
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
        throw new IOException(directory + ": its disk does not show which files are open");
      }
    } catch (FsException e) {
      throw new IOException(
          directory + ": its disk has no leases (" + e.errno() + "); use a local ext4 or XFS", e);
    } finally {
      delete(file);
    }
  }

  /** How much copies may take: as large a part of the disk's inodes as of its bytes. */
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

  /** Whether the disk has room for one more file of so many bytes. */
  boolean hasRoomFor(long bytes) {
    try {
      StoreStatistics of = statistics();
      return of.blocksAvailable() - bytes / of.fragmentSize() >= of.blocks() / FREE_PART
          && of.filesFree() >= of.files() / FREE_PART;
    } catch (IOException e) {
      return false;
    }
  }

  /** The path of a new copy until it is whole. */
  Path incoming() {
    return incoming.resolve(Long.toHexString(serial.incrementAndGet()));
  }

  void create(Path file) throws IOException {
    FileChannel.open(file, Set.of(CREATE_NEW, WRITE), FILE_MODE).close();
  }

  /** The path of a whole copy. */
  Path whole(CopyKey key, int checksum) {
    return copies.resolve(key.path(checksum));
  }

  /** Renames the file of a copy that is whole; returns its path. */
  Path keep(Path file, CopyKey key, int checksum) throws IOException {
    Path target = whole(key, checksum);
    Files.createDirectories(target.getParent(), DIRECTORY_MODE);
    return Files.move(file, target, StandardCopyOption.ATOMIC_MOVE);
  }

  private Path leaving() {
    return leaving.resolve("%x-%x".formatted(run, serial.incrementAndGet()));
  }

  /** Takes a file out of the copies; returns its new path. It may be open. */
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

  /** Whether anybody may have a file open; also if that cannot be found out. */
  boolean isOpen(Path file) {
    try {
      return FileUse.isOpen(file);
    } catch (FsException e) {
      return e.errno() != Errno.ENOENT;
    }
  }

  /**
   * Frees the room of a file. Whoever reads it finds it shorter, but never a wrong byte: it is not
   * written any more.
   *
   * @param writer what writes it; null for nothing
   */
  void empty(Path file, @Nullable FileChannel writer) {
    try {
      if (writer != null) {
        writer.close(); // waits for a write under way
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

  /** Removes a file that nobody reads: its room is free also if it is open by O_PATH. */
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
