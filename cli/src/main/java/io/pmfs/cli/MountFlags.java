package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;
import static java.util.stream.Collectors.joining;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;

/**
 * The options of {@code pmfs mount} that take no value, in a file for scripts/pmfs, which has to
 * find the mount point before it starts Java.
 */
final class MountFlags {
  private MountFlags() {}

  /** Takes the file to write. The build calls this. */
  public static void main(String[] args) throws Exception {
    Files.writeString(Path.of(args[0]), text(), UTF_8);
  }

  /** The names, negations too, in one line. */
  static String text() throws Exception {
    Map<String, CommandLine> commands = Documentation.commands().getSubcommands();
    CommandSpec mount = requireNonNull(commands.get("mount")).getCommandSpec();
    return Stream.of(mount.optionsMap(), mount.negatedOptionsMap())
        .flatMap(options -> options.entrySet().stream())
        .filter(option -> option.getValue().arity().max() == 0)
        .map(Map.Entry::getKey)
        .sorted()
        .collect(joining(" ", "", "\n"));
  }
}
