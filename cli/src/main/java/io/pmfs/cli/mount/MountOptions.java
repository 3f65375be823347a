package io.pmfs.cli.mount;

import io.pmfs.settings.MountOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import picocli.CommandLine;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;
import picocli.CommandLine.ParseResult;

/** {@link MountOption} as command line options. */
public final class MountOptions {
  private MountOptions() {}

  public static CommandLine addTo(CommandLine command) {
    CommandSpec spec = command.getCommandSpec();
    MountOption.options().forEach(option -> spec.addOption(spec(option)));
    command
        .getHelpSectionMap()
        .put(UsageMessageSpec.SECTION_KEY_OPTION_LIST, MountOptions::optionList);
    return command;
  }

  /**
   * The options of a command by heading: its own, below an empty one, then those of mounts by
   * group. Not groups of picocli, in which a second value of an option replaces the first.
   */
  public static Map<String, List<OptionSpec>> byHeading(CommandSpec command) {
    Map<String, List<OptionSpec>> groups = new LinkedHashMap<>();
    List<OptionSpec> own = new ArrayList<>(command.options());
    groups.put("", own);
    for (MountOption<?> option : MountOption.options()) {
      OptionSpec spec = command.findOption(option.commandLineName());
      if (spec != null && spec.userObject() == null) {
        own.remove(spec);
        groups.computeIfAbsent(option.group().heading(), heading -> new ArrayList<>()).add(spec);
      }
    }
    return groups;
  }

  private static String optionList(Help help) {
    List<OptionSpec> all = help.commandSpec().options();
    StringBuilder text = new StringBuilder();
    byHeading(help.commandSpec())
        .forEach(
            (heading, options) -> {
              // Of all options, so that the columns of all groups have the same width.
              Help.Layout layout = help.createDefaultLayout(all, List.of(), help.colorScheme());
              layout.addAllOptions(options, help.parameterLabelRenderer());
              text.append(heading.isEmpty() ? "" : "%n%s%n".formatted(heading)).append(layout);
            });
    return text.toString();
  }

  private static OptionSpec spec(MountOption<?> option) {
    String defaultText = option.defaultText();
    String description =
        Character.toUpperCase(option.description().charAt(0))
            + option.description().substring(1)
            + (defaultText == null ? "." : ". Default: " + defaultText.replace("%", "%%") + ".");
    OptionSpec.Builder builder =
        OptionSpec.builder(option.commandLineNames())
            .description(description)
            .completionCandidates(option.choices());
    return switch (option.kind()) {
      case FLAG -> builder.type(Boolean.class).arity("0").negatable(true).build();
      case LIST ->
          builder
              .type(List.class)
              .auxiliaryTypes(String.class)
              .arity("1")
              .paramLabel(option.placeholder())
              .build();
      default -> builder.type(String.class).arity("1").paramLabel(option.placeholder()).build();
    };
  }

  /** The options given on the command line, with their values as text. */
  public static Map<MountOption<?>, List<String>> given(ParseResult parsed) {
    Map<MountOption<?>, List<String>> given = new TreeMap<>();
    for (MountOption<?> option : MountOption.options()) {
      OptionSpec matched = parsed.matchedOption(option.commandLineName());
      if (matched != null && matched.userObject() == null) {
        given.put(
            option,
            option.kind() == MountOption.Kind.FLAG
                ? List.of(Boolean.toString(Boolean.TRUE.equals(matched.getValue())))
                : matched.stringValues());
      }
    }
    return given;
  }
}
