package io.pmfs.cli.mount;

import io.pmfs.settings.MountOption;
import io.pmfs.settings.MountOption.Group;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import picocli.CommandLine;
import picocli.CommandLine.Model.ArgGroupSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParseResult;

/** {@link MountOption} as command line options. */
public final class MountOptions {
  private MountOptions() {}

  public static CommandLine addTo(CommandLine command) {
    CommandSpec spec = command.getCommandSpec();
    Map<Group, ArgGroupSpec.Builder> groups = new EnumMap<>(Group.class);
    for (MountOption<?> option : MountOption.options()) {
      if (option.group() == Group.GENERAL) {
        spec.addOption(spec(option));
      } else {
        groups.computeIfAbsent(option.group(), MountOptions::builder).addArg(spec(option));
      }
    }
    groups.values().forEach(group -> spec.addArgGroup(group.build()));
    return command;
  }

  private static ArgGroupSpec.Builder builder(Group group) {
    return ArgGroupSpec.builder()
        .heading("%n" + group.heading() + "%n")
        .exclusive(false)
        .validate(false);
  }

  private static OptionSpec spec(MountOption<?> option) {
    String defaultText = option.defaultText();
    String description =
        Character.toUpperCase(option.description().charAt(0))
            + option.description().substring(1)
            + (defaultText == null ? "." : ". Default: " + defaultText.replace("%", "%%") + ".");
    OptionSpec.Builder builder =
        OptionSpec.builder(option.commandLineName())
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
