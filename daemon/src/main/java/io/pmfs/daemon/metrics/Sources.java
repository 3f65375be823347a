package io.pmfs.daemon.metrics;

import io.pmfs.cluster.ClusterStatus;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.Bridge;
import io.pmfs.stage.Copies;
import io.pmfs.stage.Stager;
import io.pmfs.tier.CountedBackingStore;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The parts of a mounted dataset that count what they do: read when somebody asks, never told.
 *
 * @param dataset how users call it: its source
 * @param mountpoint where it is mounted
 * @param version of pmfs
 * @param cluster how its cluster is; null if it is in none
 * @param task how far the running task is, or the last one was; it gives null if there was none
 * @param waits requests that have no answer yet
 * @param isRecording whether names and copies are recorded for the next mount
 */
public record Sources(
    String dataset,
    String mountpoint,
    String version,
    Bridge bridge,
    PmfsFileSystem fileSystem,
    Copies copies,
    Stager stager,
    CountedBackingStore source,
    @Nullable Supplier<ClusterStatus> cluster,
    Supplier<@Nullable TaskCounts> task,
    Supplier<Waits> waits,
    BooleanSupplier isRecording) {
  /** How many requests have waited for a second or longer, and how long one of them has. */
  public record Waits(long requests, double longestSeconds) {}

  /**
   * How far a task is.
   *
   * @param isRunning whether it is not at its end
   * @param totalFiles as far as known
   * @param failed files and paths with something the matter
   */
  public record TaskCounts(
      boolean isRunning, long files, long totalFiles, long bytes, long totalBytes, long failed) {
    static final TaskCounts NONE = new TaskCounts(false, 0, 0, 0, 0, 0);
  }
}
