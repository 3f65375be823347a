package io.pmfs.daemon.metrics;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Prometheus's text format, as far as it is needed to look something up in it. */
final class Exposition {
  private static final Pattern TYPE = Pattern.compile("# TYPE (\\S+) (\\S+)");

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

  /** The value of the one sample that begins so and has all these labels. */
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
