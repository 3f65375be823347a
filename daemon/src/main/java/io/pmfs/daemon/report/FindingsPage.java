package io.pmfs.daemon.report;

import io.pmfs.metadata.PathText;
import io.pmfs.tasks.TaskFinding;
import java.util.List;
import java.util.Locale;

/** A page of a task's findings, in order; shorter than requested if it is the last. */
public record FindingsPage(List<Finding> findings) {
  /** A problem with one path. */
  public record Finding(String path, String outcome, String reason) {
    static Finding of(TaskFinding finding) {
      return new Finding(
          PathText.encode(finding.path()),
          finding.kind().name().toLowerCase(Locale.ROOT).replace('_', '-'),
          finding.reason());
    }

    /** Whether the JSON had all fields. */
    public boolean isWhole() {
      return path != null && outcome != null && reason != null;
    }
  }

  public static FindingsPage of(List<TaskFinding> found) {
    return new FindingsPage(found.stream().map(Finding::of).toList());
  }
}
