package io.pmfs.cli.tasks;

import io.pmfs.daemon.Invocation;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskRequest;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code pmfs verify}: compares copies with their checksums. */
@Command(
    name = "verify",
    description = {
      "Compares copies with their checksums, and with --source also with the source. In a cluster"
          + " only this node compares its copies.",
      "%nExit status 0 if every copy is good, 4 if any was bad, even if --repair dropped it.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs verify /mnt/dataset",
      "  pmfs verify --source --report problems.jsonl /mnt/dataset",
      "  pmfs verify --repair /mnt/dataset || pmfs stage /mnt/dataset"
    })
public final class VerifyCommand extends TaskCommand {
  @Option(names = "--source", description = "Also read the source and compare its bytes.")
  private boolean source;

  @Option(
      names = "--repair",
      description = "Drop bad copies; the next read or pmfs stage makes new ones.")
  private boolean repair;

  public VerifyCommand(Invocation invocation) {
    super(invocation);
  }

  @Override
  void checkOptions() {
    exclude("--wait", "--source", "--repair");
  }

  @Override
  TaskRequest request(TaskPaths paths) {
    return new TaskRequest.Verify(paths, source, repair);
  }
}
