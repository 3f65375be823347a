package io.pmfs.cache;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.WRITE;

import io.pmfs.tier.TierInUseException;
import io.pmfs.tier.TierLock;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The files of the copies, below a directory that no other process has. A copy is written below
 * {@code incoming} and renamed into {@code copies} when it is whole; its path there is all that a
 * later run needs to know. Safe for use by many threads.
 */
final class CopyFiles implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(CopyFiles.class);

  private static final FileAttribute<?> DIRECTORY_MODE = mode("rwx------");
  private static final FileAttribute<?> FILE_MODE = mode("rw-------");

  /** This part of the disk stays free. */
  private static final int FREE_PART = 20;

  private final Path copies;
  private final Path incoming;
  private final FileStore disk;
  private final long keepFreeBytes;
  private final TierLock lock;
  private final AtomicLong serial = new AtomicLong();

  /** Opens a directory, which it makes if it is missing. */
  CopyFiles(Path directory) throws IOException {
    this.copies = directory.resolve("copies");
    this.incoming = directory.resolve("incoming");
    Files.createDirectories(copies, DIRECTORY_MODE);
    Files.createDirectories(incoming, DIRECTORY_MODE);
    this.disk = Files.getFileStore(incoming);
    this.keepFreeBytes = disk.getTotalSpace() / FREE_PART;
    this.lock = lock(directory);
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

  /** The copies that an earlier run left, the least recently used one first. */
  List<SharedCopy> find() throws IOException {
    try (DirectoryStream<Path> leftovers = Files.newDirectoryStream(incoming)) {
      for (Path leftover : leftovers) {
        Files.deleteIfExists(leftover);
      }
    }
    return FoundCopies.below(copies);
  }

  boolean hasRoomFor(long bytes) {
    try {
      return disk.getUsableSpace() - bytes >= keepFreeBytes;
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

  /** Renames the file of a copy that is whole; returns its path. */
  Path keep(SharedCopy copy, int checksum) throws IOException {
    Path target = copies.resolve(copy.key.path(copy.user, checksum));
    Files.createDirectories(target.getParent(), DIRECTORY_MODE);
    return Files.move(copy.file, target, StandardCopyOption.ATOMIC_MOVE);
  }

  /** The name that a copy's file has for one of the files of the source. */
  Path name(SharedCopy copy, CopyKey of) {
    return of.equals(copy.key) ? copy.file : copies.resolve(of.path(CopyKey.NOBODY, copy.checksum));
  }

  /** Gives a copy's file a name for another file of the source. */
  Path link(SharedCopy copy, CopyKey of) throws IOException {
    return Files.createLink(name(copy, of), copy.file);
  }

  /** Records when a copy was used. */
  void touch(SharedCopy copy, Instant now) {
    try {
      Files.setLastModifiedTime(copy.file, FileTime.from(now));
    } catch (IOException e) {
      log.debug("{}: {}", copy.file, e.getMessage());
    }
  }

  /** Removes a copy's file with all its names. */
  void remove(SharedCopy copy) {
    copy.equal().forEach(key -> delete(name(copy, key)));
    delete(copy.file); // the last one: the others do not say for whom the file was made
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
    lock.close();
  }
}
