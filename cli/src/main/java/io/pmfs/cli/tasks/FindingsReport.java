package io.pmfs.cli.tasks;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import io.pmfs.cli.control.TaskClient;
import io.pmfs.daemon.report.FindingsPage;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PathText;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Shows the first few findings of a task to the user, and writes all of them as JSON lines to the
 * file of --report, if given.
 */
final class FindingsReport implements AutoCloseable {
  private static final int SHOWN = 10;

  /**
   * Ten times what a daemon keeps. A limit, because another user's daemon might never stop sending.
   */
  private static final int MOST = 1_000_000;

  private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().create();

  private final Consumer<String> screen;
  private final @Nullable BufferedWriter file;
  private long count;

  private FindingsReport(Consumer<String> screen, @Nullable BufferedWriter file) {
    this.screen = screen;
    this.file = file;
  }

  /** Creates the file now, so that a wrong path fails at once and not after hours. */
  static FindingsReport open(Consumer<String> screen, @Nullable Path path) throws MountFailure {
    try {
      return new FindingsReport(screen, path == null ? null : Files.newBufferedWriter(path, UTF_8));
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.USAGE, "--report: " + path + ": " + Reason.of(e), e);
    }
  }

  /**
   * Fetches all findings of an ended task. The daemon has those of the latest one only.
   *
   * @throws MountFailure if another task began meanwhile
   */
  void take(TaskClient client, TaskReport ended) throws MountFailure {
    take(client);
    if (count == 0 && ended.noRoom() + ended.failed() == 0) {
      return;
    }
    TaskReport latest = client.latest();
    if (latest == null || !latest.id().equals(ended.id())) {
      throw new MountFailure(
          ExitStatus.FAILED,
          ended.activity()
              + ": another task began before all that it found was read; run it again");
    }
  }

  private void take(TaskClient client) throws MountFailure {
    try {
      for (var page = client.findings(0);
          !page.isEmpty() && count < MOST;
          page = client.findings(count)) {
        for (FindingsPage.Finding finding : page) {
          add(finding);
        }
        if (file == null && count > SHOWN) {
          return;
        }
      }
    } catch (IOException | IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.FAILED, "--report: " + e.getMessage(), e);
    }
  }

  private void add(FindingsPage.Finding finding) throws IOException {
    FileName path = PathText.decode(finding.path());
    if (count < SHOWN) {
      String shown = (path.size() == 0 ? "." : path) + ": " + finding.reason();
      screen.accept(PathText.printable(shown));
    }
    count++;
    if (file != null) {
      JsonObject line = new JsonObject();
      line.addProperty("path", path.toString());
      if (!FileName.of(path.toString()).equals(path)) {
        line.addProperty("escapedPath", finding.path());
      }
      line.addProperty("outcome", finding.outcome());
      line.addProperty("reason", finding.reason());
      file.write(GSON.toJson(line));
      file.newLine();
    }
  }

  /** Shows the number of further findings and where they are. */
  void conclude(TaskReport report) {
    long all = Math.max(count, report.noRoom() + report.failed());
    if (all > SHOWN) {
      screen.accept(String.format(Locale.ROOT, "and %,d more%s", all - SHOWN, where(all)));
    }
  }

  private String where(long all) {
    if (file == null) {
      return "; --report FILE lists them";
    }
    return count == all
        ? ", all in the report"
        : String.format(Locale.ROOT, "; the first %,d are in the report", count);
  }

  @Override
  public void close() throws MountFailure {
    if (file == null) {
      return;
    }
    try {
      file.close();
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, "--report: " + Reason.of(e), e);
    }
  }
}
