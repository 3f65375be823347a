package io.pmfs.posix;

import com.google.common.cache.CacheBuilder;
import com.google.common.cache.CacheLoader;
import com.google.common.cache.LoadingCache;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How much memory the page cache may use for what a process reads: what the machine has available,
 * at most what the process's control groups leave. The kernel charges a page of a file to the group
 * that reads it first. Thread-safe.
 */
public final class AvailableMemory {
  private static final Logger log = LoggerFactory.getLogger(AvailableMemory.class);

  /** To read the groups of a job takes longer than to open a file. */
  private static final Duration FRESH = Duration.ofSeconds(1);

  private static final int MOST_READERS = 1024;

  /** Of this machine. */
  public static final AvailableMemory HERE = new AvailableMemory(Path.of("/"));

  private final Path root;

  private final LoadingCache<Long, Long> byReader =
      CacheBuilder.newBuilder()
          .maximumSize(MOST_READERS)
          .expireAfterWrite(FRESH)
          .build(CacheLoader.from(this::measure));

  /**
   * Memory of a machine.
   *
   * @param root the directory that holds its proc and sys
   */
  public AvailableMemory(Path root) {
    this.root = root;
  }

  /**
   * Bytes for what a reader reads; up to a second old.
   *
   * @param reader its process or thread id; 0 if unknown, as from another pid namespace
   */
  public long bytes(long reader) {
    return byReader.getUnchecked(reader);
  }

  private long measure(long reader) {
    return reader == 0 ? ofMachine() : Math.min(ofMachine(), ofGroups(reader));
  }

  private long ofGroups(long process) {
    try {
      return MemoryGroup.of(root, Long.toString(process)).stream()
          .mapToLong(MemoryGroup::available)
          .min()
          .orElse(MemoryGroup.UNLIMITED);
    } catch (IOException | RuntimeException e) {
      // A group may have a name that is no path in this locale: no open fails for that.
      log.debug("the groups of process {}: {}", process, e.getMessage());
      return MemoryGroup.UNLIMITED;
    }
  }

  /** MemAvailable of proc_meminfo(5); practically unlimited if it cannot be read. */
  private long ofMachine() {
    try {
      for (String line : Files.readAllLines(root.resolve("proc/meminfo"))) {
        if (line.startsWith("MemAvailable:")) {
          return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
        }
      }
    } catch (IOException | NumberFormatException e) {
      log.debug("/proc/meminfo: {}", e.getMessage());
    }
    return MemoryGroup.UNLIMITED;
  }
}
