package io.pmfs.tier;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.TRUNCATE_EXISTING;
import static java.nio.file.StandardOpenOption.WRITE;

import io.pmfs.posix.RemainingFiles;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongPredicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies that are separate files, raw from byte 0 or in a standard format. A copy is written below
 * {@code incoming} and renamed into {@code copies} when complete, so a file there is never
 * incomplete. Thread-safe.
 */
final class CopyFiles {
  private static final Logger log = LoggerFactory.getLogger(CopyFiles.class);

  /** Larger writes cost three times the processor time on ext4; see docs/decisions/0020. */
  private static final int WRITE_BYTES = 256 << 10;

  private static final String COPIES = "copies";

  private final Path directory;
  private final Object identity;
  private final Path copies;
  private final Path incoming;
  private final AtomicLong serial = new AtomicLong();

  /** Creates the directories if they do not exist. */
  CopyFiles(Path directory) throws IOException {
    this.directory = directory;
    this.copies = directory.resolve(COPIES);
    this.incoming = directory.resolve("incoming");
    Files.createDirectories(copies, DirectoryTier.DIRECTORY_MODE);
    Files.createDirectories(incoming, DirectoryTier.DIRECTORY_MODE);
    this.identity = identity();
  }

  /** Device, inode number and owner of the tier's directory; the kernel reuses inode numbers. */
  private Object identity() throws IOException {
    Map<String, Object> attributes =
        Files.readAttributes(directory, "unix:fileKey,uid", LinkOption.NOFOLLOW_LINKS);
    return List.copyOf(attributes.values());
  }

  /**
   * Checks that the tier's directory is the one that was opened.
   *
   * @throws IOException if it is not: it was removed, or its disk was unmounted
   */
  void checkPlace() throws IOException {
    Object now;
    try {
      now = identity();
    } catch (NoSuchFileException e) {
      throw new IOException(
          directory + " no longer exists: it was removed, or its disk was unmounted", e);
    }
    if (!now.equals(identity)) {
      throw new IOException(
          directory + " is not the same directory: it was recreated, or its disk was unmounted");
    }
  }

  /** Removes incomplete copies of an earlier session. */
  void clearIncoming() throws IOException {
    try (DirectoryStream<Path> leftovers = Files.newDirectoryStream(incoming)) {
      for (Path leftover : leftovers) {
        Files.deleteIfExists(leftover);
      }
    }
  }

  Path incoming() {
    return incoming;
  }

  boolean isEmpty() throws IOException {
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(copies)) {
      return !entries.iterator().hasNext();
    }
  }

  /**
   * The file of a copy; 256 copies with adjacent numbers share a directory: {@code
   * copies/12ab/34/12ab34ff}.
   */
  Path path(long number) {
    return path(copies, number);
  }

  /** The file of a copy in a tier's directory that another process uses. */
  static Path pathIn(Path directory, long number) {
    return path(directory.resolve(COPIES), number);
  }

  private static Path path(Path copies, long number) {
    String hex = Long.toHexString(number);
    String name = hex.length() < 6 ? "0".repeat(6 - hex.length()) + hex : hex;
    int leaf = name.length() - 2;
    int fan = leaf - 2;
    return copies.resolve(name.substring(0, fan)).resolve(name.substring(fan, leaf)).resolve(name);
  }

  /** The inode number in the name of a file in {@link #copies}; -1 for a foreign file. */
  private long number(Path file) {
    try {
      long number = Long.parseLong(file.getFileName().toString(), 16);
      return file.equals(path(number)) ? number : -1;
    } catch (NumberFormatException e) {
      return -1;
    }
  }

  /** A path that no other unfinished copy has. */
  Path newPath(long number) {
    return incoming.resolve(Long.toHexString(number) + "." + serial.incrementAndGet());
  }

  /** Creates a file in {@link #incoming}, which is recreated if it was removed. */
  FileChannel create(Path path) throws IOException {
    try {
      return createFile(path);
    } catch (NoSuchFileException e) {
      checkPlace();
      Files.createDirectory(incoming, DirectoryTier.DIRECTORY_MODE);
      return createFile(path);
    }
  }

  private static FileChannel createFile(Path path) throws IOException {
    return FileChannel.open(
        path,
        Set.of(CREATE, TRUNCATE_EXISTING, READ, WRITE, LinkOption.NOFOLLOW_LINKS),
        DirectoryTier.FILE_MODE);
  }

  /** Writes all remaining bytes at an offset. */
  static void writeAll(FileChannel file, ByteBuffer source, long offset) throws IOException {
    long position = offset;
    int end = source.limit();
    while (source.position() < end) {
      source.limit(Math.min(end, source.position() + WRITE_BYTES));
      position += file.write(source, position);
    }
  }

  /** Makes a complete file the copy of an inode, replacing an older one. */
  void put(Path path, long number) throws IOException {
    Path target = path(number);
    try {
      Files.move(path, target, StandardCopyOption.ATOMIC_MOVE);
    } catch (NoSuchFileException e) {
      checkPlace();
      Files.createDirectories(target.getParent(), DirectoryTier.DIRECTORY_MODE);
      Files.move(path, target, StandardCopyOption.ATOMIC_MOVE);
    }
  }

  /** Makes a file of another process the copy of an inode, which has none. */
  void link(Path file, long number) throws IOException {
    Path target = path(number);
    Files.createDirectories(target.getParent(), DirectoryTier.DIRECTORY_MODE);
    Files.createLink(target, file);
  }

  /** The size of a copy in bytes, or -1 if there is none. */
  long size(long number) throws IOException {
    Path path = path(number);
    // Usually there is none, and this check is cheaper than an exception.
    if (!Files.exists(path)) {
      return -1;
    }
    try {
      BasicFileAttributes found = Files.readAttributes(path, BasicFileAttributes.class);
      return found.isRegularFile() ? found.size() : -1;
    } catch (NoSuchFileException e) {
      return -1;
    }
  }

  /** Removes a copy; false if there was none. */
  boolean remove(long number) throws IOException {
    Path path = path(number);
    return Files.exists(path) && Files.deleteIfExists(path);
  }

  /**
   * Passes the inode numbers of all copies until the visitor returns false, and removes foreign
   * files.
   */
  void forEach(LongPredicate visitor) throws IOException {
    Files.walkFileTree(
        copies,
        new RemainingFiles() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            long number = number(file);
            if (number > 0 && attributes.isRegularFile()) {
              return visitor.test(number) ? FileVisitResult.CONTINUE : FileVisitResult.TERMINATE;
            }
            Files.deleteIfExists(file);
            return FileVisitResult.CONTINUE;
          }
        });
  }

  static void closeQuietly(FileChannel file) {
    try {
      file.close();
    } catch (IOException e) {
      log.debug("closing a copy: {}", e.getMessage());
    }
  }
}
