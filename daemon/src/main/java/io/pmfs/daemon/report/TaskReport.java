package io.pmfs.daemon.report;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import io.pmfs.fs.FileTask;
import io.pmfs.fs.TaskProgress;
import io.pmfs.metadata.PathText;
import java.io.IOException;
import java.time.Duration;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * How far a task is, as the control socket and {@code --json} say it. Names are stable; fields are
 * added, never changed. The counts are those of {@link TaskProgress}.
 *
 * @param id stays when the next daemon goes on with the task
 * @param task what is done: stage, metadata, check, prefetch, verify or evict
 * @param state {@code running}, {@code ended}, {@code cancelled} or {@code failed}
 * @param complete whether all that was asked for is so
 * @param directory the one it is in, as {@link PathText} writes it
 * @param nodes how many nodes of a cluster do it together; 1 for one by itself
 */
public record TaskReport(
    String id,
    String task,
    String state,
    @Nullable String reason,
    boolean complete,
    boolean totalsAreFinal,
    long totalFiles,
    long totalBytes,
    long files,
    long bytes,
    String directory,
    long done,
    long present,
    long noRoom,
    long failed,
    long elapsedMs,
    int nodes) {

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

  /** From a daemon, which may be another user's: nothing is taken for granted. */
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

  public boolean isRunning() {
    return state.equals("running");
  }

  public Duration elapsed() {
    return Duration.ofMillis(elapsedMs);
  }

  /** What is going on, in one word or two. */
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

  /** The part of the work that is done, from 0 to 1; by bytes where there are any to move. */
  public double fraction() {
    long whole = countsBytes() ? totalBytes : totalFiles;
    long part = countsBytes() ? bytes : files;
    return whole <= 0 ? 0 : Math.min(1, (double) part / whole);
  }

  /** Whether the work is in the bytes rather than in the number of files. */
  public boolean countsBytes() {
    return totalBytes > 0
        && switch (task) {
          case "stage", "prefetch", "verify", "packing", "checking", "indexing" -> true;
          default -> false;
        };
  }
}
