package io.pmfs.cli.mount;

import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.dataset.MountPlaces;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.TimeSpan;
import io.pmfs.mounts.Registry;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierSpec;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.MountSettings;
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
 * {@code pmfs run}: prints a plan for scripts/pmfs-run, as NUL-terminated words.
 *
 * <p>The script runs the command, which thus inherits the caller's descriptors, limits, environment
 * and arguments unchanged, without a JVM running beside it.
 */
@Command(
    name = "run",
    description = {
      "Mounts a dataset, runs COMMAND, and always unmounts. It does so whether COMMAND succeeds,"
          + " fails or is killed by a signal. The variable PMFS_MOUNT contains the mount point.",
      "%npmfs forwards SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 to COMMAND, and cleans"
          + " up after COMMAND has ended. Several runs on one mount point share the mount, and the"
          + " last one unmounts. If another job or step has the dataset mounted elsewhere, that"
          + " mount uses the usual copies, and each further run keeps its own, in run-2, run-3, ..."
          + " below each tier. If the mount is lost while COMMAND runs, pmfs mounts again, and the"
          + " exit status is not 0.",
      "%nThe options of pmfs mount also work here, as do the environment and pmfs.toml.%n"
    },
    sortOptions = false,
    customSynopsis = "pmfs run --source SOURCE [OPTION]... [--] COMMAND [ARGUMENT]...",
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs run --source /lustre/imagenet -- sh -c 'python train.py --data $PMFS_MOUNT'",
      "  pmfs run --source /lustre/imagenet --mountpoint /tmp/data --stage -- python train.py",
      "  pmfs run --source /lustre/imagenet --stage=val --purge --tier ssd:/local/$USER -- ./job",
      "  pmfs run --source /lustre/imagenet --or-source -- ./job      even without a mount",
      "  pmfs run --private --source /data -- python train.py         which reads /data"
    })
public final class RunCommand implements Callable<Integer> {
  /** Set by the script, which executes the plan. */
  static final String PLAN = "PMFS_RUN_PLAN";

  /** Set by the script to print only the number of words of the command with its arguments. */
  static final String WORDS = "PMFS_RUN_WORDS";

  /** Stands for the command in a request for a plan. */
  private static final String COMMAND = "COMMAND";

  /** Set by the script: the set of copies to use; 1 is the usual one. */
  static final String COPIES = "PMFS_RUN_COPIES";

  private static final Duration LONGEST_GRACE = Duration.ofHours(1);
  private static final Duration LONGEST_IDLE = Duration.ofDays(30);

  private final Invocation invocation;

  @Spec private CommandSpec spec;

  @Parameters(
      arity = "1..*",
      paramLabel = COMMAND,
      description = "The command to run, with its arguments; -- may precede it.")
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
          "Where to mount it; pmfs creates a missing directory, and removes it at the end. Default:"
              + " a new directory in $TMPDIR or /tmp.")
  private @Nullable String mountpoint;

  @Option(
      names = "--private",
      description =
          "Mount for COMMAND only, in namespaces of its own: needs no fusermount. Without"
              + " --mountpoint, COMMAND finds the mount at the path of the source. This is the"
              + " default for users where fusermount is not installed.")
  private boolean isPrivate;

  @Option(
      names = "--stage",
      arity = "0..1",
      fallbackValue = ".",
      paramLabel = "PATH",
      description =
          "Before COMMAND, copy the dataset, or PATH in it, to the tiers; repeat for more paths."
              + " Files that do not fit are read from the source.")
  private @Nullable List<String> stage;

  @Option(
      names = "--purge",
      description =
          "Drop the new copies at the end, instead of keeping them for the next job. Older copies"
              + " are always kept.")
  private boolean purge;

  @Option(
      names = "--or-source",
      description = "If the mount fails, run COMMAND on the source: PMFS_MOUNT is then its path.")
  private boolean orSource;

  @Option(
      names = "--grace",
      paramLabel = "TIME",
      defaultValue = "10s",
      description =
          "How long processes that COMMAND left running may use the mount before pmfs detaches it."
              + " Default: ${DEFAULT-VALUE}.")
  private String grace;

  @Option(
      names = "--idle-timeout",
      paramLabel = "TIME",
      defaultValue = "10m",
      description =
          "For --writable: how long to wait at the end while nothing reaches the source. What is"
              + " left is kept in the state, and the status is 124. Default: ${DEFAULT-VALUE}.")
  private String idleTimeout;

  @Option(names = "--config", paramLabel = "FILE", description = "Configuration file.")
  private @Nullable String config;

  @SuppressWarnings("NullAway.Init")
  public // picocli sets the rest
  RunCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    if (surroundings.variable(PLAN) == null) {
      throw MountFailure.usage("run: works only through the launcher scripts/pmfs; use that");
    }
    if (surroundings.variable(WORDS) != null) {
      invocation.out().print(command.size());
      return ExitStatus.DONE;
    }
    if (!command.get(0).equals(COMMAND)) {
      throw MountFailure.usage(
          "run: '" + command.get(0) + "' stands before --; put -- right before the command");
    }
    Map<MountOption<?>, List<String>> given =
        MountOptions.given(spec.commandLine().getParseResult());
    if (given.containsKey(MountOption.USER)
        || surroundings.variable(MountOption.USER.variable()) != null) {
      throw MountFailure.usage(
          "--user: does not work with run, because root would run COMMAND; mount with pmfs mount"
              + " --user, or call pmfs run as that user");
    }
    if (mountpoint == null) {
      throw MountFailure.usage("--mountpoint: not given");
    }
    if (source != null && source.isEmpty()) {
      throw MountFailure.usage("--source: the path is empty");
    }
    if (given.containsKey(MountOption.LINGER)) {
      throw MountFailure.usage("--linger: does not work with run, whose daemon ends with the run");
    }
    long graceSeconds = graceSeconds();
    long idleSeconds = idleSeconds();
    Configuration configuration =
        Configuration.resolve(
            new Configuration.Request(given, config, source, mountpoint), surroundings);
    if (!configuration.settings().containsKey(MountOption.SOURCE)) {
      throw MountFailure.usage(
          "run: --source is missing; name the dataset, for example pmfs run --source"
              + " /lustre/imagenet -- COMMAND");
    }
    MountSettings settings = configuration.toSettings(surroundings);
    new MountPlaces(settings, surroundings).check();
    Registry registry = Registry.open(surroundings);
    List<String> plan = new ArrayList<>();
    if (isPrivate && settings.outputs() != null) {
      throw MountFailure.usage(
          "--private: not possible with --writable, because files of other users and groups could"
              + " not be changed; install fuse3, and leave it out");
    }
    plan.add(settings.source().path().toString());
    plan.add(settings.mountpoint().toString());
    plan.add(registry.directory().resolve(Registry.nameOf(settings.mountpoint())).toString());
    plan.add(Boolean.toString(!purge));
    plan.add(Boolean.toString(orSource));
    plan.add(Long.toString(graceSeconds));
    plan.add(Long.toString(idleSeconds));
    plan.add(Integer.toString(stage == null ? 0 : stage.size()));
    plan.addAll(stage == null ? List.of() : stage);
    plan.addAll(mountArguments(given, settings));
    print(plan);
    return ExitStatus.DONE;
  }

  private long graceSeconds() throws MountFailure {
    Duration time = MountFailure.parsing("--grace", grace, TimeSpan::parse);
    if (time.compareTo(LONGEST_GRACE) > 0) {
      throw MountFailure.usage("--grace: '" + grace + "' is more than an hour");
    }
    return time.toSeconds();
  }

  private long idleSeconds() throws MountFailure {
    Duration time = MountFailure.parsing("--idle-timeout", idleTimeout, TimeSpan::parsePositive);
    if (time.compareTo(LONGEST_IDLE) > 0) {
      throw MountFailure.usage("--idle-timeout: '" + idleTimeout + "' is more than 30 days");
    }
    return Math.max(1, time.toSeconds());
  }

  /** The arguments of pmfs mount, which reads the configuration file and the environment itself. */
  private List<String> mountArguments(
      Map<MountOption<?>, List<String>> given, MountSettings settings) throws MountFailure {
    List<String> arguments = new ArrayList<>();
    if (config != null) {
      arguments.add("--config=" + config);
    }
    if (!settings.bridge().linger().isZero()) {
      arguments.add(
          "--linger=off"); // overrides the configuration: a job's daemon ends with the job
    }
    String own = copiesOfItsOwn();
    if (own != null && settings.outputs() != null) {
      throw new MountFailure(
          ExitStatus.IN_USE,
          settings.source().path()
              + ": already mounted with --writable; use that mount, or wait until it ends");
    }
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

  /** The subdirectory of each tier for this run's copies; null for the tier itself. */
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
