package io.pmfs.cli.tasks;

import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.report.TaskReport;

/** Shows the user the progress of a task. */
public interface TaskDisplay extends AutoCloseable {
  /** Set by the launcher to the terminal's width, if standard error is a terminal. */
  String COLUMNS = "PMFS_TERMINAL_COLUMNS";

  /** A bar on a terminal, else lines. */
  static TaskDisplay of(Invocation invocation) {
    String columns = invocation.surroundings().variable(COLUMNS);
    return columns != null && columns.matches("[1-9]\\d{0,3}")
        ? new TaskBar(invocation.err(), Integer.parseInt(columns), invocation.clock())
        : new TaskLines(invocation::warn, invocation.clock());
  }

  /** Shows the latest report; called often. */
  void show(TaskReport report);

  @Override
  void close();
}
