package io.pmfs.cli.tasks;

import io.pmfs.daemon.Invocation;
import io.pmfs.machine.ByteSize;
import io.pmfs.machine.MountFailure;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskRequest;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code pmfs stage}: copies a dataset to the tiers ahead of use. */
@Command(
    name = "stage",
    description = {
      "Copies a dataset, or parts of it, to the tiers ahead of use. Existing copies are kept, so a"
          + " second run continues where the first stopped. In a cluster each node copies the files"
          + " that it owns, and limits apply to each node.",
      "%nExit status 0 if everything requested is in the tiers, 4 if something is missing, 1 if the"
          + " task failed as a whole. Ctrl-C stops the task; finished copies are kept.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs stage /mnt/dataset",
      "  pmfs stage /mnt/dataset/train /mnt/dataset/labels.csv",
      "  pmfs stage --list files.txt --report problems.jsonl /mnt/dataset",
      "  pmfs stage --check /mnt/dataset              what is missing or stale",
      "  pmfs stage --check --deep /mnt/dataset       also compare every byte",
      "  pmfs stage --max-rate 500M --max-iops 2000 --background /mnt/dataset",
      "  pmfs stage --wait /mnt/dataset               wait for the task in the background",
      "  pmfs stage --replicate all /mnt/dataset/val  on every node of a cluster",
      "  pmfs stage --order epoch1.txt --window 20G --background /mnt/dataset"
    })
public final class StageCommand extends TaskCommand {
  private static final String[] HOW_TO_COPY = {
    "--jobs", "--max-rate", "--max-iops", "--tier", "--pin", "--metadata-only", "--order"
  };

  @Option(
      names = "--jobs",
      paramLabel = "N",
      description = "Copy N files at once, 1 to 1024. Default: chosen by pmfs.")
  private @Nullable String jobs;

  @Option(
      names = "--max-rate",
      paramLabel = "SIZE",
      description = "Read at most SIZE per second from the source.")
  private @Nullable String maxRate;

  @Option(
      names = "--max-iops",
      paramLabel = "N",
      description = "Send at most N requests per second to the source.")
  private @Nullable String maxIops;

  @Option(names = "--metadata-only", description = "Import names and attributes only, no contents.")
  private boolean metadataOnly;

  @Option(
      names = "--check",
      description =
          "Copy nothing; report copies that are missing or stale. Exit status 0 if every byte can"
              + " be read without the source.")
  private boolean check;

  @Option(
      names = "--deep",
      description = "With --check: read the copies and compare them with their checksums.")
  private boolean deep;

  @Option(
      names = "--tier",
      paramLabel = "NAME",
      description = "Use this tier only, by its name in pmfs status --json: KIND:PATH.")
  private @Nullable String tier;

  @Option(names = "--pin", description = "Never evict these copies to make room.")
  private boolean pin;

  @Option(
      names = "--order",
      paramLabel = "FILE",
      description =
          "Like --list, in the order in which a job will read the files: stay --window ahead of the"
              + " reader, and drop copies once read. Works on this node only, even in a cluster.")
  private @Nullable String order;

  @Option(
      names = "--window",
      paramLabel = "SIZE",
      description = "With --order: how far to stay ahead of the reader.")
  private @Nullable String window;

  @Option(
      names = "--replicate",
      paramLabel = "all",
      description =
          "In a cluster: copy everything to every node, for example a validation set. Without this"
              + " option each node copies the files that it owns.")
  private @Nullable String replicate;

  public StageCommand(Invocation invocation) {
    super(invocation);
  }

  @Override
  void checkOptions() throws MountFailure {
    exclude("--wait", HOW_TO_COPY);
    exclude("--wait", "--check", "--deep");
    if (deep && !check) {
      throw MountFailure.usage("--deep: only with --check; pmfs verify also compares copies");
    }
    exclude("--check", HOW_TO_COPY);
    exclude("--order", "--list", "--tier", "--pin", "--metadata-only");
    exclude("--metadata-only", "--tier", "--pin", "--replicate");
    exclude("--order", "--replicate");
    if (replicate != null && !replicate.equals("all")) {
      throw MountFailure.usage("--replicate: '" + replicate + "' is not known; give all");
    }
    if ((order == null) != (window == null)) {
      throw MountFailure.usage("--order and --window belong together: give both or none");
    }
  }

  @Override
  @Nullable String listOption() {
    return order != null ? "--order" : super.listOption();
  }

  @Override
  TaskRequest request(TaskPaths paths) throws MountFailure {
    if (check) {
      return new TaskRequest.Check(paths, isReplicated(), deep);
    }
    TaskRequest.Limits limits =
        new TaskRequest.Limits(
            (int) number("--jobs", jobs, 1024),
            size("--max-rate", maxRate),
            number("--max-iops", maxIops, Long.MAX_VALUE));
    return order != null
        ? new TaskRequest.Prefetch(paths, limits, size("--window", window), 0)
        : new TaskRequest.Stage(paths, limits, tier, pin, metadataOnly, isReplicated());
  }

  private boolean isReplicated() {
    return replicate != null;
  }

  private static long number(String option, @Nullable String text, long largest)
      throws MountFailure {
    if (text == null) {
      return 0;
    }
    if (!text.matches("\\d{1,18}") || Long.parseLong(text) < 1 || Long.parseLong(text) > largest) {
      throw MountFailure.usage(
          option
              + ": '"
              + text
              + "': give a whole number "
              + (largest == Long.MAX_VALUE ? "above 0" : "from 1 to " + largest));
    }
    return Long.parseLong(text);
  }

  private static long size(String option, @Nullable String text) throws MountFailure {
    if (text == null) {
      return 0;
    }
    long bytes = MountFailure.parsing(option, text, ByteSize::parse);
    if (bytes <= 0) {
      throw MountFailure.usage(option + ": '" + text + "': a size must be larger than zero");
    }
    return bytes;
  }
}
