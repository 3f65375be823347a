package io.pmfs.distribution;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.OptionSpec;

/**
 * The completion of bash: what completion.bash needs to know of each command, and that script.
 *
 * <p>A value is described by words to offer, or by {@code <file>}, {@code <directory>}, {@code
 * <mount>}, {@code <command>} or {@code <any>}.
 */
final class Completion {
  private final StringBuilder script = new StringBuilder("# Made from the commands of pmfs.\n\n");

  private Completion() {}

  static String of(CommandLine root) {
    Completion completion = new Completion();
    completion.function(
        "_pmfs_words", "the commands, or the options of a command", wordsByCommand(root));
    completion.function(
        "_pmfs_value", "the values of an option; nothing if it has none", valuesByOption(root));
    completion.function("_pmfs_argument", "the arguments of a command", argumentsByCommand(root));
    return completion.script.append(program()).toString();
  }

  private static Map<String, String> wordsByCommand(CommandLine root) {
    Map<String, String> words = new TreeMap<>();
    words.put("", String.join(" ", root.getSubcommands().keySet()) + " " + options(root));
    root.getSubcommands().forEach((name, command) -> words.put(name, options(command)));
    return words;
  }

  private static String options(CommandLine command) {
    return command.getCommandSpec().options().stream()
        .filter(option -> !option.hidden())
        .flatMap(Completion::names)
        .collect(Collectors.joining(" "));
  }

  private static Stream<String> names(OptionSpec option) {
    List<String> names = new ArrayList<>(List.of(option.names()));
    if (option.negatable()) {
      names.add("--no-" + option.longestName().substring(2));
    }
    return names.stream();
  }

  private static Map<String, String> valuesByOption(CommandLine root) {
    Map<String, String> values = new TreeMap<>();
    root.getSubcommands()
        .forEach(
            (name, command) -> {
              for (OptionSpec option : command.getCommandSpec().options()) {
                // A value that may be absent is part of the same word.
                if (option.arity().min() > 0) {
                  names(option).forEach(each -> values.put(name + " " + each, value(option)));
                }
              }
            });
    return values;
  }

  private static Map<String, String> argumentsByCommand(CommandLine root) {
    Map<String, String> arguments = new TreeMap<>();
    root.getSubcommands()
        .forEach(
            (name, command) ->
                command.getCommandSpec().positionalParameters().stream()
                    .filter(argument -> !argument.hidden())
                    .forEach(argument -> arguments.merge(name, value(argument), Completion::both)));
    arguments.put("help", String.join(" ", root.getSubcommands().keySet()));
    return arguments;
  }

  private static String both(String one, String other) {
    return one.equals(other) ? one : one + " " + other;
  }

  private static String value(ArgSpec argument) {
    Iterable<String> candidates =
        Objects.requireNonNullElse(argument.completionCandidates(), Collections.emptyList());
    String words = String.join(" ", candidates);
    return words.isEmpty() ? valueByLabel(argument.paramLabel()) : words;
  }

  /** Labels of placeholders are in upper case, words to be typed in lower case. */
  private static String valueByLabel(String label) {
    if (Character.isLowerCase(label.charAt(0))) {
      return Stream.of(label.split("\\|", -1))
          .map(word -> word.replaceAll("[\\[A-Z].*", ""))
          .collect(Collectors.joining(" "));
    }
    return switch (label) {
      case "FILE", "PATH" -> "<file>";
      case "DIR", "DIRECTORY", "SOURCE", "[SOURCE] MOUNTPOINT" -> "<directory>";
      case "MOUNTPOINT" -> "<mount>";
      case "MOUNTPOINT|PATH", "MOUNTPOINT|FILE" -> "<mount> <file>";
      case "COMMAND" -> "<command>";
      default -> "<any>";
    };
  }

  /** A function that prints the text of its argument. */
  private void function(String name, String what, Map<String, String> texts) {
    Map<String, String> keys = new TreeMap<>();
    texts.forEach((key, text) -> keys.merge(text, quoted(key), (a, b) -> a + " | " + b));
    script.append("# Prints ").append(what).append(".\n").append(name).append("() {\n");
    script.append("  case $1 in\n");
    keys.forEach((text, key) -> script.append("  %s) echo %s ;;\n".formatted(key, quoted(text))));
    script.append("  esac\n}\n\n");
  }

  private static String quoted(String text) {
    return "'" + text.replace("'", "'\\''") + "'";
  }

  private static String program() {
    try (InputStream in = Completion.class.getResourceAsStream("completion.bash")) {
      return new String(Objects.requireNonNull(in).readAllBytes(), UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
