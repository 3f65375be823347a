package io.pmfs.daemon.tasks;

import io.pmfs.tasks.FileTask;
import io.pmfs.tasks.FileTasks;
import io.pmfs.tasks.TaskRequest;

/**
 * The tasks of a writable mount: none, because its tiers hold no copies to stage, verify or evict.
 */
public final class NoTasks implements FileTasks {
  @Override
  public FileTask start(TaskRequest request) {
    throw new IllegalArgumentException(
        "this mount is writable: its tiers hold changes on their way to the source, not copies of"
            + " the source; see pmfs status and pmfs drain");
  }

  @Override
  public void close() {}
}
