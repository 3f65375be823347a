package io.pmfs.cli;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Model.UsageMessageSpec;

/**
 * The commands in the help of pmfs, by purpose, which is that of their package; a line for each.
 */
final class CommandList {
  private static final Map<String, String> HEADINGS =
      Map.of(
          "mount", "Mounting:",
          "tasks", "Copies and changes of a mount:",
          "status", "Watching a mount:",
          "copies", "Copies on this machine:");

  private static final String OTHERS = "Setting up, and help:";

  private CommandList() {}

  static void addTo(CommandLine commands) {
    Map<String, CommandLine.IHelpSectionRenderer> sections = commands.getHelpSectionMap();
    sections.put(UsageMessageSpec.SECTION_KEY_COMMAND_LIST_HEADING, help -> "");
    sections.put(
        UsageMessageSpec.SECTION_KEY_COMMAND_LIST, help -> text(commands.getSubcommands()));
  }

  private static String text(Map<String, CommandLine> commands) {
    Map<String, List<String>> groups = new LinkedHashMap<>();
    commands.forEach(
        (name, command) ->
            groups
                .computeIfAbsent(heading(command), heading -> new ArrayList<>())
                .add("  %-12s %s%n".formatted(name, summary(command))));
    StringBuilder text = new StringBuilder();
    groups.forEach(
        (heading, lines) ->
            text.append("%n%s%n".formatted(heading)).append(String.join("", lines)));
    return text.toString();
  }

  private static String heading(CommandLine command) {
    String place = command.getCommandSpec().userObject().getClass().getPackageName();
    return HEADINGS.getOrDefault(place.substring(place.lastIndexOf('.') + 1), OTHERS);
  }

  /** The first sentence of the description, or the header of picocli's own command. */
  private static String summary(CommandLine command) {
    UsageMessageSpec usage = command.getCommandSpec().usageMessage();
    return Stream.of(usage.header(), usage.description())
        .flatMap(Stream::of)
        .map(line -> line.formatted().strip().split("\\.( |$)", 2)[0])
        .findFirst()
        .orElse("");
  }
}
