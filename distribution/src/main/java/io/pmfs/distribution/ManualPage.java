package io.pmfs.distribution;

import io.pmfs.cli.Documentation;
import java.util.List;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Help;
import picocli.CommandLine.Help.Ansi.Text;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The manual page of a command: its help, and what all pages have in common. */
final class ManualPage {
  private static final Help.ColorScheme PLAIN = Help.defaultColorScheme(Help.Ansi.OFF);

  /** Wider than any synopsis: picocli breaks lines inside words, groff only between them. */
  private static final int WIDE = 10_000;

  private final CommandSpec command;
  private final Help help;
  private final Roff page = new Roff();

  private ManualPage(CommandLine command) {
    this.command = command.getCommandSpec();
    this.command.usageMessage().width(WIDE);
    this.help = new Help(this.command, PLAIN);
  }

  /** The name of a command's page, without the section. */
  static String nameOf(CommandLine command) {
    return command.getCommandSpec().qualifiedName("-");
  }

  /** The commands that have a page. */
  static List<CommandLine> commandsOf(CommandLine root) {
    return Stream.concat(Stream.of(root), root.getSubcommands().values().stream())
        .filter(each -> !each.getCommandName().equals("help"))
        .toList();
  }

  static String of(CommandLine command, String date, String version, CommonSections common) {
    return new ManualPage(command).write(date, version, common);
  }

  private String write(String date, String version, CommonSections common) {
    String name = command.qualifiedName("-");
    List<String> description = lines(command.usageMessage().description());
    page.title(name, "1", date, version);
    page.heading("NAME").paragraph(name + " - " + firstSentence(description.get(0)));
    page.heading("SYNOPSIS").call(command.qualifiedName(), synopsis());
    page.heading("DESCRIPTION").blocks(description);
    arguments();
    options();
    commands();
    CommonSections.exitStatus(page, command);
    common.environment(page);
    common.files(page);
    page.heading("EXAMPLES").blocks(lines(command.usageMessage().footer()));
    common.seeAlso(page, name + "(1)");
    return page.toString();
  }

  private static List<String> lines(String[] texts) {
    return Stream.of(texts).flatMap(text -> text.formatted().lines()).toList();
  }

  private static String firstSentence(String text) {
    return text.split("\\.( |$)", 2)[0];
  }

  /** What follows the name of the command. */
  private String synopsis() {
    String line = help.synopsis(0).strip().replaceAll("\\s+", " ");
    return line.substring(command.qualifiedName().length());
  }

  private void arguments() {
    var arguments = command.positionalParameters().stream().filter(each -> !each.hidden()).toList();
    if (!arguments.isEmpty()) {
      page.heading("ARGUMENTS");
    }
    Help.IParameterRenderer renderer = help.createDefaultParameterRenderer();
    arguments.forEach(
        each -> entry(renderer.render(each, help.createDefaultParamLabelRenderer(), PLAIN)));
  }

  private void options() {
    page.heading("OPTIONS");
    Documentation.optionsByHeading(command)
        .forEach(
            (heading, options) -> {
              if (!heading.isEmpty()) {
                page.subheading(heading.replaceAll(":$", ""));
              }
              options.forEach(this::option);
            });
  }

  private void option(OptionSpec option) {
    if (!option.hidden()) {
      entry(
          help.createDefaultOptionRenderer()
              .render(option, help.createDefaultParamLabelRenderer(), PLAIN));
    }
  }

  /** Rows of the help: the last column describes, those before it name. */
  private void entry(Text[][] rows) {
    String name = "";
    for (int column = 1; column < rows[0].length - 1; column++) {
      name += rows[0][column].plainString() + (column == 2 ? " " : "");
    }
    String[] parts = name.strip().split("(?=\\[?=)", 2);
    String meaning =
        Stream.of(rows)
            .map(row -> row[row.length - 1].plainString().strip())
            .reduce("", (one, other) -> (one + " " + other).strip());
    page.entry(parts[0], parts.length == 1 ? "" : parts[1], meaning);
  }

  private void commands() {
    if (command.subcommands().isEmpty()) {
      return;
    }
    page.heading("COMMANDS");
    for (CommandLine each : commandsOf(command.commandLine())) {
      if (each.getCommandSpec() != command) {
        List<String> description = lines(each.getCommandSpec().usageMessage().description());
        page.entry(nameOf(each) + "(1)", "", description.get(0));
      }
    }
  }
}
