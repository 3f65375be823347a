package io.pmfs.tier;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import io.pmfs.memory.ReadResult;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Bundles as files in a directory. Called by one thread at a time, from {@link Bundles}. */
final class BundleFiles implements BundleStore {
  private static final Logger log = LoggerFactory.getLogger(BundleFiles.class);

  /** In the tier's directory. */
  static final String DIRECTORY = "bundles";

  private final Path directory;
  private final boolean synced;

  /**
   * The last number used. No number is reused: an extent that is read late must not point to
   * another copy.
   */
  private long lastNumber;

  /**
   * Bundles in a directory, which is created if absent.
   *
   * @param synced whether written bytes must survive a power failure
   */
  BundleFiles(Path directory, boolean synced) throws IOException {
    this.directory = directory;
    this.synced = synced;
    Files.createDirectories(directory, DirectoryTier.DIRECTORY_MODE);
  }

  @Override
  public List<StoredBundle> list() throws IOException {
    List<StoredBundle> bundles = new ArrayList<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory)) {
      for (Path file : files) {
        long number = number(file);
        if (number > 0) {
          bundles.add(found(file, number));
          lastNumber = Math.max(lastNumber, number);
        }
      }
    }
    bundles.sort(Comparator.comparingLong(StoredBundle::number));
    return bundles;
  }

  @Override
  public StoredBundle create() throws IOException {
    lastNumber++;
    BundleFile bundle =
        new BundleFile(directory.resolve(name(lastNumber)), lastNumber, 0, null, false);
    bundle.create();
    return bundle;
  }

  @Override
  public StoredBundle link(Path file) throws IOException {
    lastNumber++;
    Path link = directory.resolve(name(lastNumber));
    Files.createLink(link, file);
    return found(link, lastNumber);
  }

  private BundleFile found(Path file, long number) throws IOException {
    BasicFileAttributes found = Files.readAttributes(file, BasicFileAttributes.class);
    boolean isShared = (Integer) Files.getAttribute(file, "unix:nlink") > 1;
    return new BundleFile(file, number, found.size(), found.fileKey(), isShared);
  }

  static String name(long number) {
    return "%06x".formatted(number);
  }

  /** The number in a file's name; -1 for a foreign file. */
  private static long number(Path file) {
    String name = file.getFileName().toString();
    try {
      long number = Long.parseLong(name, 16);
      return number > 0 && name.equals(name(number)) ? number : -1;
    } catch (NumberFormatException e) {
      return -1;
    }
  }

  /** A bundle's file, open from its first use until it is closed. */
  private final class BundleFile implements StoredBundle {
    private final Path path;
    private final long number;
    private final long size;
    private final boolean isShared;
    private @Nullable Object identity; // GUARDED_BY(this); device and inode number
    private @Nullable FileChannel file; // GUARDED_BY(this)

    BundleFile(Path path, long number, long size, @Nullable Object identity, boolean isShared) {
      this.path = path;
      this.number = number;
      this.size = size;
      this.identity = identity;
      this.isShared = isShared;
    }

    synchronized void create() throws IOException {
      try {
        createFile();
      } catch (NoSuchFileException e) {
        // The empty directory was removed; the tier's own directory must exist.
        Files.createDirectory(directory, DirectoryTier.DIRECTORY_MODE);
        createFile();
      }
    }

    private void createFile() throws IOException { // GUARDED_BY(this)
      file = FileChannel.open(path, Set.of(READ, WRITE, CREATE_NEW), DirectoryTier.FILE_MODE);
      identity = attributes().fileKey();
    }

    private BasicFileAttributes attributes() throws IOException {
      return Files.readAttributes(path, BasicFileAttributes.class);
    }

    @Override
    public long found() throws IOException {
      try {
        BasicFileAttributes now = attributes();
        return isSame(now.fileKey()) ? now.size() : -1;
      } catch (NoSuchFileException e) {
        return -1;
      }
    }

    private synchronized boolean isSame(@Nullable Object now) {
      return identity != null && identity.equals(now);
    }

    @Override
    public long number() {
      return number;
    }

    @Override
    public long size() {
      return size;
    }

    @Override
    public boolean isShared() {
      return isShared;
    }

    @Override
    public boolean isFile(Object key) {
      return isSame(key);
    }

    @Override
    public long limit() {
      return Long.MAX_VALUE;
    }

    @Override
    public long charge(long sizeBytes) {
      return Room.charge(sizeBytes);
    }

    @Override
    public void write(long offset, ByteBuffer source) throws IOException {
      FileChannel open = file();
      CopyFiles.writeAll(open, source, offset);
      if (synced) {
        open.force(false);
      }
    }

    @Override
    public Ranges open() throws IOException {
      FileChannel open = file();
      return (offset, count) -> new ReadResult.FileRange(open, offset, count);
    }

    /** The file, opened again if an interrupted thread has closed it. */
    private synchronized FileChannel file() throws IOException {
      FileChannel open = file;
      if (open == null || !open.isOpen()) {
        open = FileChannel.open(path, READ, WRITE);
        file = open;
      }
      return open;
    }

    @Override
    public void delete() {
      try {
        Files.deleteIfExists(path);
      } catch (IOException e) {
        log.warn("cannot remove {}: {}", path, e.getMessage());
      }
    }

    @Override
    public synchronized void close() {
      FileChannel open = file;
      file = null;
      if (open != null) {
        try {
          open.close();
        } catch (IOException e) {
          log.debug("closing {}: {}", path, e.getMessage());
        }
      }
    }
  }
}
