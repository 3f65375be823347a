package io.pmfs.fuse;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.system.Priority;
import io.pmfs.posix.DaemonThread;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Chooses between page-cache mode and passthrough, for each file and for the session.
 *
 * <ul>
 *   <li>A large raw copy is passed through as soon as it is opened, which is never slower.
 *   <li>The session chooses when enough different copies were opened. Page-cache mode saves the
 *       open request of every file; passthrough saves copying raw bytes. So the raw bytes per copy
 *       decide. While these are many, passthrough is in effect even before the choice.
 *   <li>The session chooses page-cache mode while files are still read for the first time, if all
 *       names are known and their copies would lead to the same choice.
 * </ul>
 *
 * <p>Page-cache mode is final: once the kernel opens files by itself, it does not ask again.
 * docs/results/read-modes.md derives the limits. Thread-safe.
 */
final class ReadModeChoice {
  private static final Logger log = LoggerFactory.getLogger(ReadModeChoice.class);

  /**
   * From this file size, or this many raw bytes per copy, passthrough was as fast or faster with
   * any amount of memory.
   */
  static final long LARGE_FILE_BYTES = 512L << 10;

  /**
   * From this many raw bytes per copy, passthrough was faster if memory held less than two thirds
   * of the copies.
   */
  static final long LARGE_FILE_BYTES_SHORT_MEMORY = 64L << 10;

  /** If the copies take at most this many halves of the memory, page-cache hits outweigh misses. */
  static final int HALVES_OF_MEMORY = 3;

  // An eighth of all copies is opened before the choice, so that a few files that a job opens
  // repeatedly are not mistaken for its dataset.
  private static final int FEWEST = 100;
  private static final int MOST = 10_000;
  private static final int SHARE = 8;

  /**
   * After this many opens of files without a copy, and each time after four times as many, a thread
   * examines all names. A job that lists its dataset first then knows at least twice as many names;
   * one that reads while it lists may know only the smallest files.
   */
  private static final int FIRST_LOOK = 128;

  private static final int LATER_LOOKS = 4;
  private static final int KNOWN_FOR_EACH_OPENED = 2;

  private final PmfsFileSystem fileSystem;
  private final LongUnaryOperator availableMemory;
  private final Set<Long> opened = new HashSet<>(); // GUARDED_BY(this)
  private long largeRaw; // GUARDED_BY(this); bytes of large files that were opened, as raw copies
  private long largeOthers; // GUARDED_BY(this); and as others
  private final AtomicLong opensWithoutCopy = new AtomicLong();
  private final AtomicLong nextLook = new AtomicLong(FIRST_LOOK);
  private volatile boolean isFinal;
  private volatile @Nullable Chosen chosen;

  /** A read mode and the reason for it. */
  record Chosen(ReadMode mode, String reason) {}

  /**
   * Starts without a choice.
   *
   * @param availableMemory bytes that the page cache may use for a reader, by its process id
   */
  ReadModeChoice(PmfsFileSystem fileSystem, LongUnaryOperator availableMemory) {
    this.fileSystem = fileSystem;
    this.availableMemory = availableMemory;
  }

  /** The mode of the session; null if none is chosen yet. */
  @Nullable Chosen chosen() {
    return chosen;
  }

  /**
   * Called when a file with a whole copy is opened.
   *
   * @param size of the file in bytes
   * @param raw whether the kernel could read the copy without the daemon
   * @param reader the process that opens it; 0 if unknown
   * @return whether to pass the file through
   */
  boolean copyOpened(long inode, long size, boolean raw, long reader) {
    Chosen now = isFinal ? chosen : count(inode, size, raw, reader);
    return raw && passes(now, size);
  }

  /** Whether to pass through a file of that size that has no copy in this mount. */
  boolean passes(long size) {
    return passes(chosen, size);
  }

  private static boolean passes(@Nullable Chosen now, long size) {
    return now == null ? size >= LARGE_FILE_BYTES : now.mode() == ReadMode.PASSTHROUGH;
  }

  /** Called when a file without a copy is opened. */
  void fileOpened(long reader) {
    if (isFinal) {
      return;
    }
    long count = opensWithoutCopy.incrementAndGet();
    long look = nextLook.get();
    if (count >= look
        && nextLook.compareAndSet(look, look * LATER_LOOKS)
        && fileSystem.lastNumber() >= count * KNOWN_FOR_EACH_OPENED) {
      // A million names take a second, which no reader should wait for.
      try {
        DaemonThread.start("read-mode", () -> look(reader));
      } catch (OutOfMemoryError e) {
        log.debug("no thread to predict copies: {}", e.toString());
      }
    }
  }

  private void look(long reader) {
    Priority.lower();
    try {
      PmfsFileSystem.Copied expected = fileSystem.expectedCopies();
      if (expected != null) {
        expect(expected, reader);
      }
    } catch (RuntimeException e) {
      log.debug("cannot predict copies", e);
    }
  }

  private synchronized void expect(PmfsFileSystem.Copied expected, long reader) {
    long rawMean = expected.fileBytes() / Math.max(1, expected.files());
    Chosen then =
        choose(expected.files(), expected.bytes(), rawMean, availableMemory.applyAsLong(reader));
    if (!isFinal && then.mode() == ReadMode.PAGE_CACHE) {
      choose(then);
    }
  }

  private synchronized @Nullable Chosen count(long inode, long size, boolean raw, long reader) {
    if (isFinal || opened.contains(inode)) {
      return chosen;
    }
    PmfsFileSystem.Copied copied = fileSystem.copied();
    if (copied.fileBytes() < 0) {
      return chosen;
    }
    opened.add(inode);
    if (size >= LARGE_FILE_BYTES) {
      largeRaw += raw ? size : 0;
      largeOthers += raw ? 0 : size;
    }
    // Copies that are separate files may be compressed.
    double rawShare = largeOthers == 0 ? 1 : largeRaw / (double) (largeRaw + largeOthers);
    long rawMean = (long) (copied.fileBytes() * rawShare / Math.max(1, copied.files()));
    if (opened.size() < Math.min(MOST, Math.max(FEWEST, copied.files() / SHARE))) {
      chosen = rawMean >= LARGE_FILE_BYTES ? large(rawMean) : null;
      return chosen;
    }
    Chosen now =
        choose(copied.files(), copied.bytes(), rawMean, availableMemory.applyAsLong(reader));
    choose(now);
    return now;
  }

  private void choose(Chosen now) { // GUARDED_BY(this)
    log.info("read mode {}: {}", now.mode().word(), now.reason());
    chosen = now;
    isFinal = true;
    opened.clear();
  }

  private static Chosen large(long rawMean) {
    return new Chosen(
        ReadMode.PASSTHROUGH,
        "the kernel can read %,d KiB of each copy on average".formatted(rawMean >> 10));
  }

  /**
   * Chooses for that many copies with that many bytes in total.
   *
   * @param rawMean raw bytes per copy, in files of their own
   */
  static Chosen choose(long files, long bytes, long rawMean, long memory) {
    if (rawMean >= LARGE_FILE_BYTES) {
      return large(rawMean);
    }
    if (rawMean == 0) {
      return new Chosen(ReadMode.PAGE_CACHE, "most copies are small, compressed or in a pool");
    }
    boolean fits = bytes / HALVES_OF_MEMORY <= memory / 2;
    boolean passes = !fits && rawMean >= LARGE_FILE_BYTES_SHORT_MEMORY;
    return new Chosen(
        passes ? ReadMode.PASSTHROUGH : ReadMode.PAGE_CACHE,
        "the kernel can read %,d KiB of each copy on average; %,d copies take %.1f GiB; %.1f GiB of memory are available"
            .formatted(rawMean >> 10, files, gib(bytes), gib(memory)));
  }

  private static double gib(long bytes) {
    return bytes / (double) (1L << 30);
  }
}
