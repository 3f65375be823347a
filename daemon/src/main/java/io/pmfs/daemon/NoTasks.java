package io.pmfs.daemon;

import io.pmfs.fs.FileTask;
import io.pmfs.fs.FileTasks;
import io.pmfs.fs.TaskRequest;
import org.jspecify.annotations.Nullable;

/** The tasks of a writable mount: none, for its tiers hold no copies to stage, verify or evict. */
final class NoTasks implements FileTasks {
  @Override
  public FileTask start(TaskRequest request) {
    throw new IllegalArgumentException(
        "this mount is writable: its tiers keep what was written until it is at the source, and no"
            + " copies of the source; see pmfs status and pmfs drain");
  }

  @Override
  public @Nullable FileTask latest() {
    return null;
  }

  @Override
  public void close() {}
}
