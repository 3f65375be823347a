package io.pmfs.daemon.requests;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.LinkOption.NOFOLLOW_LINKS;
import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static java.nio.file.StandardOpenOption.APPEND;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The file of an access log, with older ones beside it, of which {@code FILE.1} is the latest. Only
 * its owner may read it, and one daemon at a time writes it. Requests that cannot be written are
 * counted; once writing works again, a line in the file states how many are missing. The daemon's
 * log reports them at most once a minute. A file that was moved or removed is created again. Not
 * thread-safe, except {@link #missing}.
 */
public final class AccessLogFile implements LineReader, AutoCloseable {
  /** The largest file, in bytes. */
  public static final long MAX_BYTES = 100 << 20;

  public static final int OLDER_FILES = 7;

  private static final Logger log = LoggerFactory.getLogger(AccessLogFile.class);
  private static final Duration LOOK_INTERVAL = Duration.ofSeconds(1);
  private static final Duration WARNING_INTERVAL = Duration.ofMinutes(1);

  private final Path file;
  private final Place place;
  private final long maxBytes;
  private final int olderFiles;
  private final InstantSource clock;
  private @Nullable FileChannel channel;
  private @Nullable Object key;
  private long size;
  private Instant looked = Instant.MIN;
  private Instant warned = Instant.MIN;
  private boolean isSaidToFail;
  private long unwritten;
  private final LongAdder missing = new LongAdder();

  /** Checks and, if necessary, creates the directory of the file. */
  @FunctionalInterface
  public interface Place {
    /**
     * The path at which the file is opened.
     *
     * @throws IOException if another user could replace the file
     */
    Path of(Path file) throws IOException;
  }

  /**
   * Does not open the file.
   *
   * @param place called each time before the file is opened
   * @param maxBytes the size at which a new file is started
   * @param olderFiles how many older files are kept
   */
  public AccessLogFile(Path file, Place place, long maxBytes, int olderFiles, InstantSource clock) {
    this.file = file;
    this.place = place;
    this.maxBytes = maxBytes;
    this.olderFiles = olderFiles;
    this.clock = clock;
  }

  public Path file() {
    return file;
  }

  /** How many requests could not be written since the file was opened. */
  public long missing() {
    return missing.sum();
  }

  /**
   * Opens the file for appending; creates it and its directory if necessary. Without this call the
   * first line opens it.
   *
   * @throws IOException if it cannot be written, is not a regular file, or another daemon writes it
   */
  public void open() throws IOException {
    Path own = place.of(file);
    if (Files.exists(own, NOFOLLOW_LINKS) && !Files.isRegularFile(own, NOFOLLOW_LINKS)) {
      throw new FileSystemException(file.toString(), null, "not a regular file"); // a FIFO blocks
    }
    FileChannel opened =
        FileChannel.open(
            own,
            Set.of(CREATE, WRITE, APPEND, NOFOLLOW_LINKS),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    try {
      lock(opened);
      size = opened.size();
      key = keyOf(file);
    } catch (IOException e) {
      opened.close();
      throw e;
    }
    FileChannel before = channel;
    channel = opened;
    if (before != null) {
      before.close();
    }
  }

  /** Takes a lock that is held while the file is open. */
  private void lock(FileChannel opened) throws IOException {
    try {
      if (opened.tryLock() != null) {
        return;
      }
    } catch (OverlappingFileLockException e) {
      log.trace("{}: another mount of this process writes it", file);
    }
    throw new FileSystemException(file.toString(), null, "another mount writes its requests to it");
  }

  private static Object keyOf(Path file) throws IOException {
    Object key = Files.readAttributes(file, BasicFileAttributes.class, NOFOLLOW_LINKS).fileKey();
    return key == null ? file : key;
  }

  @Override
  public void take(String lines, int requests) {
    try {
      openIfGone();
      write(lines);
      if (isSaidToFail) {
        isSaidToFail = false;
        log.info("{}: access log: writing again; {} requests are missing", file, unwritten);
      }
      unwritten = 0;
    } catch (IOException e) {
      unwritten += requests;
      missing.add(requests);
      fail(e);
    }
  }

  /** The file may have been removed, or moved, for example by logrotate. */
  private void openIfGone() throws IOException {
    Instant now = clock.instant();
    if (channel != null && Duration.between(looked, now).compareTo(LOOK_INTERVAL) < 0) {
      return;
    }
    looked = now;
    if (channel != null && isThere()) {
      return;
    }
    open();
  }

  private boolean isThere() throws IOException {
    try {
      return keyOf(file).equals(key);
    } catch (NoSuchFileException e) {
      return false;
    }
  }

  private void write(String lines) throws IOException {
    String note =
        unwritten == 0
            ? ""
            : new LogLine.Missing(clock.instant(), unwritten, "the file could not be written")
                    .text()
                + "\n";
    byte[] bytes = (note + lines).getBytes(UTF_8);
    if (size > 0 && size + bytes.length > maxBytes) {
      rotate();
    }
    FileChannel to = channel;
    if (to == null) {
      throw new IOException("not open");
    }
    ByteBuffer buffer = ByteBuffer.wrap(bytes);
    try {
      while (buffer.hasRemaining()) {
        to.write(buffer);
      }
      size += bytes.length;
    } catch (IOException e) {
      to.truncate(size); // leaves no partial line
      throw e;
    }
  }

  private void rotate() throws IOException {
    if (!isThere()) {
      open(); // otherwise each failure would move the older files again
      return;
    }
    for (int i = olderFiles - 1; i >= 1; i--) {
      if (Files.exists(older(i), NOFOLLOW_LINKS)) {
        Files.move(older(i), older(i + 1), ATOMIC_MOVE);
      }
    }
    Files.move(file, older(1), ATOMIC_MOVE);
    open();
  }

  private Path older(int number) {
    return file.resolveSibling(file.getFileName() + "." + number);
  }

  private void fail(IOException e) {
    Instant now = clock.instant();
    if (Duration.between(warned, now).compareTo(WARNING_INTERVAL) >= 0) {
      warned = now;
      isSaidToFail = true;
      log.warn(
          "{}: access log: cannot be written: {}; until then requests are served but not logged",
          file,
          reason(e));
    }
  }

  private static String reason(IOException e) {
    String reason = e instanceof FileSystemException f ? f.getReason() : e.getMessage();
    return reason == null ? e.getClass().getSimpleName() : reason;
  }

  @Override
  public void close() {
    FileChannel open = channel;
    channel = null;
    if (open == null) {
      return;
    }
    try (open) {
      log.debug("{}: access log: {} requests are missing in it", file, missing());
    } catch (IOException e) {
      log.warn("{}: access log: {}", file, reason(e));
    }
  }
}
