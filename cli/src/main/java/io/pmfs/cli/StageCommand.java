package io.pmfs.cli;

import io.pmfs.daemon.Invocation;
import io.pmfs.fs.TaskPaths;
import io.pmfs.fs.TaskRequest;
import io.pmfs.settings.ByteSize;
import io.pmfs.settings.ExitStatus;
import io.pmfs.settings.MountFailure;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code pmfs stage}: fills the tiers ahead of use. */
@Command(
    name = "stage",
    description = {
      "Copies a dataset, or parts of it, to the tiers ahead of use. What is there is not copied"
          + " again, so a second run goes on where the first stopped. In a cluster each node copies the"
          + " files that it holds for all; the limits are each node's.",
      "%nExit status 0 if all that was asked for is there, 4 if not all, 1 if it failed as a whole."
          + " Ctrl-C stops it; what was copied stays.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs stage /mnt/dataset",
      "  pmfs stage /mnt/dataset/train /mnt/dataset/labels.csv",
      "  pmfs stage --list files.txt --report problems.jsonl /mnt/dataset",
      "  pmfs stage --check /mnt/dataset              what is missing or stale",
      "  pmfs stage --check --deep /mnt/dataset       the same, and every byte is compared",
      "  pmfs stage --max-rate 500M --max-iops 2000 --background /mnt/dataset",
      "  pmfs stage --wait /mnt/dataset               for what runs in the background",
      "  pmfs stage --replicate all /mnt/dataset/val  on every node of a cluster",
      "  pmfs stage --order epoch1.txt --window 20G --background /mnt/dataset"
    })
final class StageCommand extends TaskCommand {
  private static final String[] HOW_TO_COPY = {
    "--jobs", "--max-rate", "--max-iops", "--tier", "--pin", "--metadata-only", "--order"
  };

  @Option(
      names = "--jobs",
      paramLabel = "N",
      description = "Files at once, 1 to 1024. Default: chosen by pmfs.")
  private @Nullable String jobs;

  @Option(
      names = "--max-rate",
      paramLabel = "SIZE",
      description = "Read at most so much of the source in a second.")
  private @Nullable String maxRate;

  @Option(
      names = "--max-iops",
      paramLabel = "N",
      description = "Ask the source at most so often in a second.")
  private @Nullable String maxIops;

  @Option(names = "--metadata-only", description = "Import names and attributes only, no contents.")
  private boolean metadataOnly;

  @Option(
      names = "--check",
      description =
          "Copy nothing; look into the tiers and say what is missing or stale. Status 0 if every"
              + " byte can be read with the source away.")
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
          "The order in which files are going to be read, as for --list: stay --window ahead of"
              + " the reader and drop what was read. On this node only, also in a cluster.")
  private @Nullable String order;

  @Option(names = "--window", paramLabel = "SIZE", description = "How far ahead with --order.")
  private @Nullable String window;

  @Option(
      names = "--replicate",
      paramLabel = "all",
      description =
          "In a cluster: have every node copy all of it, a validation set for example. Without it"
              + " each node copies the files that it holds for all.")
  private @Nullable String replicate;

  StageCommand(Invocation invocation) {
    super(invocation);
  }

  @Override
  void checkOptions() throws MountFailure {
    exclude("--wait", HOW_TO_COPY);
    exclude("--wait", "--check", "--deep");
    if (deep && !check) {
      throw MountFailure.usage("--deep belongs to --check; pmfs verify compares copies by itself");
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

  /** Zero if it was not given. */
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
    try {
      long bytes = ByteSize.parse(text);
      if (bytes > 0) {
        return bytes;
      }
    } catch (IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.USAGE, option + ": " + e.getMessage(), e);
    }
    throw MountFailure.usage(option + ": '" + text + "' is nothing at all");
  }
}
