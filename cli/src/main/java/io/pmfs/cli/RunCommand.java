package io.pmfs.cli;

import io.pmfs.daemon.Invocation;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.ExitStatus;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.Registry;
import io.pmfs.settings.Surroundings;
import io.pmfs.settings.TierSpec;
import io.pmfs.settings.TimeSpan;
import java.io.PrintStream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * {@code pmfs run}: what scripts/pmfs-run is to do, printed for it as words that end with NUL.
 *
 * <p>The command itself is run by that script, not from here: it is to have the caller's
 * descriptors, limits, environment and arguments as they are, and no JVM beside it.
 */
@Command(
    name = "run",
    description = {
      "Mounts a dataset, runs COMMAND, and always unmounts: whether COMMAND succeeds, fails, or is"
          + " ended by a signal. PMFS_MOUNT in COMMAND's environment is where the dataset is.",
      "%nSIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to COMMAND, each time they come;"
          + " it decides what to do, and pmfs cleans up after it. Several runs on one mount point share"
          + " the mount, and the last one unmounts. Of several runs of one dataset on other mount"
          + " points, or while it is mounted elsewhere, the first has the copies, and the others keep"
          + " their own, in run-2, run-3, ... below each tier.",
      "%nExit status: COMMAND's, 128+N if signal N ended it; 126 if it cannot be executed, 127 if it"
          + " is not found. If pmfs itself fails before COMMAND was started: 121 failed, 122 wrong usage or"
          + " configuration, 125 this machine cannot mount.",
      "%nThe options of pmfs mount, and those in the environment and in pmfs.toml, hold here too.%n"
    },
    sortOptions = false,
    customSynopsis = "pmfs run --source SOURCE [OPTION]... [--] COMMAND [ARGUMENT]...",
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs run --source /lustre/imagenet -- sh -c 'python train.py --data $PMFS_MOUNT'",
      "  pmfs run --source /lustre/imagenet --mountpoint /tmp/data --stage -- python train.py",
      "  pmfs run --source /lustre/imagenet --stage=val --keep --tier ssd:/local/$USER -- ./job",
      "  pmfs run --source /lustre/imagenet --or-source -- ./job      runs in any case"
    })
final class RunCommand implements Callable<Integer> {
  /** Set by the script, which alone can make something of the plan. */
  static final String PLAN = "PMFS_RUN_PLAN";

  /** Set by the script: print only how many words are the command and its arguments. */
  static final String WORDS = "PMFS_RUN_WORDS";

  /** The command in a request for a plan. */
  private static final String COMMAND = "COMMAND";

  /** Set by the script: which of several sets of copies to use, 1 being the usual one. */
  static final String COPIES = "PMFS_RUN_COPIES";

  private static final Duration LONGEST_GRACE = Duration.ofHours(1);

  private final Invocation invocation;

  @Spec private CommandSpec spec;

  @Parameters(
      arity = "1..*",
      paramLabel = COMMAND,
      description = "What to run, with its arguments; -- may stand before it.")
  private List<String> command;

  @Option(
      names = "--source",
      paramLabel = "SOURCE",
      description = "The dataset's directory or tar file.")
  private @Nullable String source;

  @Option(
      names = "--mountpoint",
      paramLabel = "DIR",
      description =
          "Where to mount it; made, and removed again, if it is not there. Default: a directory of"
              + " its own in $TMPDIR or /tmp.")
  private @Nullable String mountpoint;

  @Option(
      names = "--stage",
      arity = "0..1",
      fallbackValue = ".",
      paramLabel = "PATH",
      description =
          "Before COMMAND, copy the dataset to the tiers, or PATH in it; repeat for more. What finds"
              + " no room is read from the source.")
  private @Nullable List<String> stage;

  @Option(
      names = "--keep",
      description =
          "Leave the copies for the next job. Without it those that were made since are dropped at"
              + " the end; copies that were there before stay.")
  private boolean keep;

  @Option(
      names = "--or-source",
      description = "If it cannot be mounted, run COMMAND on the source: PMFS_MOUNT is its path.")
  private boolean orSource;

  @Option(
      names = "--grace",
      paramLabel = "TIME",
      defaultValue = "10s",
      description =
          "How long processes that COMMAND left behind may still use the mount before it is detached"
              + " under them. Default: ${DEFAULT-VALUE}.")
  private String grace;

  @Option(names = "--config", paramLabel = "FILE", description = "Configuration file.")
  private @Nullable String config;

  @SuppressWarnings("NullAway.Init") // picocli sets the rest
  RunCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    if (surroundings.variable(PLAN) == null) {
      throw MountFailure.usage("run: has to be seen by the launcher scripts/pmfs; call that");
    }
    if (surroundings.variable(WORDS) != null) {
      invocation.out().print(command.size());
      return ExitStatus.DONE;
    }
    if (!command.get(0).equals(COMMAND)) {
      throw MountFailure.usage(
          "run: '"
              + command.get(0)
              + "' stands before --, which has to stand right before the command");
    }
    Map<MountOption<?>, List<String>> given =
        MountOptions.given(spec.commandLine().getParseResult());
    if (given.containsKey(MountOption.USER)
        || surroundings.variable(MountOption.USER.variable()) != null) {
      throw MountFailure.usage(
          "--user: not with run, whose COMMAND would be root's; mount with pmfs mount --user, or"
              + " run all of it as that user");
    }
    if (mountpoint == null) {
      throw MountFailure.usage("--mountpoint: not given");
    }
    if (source != null && source.isEmpty()) {
      throw MountFailure.usage("--source: '' is no path");
    }
    long graceSeconds = graceSeconds();
    Configuration configuration =
        Configuration.resolve(
            new Configuration.Request(given, config, source, mountpoint), surroundings);
    MountSettings settings = configuration.toSettings(surroundings);
    Registry registry = Registry.open(surroundings);
    List<String> plan = new ArrayList<>();
    plan.add(settings.source().path().toString());
    plan.add(settings.mountpoint().toString());
    plan.add(registry.directory().resolve(Registry.nameOf(settings.mountpoint())).toString());
    plan.add(Boolean.toString(keep));
    plan.add(Boolean.toString(orSource));
    plan.add(Long.toString(graceSeconds));
    plan.add(Integer.toString(stage == null ? 0 : stage.size()));
    plan.addAll(stage == null ? List.of() : stage);
    plan.addAll(mountArguments(given, settings));
    print(plan);
    return ExitStatus.DONE;
  }

  private long graceSeconds() throws MountFailure {
    try {
      Duration time = TimeSpan.parse(grace);
      if (time.compareTo(LONGEST_GRACE) <= 0) {
        return time.toSeconds();
      }
    } catch (IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.USAGE, "--grace: " + e.getMessage(), e);
    }
    throw MountFailure.usage("--grace: '" + grace + "' is more than an hour");
  }

  /** The command line of the mount; what is configured elsewhere it finds by itself. */
  private List<String> mountArguments(
      Map<MountOption<?>, List<String>> given, MountSettings settings) throws MountFailure {
    List<String> arguments = new ArrayList<>();
    if (config != null) {
      arguments.add("--config=" + config);
    }
    String own = copiesOfItsOwn();
    given.forEach(
        (option, values) -> {
          boolean replaced =
              own != null && (option == MountOption.TIER || option == MountOption.STATE_DIR);
          for (String value : replaced ? List.<String>of() : values) {
            arguments.add(argument(option, value));
          }
        });
    if (own != null) {
      for (TierSpec tier : settings.copies().tiers()) {
        arguments.add("--tier=" + tier.place().apart(own));
      }
      Path state = settings.metadata().stateDirectory();
      if (state != null) {
        arguments.add("--state-dir=" + state.resolve(own));
      }
    }
    arguments.addAll(
        List.of("--", settings.source().path().toString(), settings.mountpoint().toString()));
    return arguments;
  }

  private static String argument(MountOption<?> option, String value) {
    if (option.kind() == MountOption.Kind.FLAG) {
      return Boolean.parseBoolean(value) ? option.commandLineName() : "--no-" + option.key();
    }
    return option.commandLineName() + "=" + value;
  }

  /** The directory below each tier that this run's copies go to; null for the tier itself. */
  private @Nullable String copiesOfItsOwn() {
    String number = invocation.surroundings().variable(COPIES);
    return number == null || number.equals("1") ? null : "run-" + number;
  }

  private void print(List<String> plan) {
    PrintStream out = invocation.out();
    for (String word : plan) {
      out.print(word);
      out.print('\0');
    }
    out.print("end");
    out.print('\0');
    out.flush();
  }
}
