package io.pmfs.cli.tasks;

import io.pmfs.daemon.Invocation;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskRequest;
import picocli.CommandLine.Command;

/** {@code pmfs evict}: drops copies from the tiers. */
@Command(
    name = "evict",
    description =
        "Drops copies, including pinned ones, from the tiers. The files remain readable from the"
            + " source. In a cluster only this node drops its copies.%n",
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs evict /mnt/dataset/train/epoch1",
      "  pmfs evict --list done.txt /mnt/dataset",
      "  pmfs evict /mnt/dataset"
    })
public final class EvictCommand extends TaskCommand {
  public EvictCommand(Invocation invocation) {
    super(invocation);
  }

  @Override
  void checkOptions() {}

  @Override
  TaskRequest request(TaskPaths paths) {
    return new TaskRequest.Evict(paths);
  }
}
