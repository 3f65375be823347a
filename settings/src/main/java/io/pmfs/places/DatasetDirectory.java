package io.pmfs.places;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.TRUNCATE_EXISTING;
import static java.nio.file.StandardOpenOption.WRITE;

import com.google.common.io.MoreFiles;
import com.google.common.io.RecursiveDeleteOption;
import io.pmfs.posix.RemainingFiles;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The directory of one dataset below a tier or a state directory. The mount that uses it locks one
 * of its files.
 *
 * @param lock the name of that file
 */
public record DatasetDirectory(Path path, String lock) {
  /** A file that contains the path of the directory's source. */
  private static final String SOURCE = "source";

  /** A file that exists while the directory may hold files that are not at the source. */
  private static final String UNSAVED = "not-at-the-source";

  /** The allocation unit of ext4 and XFS. */
  private static final int BLOCK_BYTES = 4096;

  /**
   * The directories of all datasets below a place: those that contain the lock file. Excludes other
   * users' directories in a sticky place.
   */
  static List<DatasetDirectory> below(Path place, String lock) throws IOException {
    OwnPath.ofProcess().check(place);
    List<DatasetDirectory> found = new ArrayList<>();
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(place)) {
      for (Path entry : entries) {
        if (OwnPath.ofProcess().isOwnEntry(entry)
            && Files.isRegularFile(entry.resolve(lock), LinkOption.NOFOLLOW_LINKS)) {
          found.add(new DatasetDirectory(entry, lock));
        }
      }
    } catch (NoSuchFileException e) {
      return List.of();
    }
    return found;
  }

  /** Records the path of the directory's source. */
  public void label(String source) throws IOException {
    if (!source.equals(source())) {
      write(SOURCE, source + "\n");
    }
  }

  private void write(String name, String text) throws IOException {
    Files.writeString(
        path.resolve(name),
        text,
        UTF_8,
        CREATE,
        WRITE,
        TRUNCATE_EXISTING,
        LinkOption.NOFOLLOW_LINKS);
  }

  private @Nullable String source() {
    Path file = path.resolve(SOURCE);
    try {
      return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
          ? Files.readString(file, UTF_8).strip()
          : null;
    } catch (IOException e) {
      return null;
    }
  }

  StoredDataset stored(String what) throws IOException {
    Path place = path.getParent();
    return new StoredDataset(
        path.getFileName().toString(),
        source(),
        place == null ? path : place,
        what,
        diskBytes(),
        lastUsed(),
        isInUse(),
        isUnsaved());
  }

  /**
   * The disk space of everything in the directory, each file rounded up to a block. Of a copy that
   * other sets share it counts a part: together they count it once.
   */
  private long diskBytes() throws IOException {
    long[] bytes = {0};
    Files.walkFileTree(
        path,
        new RemainingFiles() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            try {
              Object links = Files.getAttribute(file, "unix:nlink", LinkOption.NOFOLLOW_LINKS);
              long blocks = (attributes.size() + BLOCK_BYTES - 1) / BLOCK_BYTES;
              bytes[0] += blocks * BLOCK_BYTES / Math.max(1, (Integer) links);
            } catch (NoSuchFileException e) {
              return visitFileFailed(file, e);
            }
            return FileVisitResult.CONTINUE;
          }
        });
    return bytes[0];
  }

  /** A tier touches its lock; RocksDB creates files each time it is opened. */
  private Instant lastUsed() throws IOException {
    Instant locked = Files.getLastModifiedTime(path.resolve(lock)).toInstant();
    Instant changed = Files.getLastModifiedTime(path).toInstant();
    return locked.isAfter(changed) ? locked : changed;
  }

  private boolean isInUse() throws IOException {
    try (FileChannel file =
        FileChannel.open(path.resolve(lock), WRITE, LinkOption.NOFOLLOW_LINKS)) {
      return !tryLock(file);
    } catch (NoSuchFileException e) {
      return false;
    }
  }

  /** Locks the file; false if a mount holds the lock. */
  private static boolean tryLock(FileChannel file) throws IOException {
    try {
      return file.tryLock() != null;
    } catch (OverlappingFileLockException e) {
      return false; // locked by this process
    }
  }

  /** Whether it may hold files that are not at the source. */
  public boolean isUnsaved() {
    return !Files.notExists(path.resolve(UNSAVED), LinkOption.NOFOLLOW_LINKS);
  }

  /** Marks the directory: it may now hold files that are not at the source. */
  public void markUnsaved() throws IOException {
    if (!isUnsaved()) {
      write(
          UNSAVED,
          "This directory holds files that are not at the source yet. pmfs drain brings them"
              + " there.\n");
      try (FileChannel directory = FileChannel.open(path, READ)) {
        directory.force(true);
      }
    }
  }

  /** Removes the mark: all files are at the source. */
  public void clearUnsaved() throws IOException {
    Files.deleteIfExists(path.resolve(UNSAVED));
  }

  /**
   * Creates the directory if it is missing; else checks it and its content.
   *
   * @throws NotOwnException if it belongs to, or could have been changed by, another user
   */
  public Path make() throws IOException {
    return OwnPath.ofProcess().filledDirectory(path);
  }

  /**
   * Creates the directory, and locks it until the result is closed.
   *
   * @return null if a mount holds the lock
   */
  @Nullable
  public FileChannel hold() throws IOException {
    make();
    FileChannel file =
        FileChannel.open(path.resolve(lock), CREATE, WRITE, LinkOption.NOFOLLOW_LINKS);
    if (!tryLock(file)) {
      file.close();
      return null;
    }
    Files.setLastModifiedTime(path.resolve(lock), FileTime.from(Instant.now()));
    return file;
  }

  /** Thrown instead of removing the only copy of files. */
  static final class UnsavedException extends IOException {
    private UnsavedException() {
      super("holds files that are not at the source");
    }
  }

  /**
   * Removes the directory; false, with nothing removed, if a mount uses it.
   *
   * @throws UnsavedException if it holds files that are not at the source; nothing was removed then
   */
  public boolean purge() throws IOException {
    OwnPath.ofProcess().existing(path);
    // Programs that delete old files may have deleted the lock.
    try (FileChannel file =
        FileChannel.open(path.resolve(lock), CREATE, WRITE, LinkOption.NOFOLLOW_LINKS)) {
      if (!tryLock(file)) {
        return false;
      }
      if (isUnsaved()) {
        throw new UnsavedException();
      }
      // Keep the lock until everything else is removed, so that no mount starts meanwhile.
      try (DirectoryStream<Path> entries = Files.newDirectoryStream(path)) {
        for (Path entry : entries) {
          if (!entry.endsWith(lock)) {
            MoreFiles.deleteRecursively(entry, RecursiveDeleteOption.ALLOW_INSECURE);
          }
        }
      }
      MoreFiles.deleteRecursively(path, RecursiveDeleteOption.ALLOW_INSECURE);
    } catch (NoSuchFileException e) {
      return true;
    }
    return true;
  }
}
