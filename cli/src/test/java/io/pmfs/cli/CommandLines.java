package io.pmfs.cli;

import io.pmfs.cli.mount.MountOptions;
import io.pmfs.places.Capacity;
import io.pmfs.places.TierSpec;
import io.pmfs.settings.MountOption;
import io.pmfs.stage.formats.Compression;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;

/** Parses command lines like pmfs, without running them. */
final class CommandLines {
  private CommandLines() {}

  /** The error in the arguments of pmfs, or null. */
  static @Nullable String problemOf(List<String> arguments, TestWorld world) {
    CommandLine commands = PmfsCommand.commands(world.invocation());
    try {
      CommandLine.ParseResult parsed = commands.parseArgs(arguments.toArray(String[]::new));
      CommandLine.ParseResult command = parsed.subcommand();
      if (command != null && command.commandSpec().name().equals("mount")) {
        checkValues(MountOptions.given(command), world);
      }
      return null;
    } catch (CommandLine.ParameterException | IllegalArgumentException e) {
      return String.valueOf(e.getMessage());
    }
  }

  private static void checkValues(Map<MountOption<?>, List<String>> given, TestWorld world) {
    given.getOrDefault(MountOption.TIER, List.of()).stream()
        .filter(tier -> !tier.contains("..."))
        .forEach(tier -> TierSpec.parse(tier, world.surroundings()));
    given.getOrDefault(MountOption.COMPRESSION, List.of()).forEach(Compression::parse);
    given.getOrDefault(MountOption.KEEP_FREE, List.of()).forEach(Capacity::parse);
  }
}
