package io.pmfs.daemon.report;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import io.pmfs.metadata.PathText;
import io.pmfs.tasks.FileTask;
import io.pmfs.tasks.TaskProgress;
import java.io.IOException;
import java.time.Duration;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * The progress of a task, on the control socket and in {@code --json}. Names are stable; fields are
 * added, never changed. The counts are those of {@link TaskProgress}.
 */
public record TaskReport(
    @Figure("its id, unchanged when the next daemon continues it") String id,
    @Figure("`stage`, `metadata`, `check`, `prefetch`, `verify` or `evict`") String task,
    @Figure("`running`, `ended`, `cancelled` or `failed`") String state,
    @Figure("why it failed as a whole") @Nullable String reason,
    @Figure("whether everything that was asked for is done") boolean complete,
    @Figure("whether the totals can no longer grow") boolean totalsAreFinal,
    @Figure(
            value = "files that the running or last task has to process, as far as known",
            metric = "pmfs_task_expected_files")
        long totalFiles,
    @Figure(
            value = "bytes that the running or last task has to process, as far as known",
            metric = "pmfs_task_expected_bytes")
        long totalBytes,
    @Figure(value = "files that the running or last task has processed", metric = "pmfs_task_files")
        long files,
    @Figure(
            value = "bytes that the running or last task has processed",
            metric = "pmfs_task_done_bytes")
        long bytes,
    @Figure("the directory being processed, with `%XX` for unprintable bytes") String directory,
    @Figure("files staged, verified or evicted") long done,
    @Figure("files that needed nothing") long present,
    @Figure("files for which no tier had room") long noRoom,
    @Figure(
            value = "files and paths with any problem except lack of room",
            metric = "pmfs_task_failed_files")
        long failed,
    @Figure("how long it has been running") long elapsedMs,
    @Figure("how many nodes take part") int nodes) {

  public static TaskReport of(String id, FileTask task, int nodes) {
    TaskProgress progress = task.progress();
    return new TaskReport(
        id,
        TaskJson.word(task.request()),
        progress.state().name().toLowerCase(Locale.ROOT),
        progress.reason(),
        progress.isComplete(),
        progress.totalsAreFinal(),
        progress.totalFiles(),
        progress.totalBytes(),
        progress.files(),
        progress.bytes(),
        PathText.encode(progress.directory()),
        progress.done(),
        progress.present(),
        progress.noRoom(),
        progress.failed(),
        progress.elapsed().toMillis(),
        nodes);
  }

  /** Parses and checks the answer of a daemon that may belong to another user. */
  public static TaskReport parse(String json) throws IOException {
    try {
      TaskReport report = new Gson().fromJson(json, TaskReport.class);
      if (report != null
          && report.id() != null
          && report.task() != null
          && report.state() != null
          && report.directory() != null) {
        return report;
      }
    } catch (JsonSyntaxException e) {
      throw new IOException("not a task: " + e.getMessage(), e);
    }
    throw new IOException("not a task");
  }

  @Figure(
      value = "1 while a task (`pmfs stage`, `verify`, `evict`, …) runs",
      metric = "pmfs_task_running")
  public boolean isRunning() {
    return state.equals("running");
  }

  public Duration elapsed() {
    return Duration.ofMillis(elapsedMs);
  }

  /** The activity in one or two words. */
  public String activity() {
    return switch (task) {
      case "stage" -> "staging";
      case "metadata" -> "importing metadata";
      case "check" -> "checking";
      case "prefetch" -> "prefetching";
      case "verify" -> "verifying";
      case "evict" -> "evicting";
      default -> task;
    };
  }

  /** The fraction of the work done, 0 to 1; by bytes if {@link #countsBytes}. */
  public double fraction() {
    long whole = countsBytes() ? totalBytes : totalFiles;
    long part = countsBytes() ? bytes : files;
    return whole <= 0 ? 0 : Math.min(1, (double) part / whole);
  }

  /** Whether the work is proportional to bytes rather than to the number of files. */
  public boolean countsBytes() {
    return totalBytes > 0
        && switch (task) {
          case "stage", "prefetch", "verify", "packing", "checking", "indexing" -> true;
          default -> false;
        };
  }
}
