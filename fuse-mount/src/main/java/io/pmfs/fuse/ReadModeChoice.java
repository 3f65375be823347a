package io.pmfs.fuse;

import io.pmfs.fs.PmfsFileSystem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Chooses the read mode of a session from the sizes of its copies, once they are read again; until
 * then files are opened and read through the daemon. Chooses only once: the kernel does not ask
 * again after it was told to open files by itself. docs/benchmarking.md derives the limits. Safe
 * for use by many threads.
 */
final class ReadModeChoice {
  private static final Logger log = LoggerFactory.getLogger(ReadModeChoice.class);

  /** From this size on, passthrough was as fast or faster, whatever was in memory. */
  static final long LARGE_FILE_BYTES = 512L << 10;

  /**
   * If the copies take at most this many halves of the memory, what the page cache holds outweighs
   * what it does not.
   */
  static final int HALVES_OF_MEMORY = 3;

  // How many copies must have been opened: an eighth of all, so that a few files that a job opens
  // repeatedly are not taken for its dataset.
  private static final long FEWEST_OPENS = 100;
  private static final long MOST_OPENS = 10_000;
  private static final int SHARE = 8;

  private final PmfsFileSystem fileSystem;
  private final LongSupplier availableMemory;
  private final AtomicLong opens = new AtomicLong();
  private final AtomicLong rawOpens = new AtomicLong();
  private volatile @Nullable Chosen chosen;

  /** A read mode and the reason for it. */
  record Chosen(ReadMode mode, String reason) {}

  /**
   * Starts without a choice.
   *
   * @param availableMemory bytes that the page cache may use
   */
  ReadModeChoice(PmfsFileSystem fileSystem, LongSupplier availableMemory) {
    this.fileSystem = fileSystem;
    this.availableMemory = availableMemory;
  }

  /** The chosen mode; null if none is chosen yet. */
  @Nullable Chosen chosen() {
    return chosen;
  }

  /**
   * Call when a file with a whole copy is opened; null if it is too early to choose.
   *
   * @param raw whether the kernel could read the copy without the daemon
   */
  @Nullable Chosen copyOpened(boolean raw) {
    Chosen before = chosen;
    if (before != null) {
      return before;
    }
    long count = opens.incrementAndGet();
    long rawCount = raw ? rawOpens.incrementAndGet() : rawOpens.get();
    if (count < FEWEST_OPENS) {
      return null;
    }
    PmfsFileSystem.Copied copied = fileSystem.copied();
    if (count < Math.min(MOST_OPENS, copied.files() / SHARE)) {
      return null;
    }
    Chosen now =
        rawCount < count / 2
            ? new Chosen(ReadMode.PAGE_CACHE, "most copies are small, compressed or in a pool")
            : choose(copied.files(), copied.bytes(), availableMemory.getAsLong());
    synchronized (this) {
      if (chosen == null) {
        chosen = now;
        log.info("read mode {}: {}", now.mode().word(), now.reason());
      }
      return chosen;
    }
  }

  /** Chooses for that many copies with that many bytes in total. */
  static Chosen choose(long files, long bytes, long memory) {
    if (bytes / Math.max(1, files) >= LARGE_FILE_BYTES) {
      return new Chosen(
          ReadMode.PASSTHROUGH,
          "the copies have %,d KiB on average".formatted((bytes / files) >> 10));
    }
    boolean fits = bytes / HALVES_OF_MEMORY <= memory / 2;
    return new Chosen(
        fits ? ReadMode.PAGE_CACHE : ReadMode.PASSTHROUGH,
        "%,d copies of %d KiB on average take %.1f GiB; %.1f GiB of memory are available"
            .formatted(files, (bytes / Math.max(1, files)) >> 10, gib(bytes), gib(memory)));
  }

  private static double gib(long bytes) {
    return bytes / (double) (1L << 30);
  }

  /** MemAvailable of proc_meminfo(5); practically unlimited if it cannot be read. */
  static long availableMemory() {
    try {
      for (String line : Files.readAllLines(Path.of("/proc/meminfo"))) {
        if (line.startsWith("MemAvailable:")) {
          return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
        }
      }
    } catch (IOException | NumberFormatException e) {
      log.debug("/proc/meminfo: {}", e.getMessage());
    }
    return Long.MAX_VALUE;
  }
}
