package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.stream.Collectors.joining;

import io.pmfs.cli.copies.CacheCommand;
import io.pmfs.cli.copies.NodeCacheCommand;
import io.pmfs.cli.doctor.DoctorCommand;
import io.pmfs.cli.mount.MountCommand;
import io.pmfs.cli.mount.MountOptions;
import io.pmfs.cli.mount.RunCommand;
import io.pmfs.cli.mount.UmountCommand;
import io.pmfs.cli.mount.UpgradeCommand;
import io.pmfs.cli.status.ProfileCommand;
import io.pmfs.cli.status.StatusCommand;
import io.pmfs.cli.tasks.DrainCommand;
import io.pmfs.cli.tasks.EvictCommand;
import io.pmfs.cli.tasks.StageCommand;
import io.pmfs.cli.tasks.VerifyCommand;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.process.Version;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.settings.NearestName;
import java.io.OutputStreamWriter;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;
import picocli.CommandLine.UnmatchedArgumentException;

/** {@code pmfs} itself: the list of commands, and the reporting of their errors. */
@Command(
    name = "pmfs",
    description = "Serves a dataset on slow, shared storage from fast node-local tiers.",
    synopsisSubcommandLabel = "COMMAND",
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs mount /lustre/imagenet /mnt/dataset",
      "  pmfs stage /mnt/dataset",
      "  pmfs status /mnt/dataset",
      "  pmfs umount /mnt/dataset"
    })
final class PmfsCommand implements Runnable {
  @Spec private CommandSpec spec;

  @Option(
      names = "--verbose",
      scope = ScopeType.INHERIT,
      description = "Also print the stack trace of an error.")
  private boolean verbose;

  private PmfsCommand() {}

  /** Runs one command line; returns its exit status. */
  static int execute(Invocation invocation, String... args) {
    PmfsCommand root = new PmfsCommand();
    Map<String, Supplier<Object>> known = known(invocation);
    // Builds only one command: building all takes longer than running most.
    if (args.length > 0 && known.containsKey(args[0])) {
      known.keySet().retainAll(Set.of(args[0]));
    }
    CommandLine commands = commands(root, known);
    commands.setOut(writer(invocation.out()));
    commands.setErr(writer(invocation.err()));
    commands.setParameterExceptionHandler((e, a) -> wrongUsage(e, root, invocation));
    commands.setExecutionExceptionHandler((e, c, p) -> failed(e, root, invocation));
    return commands.execute(args);
  }

  /** All commands with their options, for documentation. */
  static CommandLine commands(Invocation invocation) {
    return commands(new PmfsCommand(), known(invocation));
  }

  private static CommandLine commands(PmfsCommand root, Map<String, Supplier<Object>> chosen) {
    CommandLine commands = new CommandLine(root);
    chosen.forEach((name, command) -> commands.addSubcommand(name, command.get()));
    commands.addSubcommand(new CommandLine.HelpCommand());
    CommandList.addTo(commands);
    ExitStatuses.addTo(commands);
    for (CommandLine command : allOf(commands)) {
      addCommonOptions(command.getCommandSpec());
      // A supplier, called only for --version, because reading the version opens most libraries.
      command.getCommandSpec().versionProvider(() -> new String[] {"pmfs " + Version.withCommit()});
      command.getCommandSpec().usageMessage().width(100);
    }
    return commands;
  }

  private static Map<String, Supplier<Object>> known(Invocation invocation) {
    Map<String, Supplier<Object>> known = new LinkedHashMap<>();
    known.put("mount", () -> withMountOptions(new MountCommand(invocation)));
    known.put("umount", () -> new UmountCommand(invocation));
    // All arguments after the command's name belong to that command.
    known.put("run", () -> withMountOptions(new RunCommand(invocation)).setStopAtPositional(true));
    known.put("drain", () -> new DrainCommand(invocation));
    known.put("upgrade", () -> new UpgradeCommand(invocation));
    known.put("stage", () -> new StageCommand(invocation));
    known.put("status", () -> new StatusCommand(invocation));
    known.put("profile", () -> new ProfileCommand(invocation));
    known.put("evict", () -> new EvictCommand(invocation));
    known.put("verify", () -> new VerifyCommand(invocation));
    known.put("cache", () -> new CacheCommand(invocation));
    known.put("node-cache", () -> new NodeCacheCommand(invocation));
    known.put("config", () -> withMountOptions(new ConfigCommand(invocation)));
    known.put("pack", () -> new PackCommand(invocation));
    known.put("doctor", () -> new DoctorCommand(invocation));
    known.put("bugreport", () -> new BugreportCommand(invocation));
    return known;
  }

  private static CommandLine withMountOptions(Object command) {
    return MountOptions.addTo(new CommandLine(command));
  }

  private static void addCommonOptions(CommandSpec command) {
    if (command.findOption("--help") == null) {
      command.addOption(
          OptionSpec.builder("-h", "--help")
              .usageHelp(true)
              .description("Show this help.")
              .build());
    }
    command.addOption(
        OptionSpec.builder("-V", "--version")
            .versionHelp(true)
            .description("Show the version.")
            .build());
  }

  private static PrintWriter writer(PrintStream stream) {
    return new PrintWriter(new OutputStreamWriter(stream, UTF_8), true);
  }

  private static List<CommandLine> allOf(CommandLine root) {
    List<CommandLine> all = new ArrayList<>(root.getSubcommands().values());
    all.add(root);
    return all;
  }

  private static int wrongUsage(ParameterException e, PmfsCommand root, Invocation invocation) {
    CommandSpec command = e.getCommandLine().getCommandSpec();
    String line = String.valueOf(e.getMessage()).replace('\n', ' ').replaceFirst("\\.$", "");
    String remedy = "see " + command.qualifiedName() + " --help";
    if (e instanceof UnmatchedArgumentException unmatched && !unmatched.getUnmatched().isEmpty()) {
      String word = unmatched.getUnmatched().get(0);
      boolean isOption = word.startsWith("-");
      String option = word.split("=", 2)[0];
      String nearest =
          isOption
              ? nearestOption(option, command)
              : NearestName.to(word, command.subcommands().keySet());
      line =
          isOption
              ? option + ": unknown option"
              : word
                  + (command.subcommands().isEmpty()
                      ? ": unexpected argument"
                      : ": unknown command");
      String foreign = ForeignWords.remedy(command.name(), option);
      if (foreign != null) {
        remedy = foreign;
      } else if (nearest != null) {
        remedy = "did you mean " + nearest + "?";
      }
    }
    invocation.warn(line + "; " + remedy);
    if (root.verbose) {
      e.printStackTrace(invocation.err());
    }
    return ExitStatus.USAGE;
  }

  /** For a single letter, suggests only the other case. */
  private static @Nullable String nearestOption(String mistyped, CommandSpec command) {
    Set<String> known = new TreeSet<>(command.optionsMap().keySet());
    known.addAll(command.negatedOptionsMap().keySet());
    if (mistyped.length() > 2) {
      known.removeIf(name -> name.length() <= 2);
      return NearestName.to(mistyped, known);
    }
    return known.stream()
        .filter(name -> name.equalsIgnoreCase(mistyped) && !name.equals(mistyped))
        .findFirst()
        .orElse(null);
  }

  private static int failed(Exception e, PmfsCommand root, Invocation invocation) {
    invocation.warn(
        e instanceof MountFailure failure
            ? failure.line()
            : "internal error: " + e + "; run again with --verbose and report it");
    if (root.verbose) {
      e.printStackTrace(invocation.err());
    }
    return e instanceof MountFailure failure ? failure.exitStatus() : ExitStatus.FAILED;
  }

  @Override
  public void run() {
    throw new ParameterException(
        spec.commandLine(),
        "no command given; the commands are "
            + spec.subcommands().keySet().stream()
                .filter(name -> !name.equals("help"))
                .collect(joining(", ")));
  }
}
