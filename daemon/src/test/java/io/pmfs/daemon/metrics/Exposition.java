package io.pmfs.daemon.metrics;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** A parser for the part of Prometheus's text format that tests need. */
final class Exposition {
  private static final Pattern TYPE = Pattern.compile("# TYPE (\\S+) (\\S+)");
  private static final Pattern HELP = Pattern.compile("# HELP (\\S+) (.*)");
  private static final Pattern LABEL = Pattern.compile("[{,](\\w+)=\"");

  /** Labels on every metric, and labels of the parts of a histogram or summary. */
  private static final Set<String> USUAL = Set.of("dataset", "mountpoint", "le", "quantile");

  /** The repository, where docs/ is; tests run in a module of it. */
  static final Path REPOSITORY =
      Path.of("").toAbsolutePath().resolveSibling("").toAbsolutePath().normalize();

  private final String text;

  Exposition(String text) {
    this.text = text;
  }

  /** The type of each metric by its name. */
  Map<String, String> types() {
    Map<String, String> types = new TreeMap<>();
    Matcher matcher = TYPE.matcher(text);
    while (matcher.find()) {
      types.put(matcher.group(1), matcher.group(2));
    }
    return types;
  }

  /** A row of docs/metrics.md for each metric, without marks: name, type, labels and help. */
  List<String> rows() {
    Map<String, String> types = types();
    return HELP.matcher(text)
        .results()
        .map(help -> row(help.group(1), String.valueOf(types.get(help.group(1))), help.group(2)))
        .toList();
  }

  private String row(String name, String type, String help) {
    String meaning = help.substring(0, 1).toLowerCase(Locale.ROOT) + help.substring(1);
    return String.join(" | ", name, type, labels(name), meaning);
  }

  private String labels(String name) {
    Pattern sample = Pattern.compile("(?m)^" + name + "(?:_count)?(\\{.*})");
    return sample
        .matcher(text)
        .results()
        .flatMap(match -> LABEL.matcher(match.group(1)).results())
        .map(label -> label.group(1))
        .filter(label -> !USUAL.contains(label))
        .distinct()
        .sorted()
        .collect(Collectors.joining(", "));
  }

  /** The value of the only sample that begins with this text and has all these labels. */
  double value(String name, String... labels) {
    return Double.parseDouble(
        text.lines()
            .filter(line -> line.startsWith(name + "{") || line.startsWith(name + " "))
            .filter(line -> java.util.Arrays.stream(labels).allMatch(line::contains))
            .reduce(
                (a, b) -> {
                  throw new AssertionError("two samples: " + a + " and " + b);
                })
            .map(line -> line.substring(line.lastIndexOf(' ') + 1))
            .orElseThrow(() -> new AssertionError("no " + name + " in\n" + text)));
  }

  static String document(String path) throws java.io.IOException {
    return Files.readString(REPOSITORY.resolve(path));
  }
}
