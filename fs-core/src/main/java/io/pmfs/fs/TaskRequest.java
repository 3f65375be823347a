package io.pmfs.fs;

import io.pmfs.metadata.FileName;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a task is to do, with which files. Paths are below the dataset's root; empty is the root.
 */
public sealed interface TaskRequest {
  /** In this order; a directory stands for all that is below it. */
  List<FileName> paths();

  /**
   * Copies files to the tiers.
   *
   * @param tier the name of the only tier to use; null for the first with room
   * @param pin whether the copies, new or there already, are never to be evicted
   * @param metadataOnly whether only names and attributes are to be imported
   * @param replicated whether also the files that other nodes hold
   */
  record Stage(
      List<FileName> paths,
      Limits limits,
      @Nullable String tier,
      boolean pin,
      boolean metadataOnly,
      boolean replicated)
      implements TaskRequest {
    public Stage {
      paths = List.copyOf(paths);
    }

    /** Of this node's own files. */
    public Stage(
        List<FileName> paths,
        Limits limits,
        @Nullable String tier,
        boolean pin,
        boolean metadataOnly) {
      this(paths, limits, tier, pin, metadataOnly, false);
    }
  }

  /**
   * Says which files have no copy, or one of another version; copies nothing.
   *
   * @param replicated whether also of the files that other nodes hold
   */
  record Check(List<FileName> paths, boolean replicated) implements TaskRequest {
    public Check {
      paths = List.copyOf(paths);
    }

    /** Of this node's own files. */
    public Check(List<FileName> paths) {
      this(paths, false);
    }
  }

  /**
   * Keeps so many bytes of files ahead of the reader's position in the order of the paths, and
   * drops what was read behind it. Ends when the last was read.
   */
  record Prefetch(List<FileName> paths, Limits limits, long windowBytes) implements TaskRequest {
    public Prefetch {
      paths = List.copyOf(paths);
      if (windowBytes < 1) {
        throw new IllegalArgumentException("window must be above 0");
      }
    }
  }

  /**
   * Compares copies with their checksums.
   *
   * @param withSource whether also with the source's bytes
   * @param repair whether bad copies are dropped
   */
  record Verify(List<FileName> paths, boolean withSource, boolean repair) implements TaskRequest {
    public Verify {
      paths = List.copyOf(paths);
    }
  }

  /** Drops copies, pinned ones too. */
  record Evict(List<FileName> paths) implements TaskRequest {
    public Evict {
      paths = List.copyOf(paths);
    }
  }

  /**
   * What a task may take.
   *
   * @param jobs files at once, 1 to 1,024; 0 for the default
   * @param maxBytesPerSecond of the source; 0 for no limit
   * @param maxOperationsPerSecond of the source; 0 for no limit
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
