package io.pmfs.tasks;

import org.jspecify.annotations.Nullable;

/**
 * What a task does, and with which files. Paths are relative to the dataset's root; an empty path
 * is the root.
 */
public sealed interface TaskRequest {
  /** The paths, processed in this order; a directory stands for everything below it. */
  TaskPaths paths();

  /** The same request with other paths. */
  TaskRequest with(TaskPaths other);

  /**
   * Copies files to the tiers.
   *
   * @param tier the name of the only tier to use; null for the first with room
   * @param pin whether the copies, new and existing ones, are never evicted
   * @param metadataOnly whether only names and attributes are imported
   * @param replicated whether files that other nodes hold are included
   */
  record Stage(
      TaskPaths paths,
      Limits limits,
      @Nullable String tier,
      boolean pin,
      boolean metadataOnly,
      boolean replicated)
      implements TaskRequest {
    @Override
    public Stage with(TaskPaths other) {
      return new Stage(other, limits, tier, pin, metadataOnly, replicated);
    }
  }

  /**
   * Reports files that have no copy, or one of another version; copies nothing.
   *
   * @param replicated whether files that other nodes hold are included
   * @param deep whether copies are read and compared with their checksums
   */
  record Check(TaskPaths paths, boolean replicated, boolean deep) implements TaskRequest {
    @Override
    public Check with(TaskPaths other) {
      return new Check(other, replicated, deep);
    }
  }

  /**
   * Keeps {@code windowBytes} of files ahead of the reader's position in the order of the paths,
   * and drops files behind it that were read. Ends when the last was read, or the reader has
   * stopped.
   *
   * @param from how many paths the reader has passed already
   */
  record Prefetch(TaskPaths paths, Limits limits, long windowBytes, long from)
      implements TaskRequest {
    public Prefetch {
      if (windowBytes < 1) {
        throw new IllegalArgumentException("window must be above 0");
      }
      if (from < 0) {
        throw new IllegalArgumentException("from must not be negative");
      }
    }

    @Override
    public Prefetch with(TaskPaths other) {
      return new Prefetch(other, limits, windowBytes, from);
    }

    /** The same request from another position. */
    public Prefetch from(long position) {
      return new Prefetch(paths, limits, windowBytes, position);
    }
  }

  /**
   * Compares copies with their checksums.
   *
   * @param withSource whether copies are also compared with the source's bytes
   * @param repair whether bad copies are dropped
   */
  record Verify(TaskPaths paths, boolean withSource, boolean repair) implements TaskRequest {
    @Override
    public Verify with(TaskPaths other) {
      return new Verify(other, withSource, repair);
    }
  }

  /** Drops copies, pinned ones too. */
  record Evict(TaskPaths paths) implements TaskRequest {
    @Override
    public Evict with(TaskPaths other) {
      return new Evict(other);
    }
  }

  /**
   * The limits of a task.
   *
   * @param jobs files at once, 1 to 1,024; 0 for the default
   * @param maxBytesPerSecond read from the source; 0 for no limit
   * @param maxOperationsPerSecond sent to the source; 0 for no limit
   */
  record Limits(int jobs, long maxBytesPerSecond, long maxOperationsPerSecond) {
    public Limits {
      if (jobs < 0 || jobs > 1024) {
        throw new IllegalArgumentException("jobs must be from 1 to 1024");
      }
      if (maxBytesPerSecond < 0 || maxOperationsPerSecond < 0) {
        throw new IllegalArgumentException("max-rate and max-iops must not be negative");
      }
    }
  }
}
