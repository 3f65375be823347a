package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Each mistake on a command line gives one line on standard error, and an exit status. */
final class MistakesTest {
  private static final String TABLE = "mistakes.txt";
  private static final Pattern VARIABLE = Pattern.compile("PMFS_[A-Z_]+=.*");

  @TempDir private Path temporary;
  private TestWorld world;

  /** A row of the table, which describes its columns. */
  record Mistake(String commandLine, int status, String message) {
    static Mistake parse(String row) {
      String[] cells = row.split(" ?\\| ", 3);
      return new Mistake(cells[0], Integer.parseInt(cells[1].strip()), cells[2]);
    }

    @Override
    public String toString() {
      return commandLine;
    }
  }

  static Stream<Mistake> mistakes() throws IOException {
    try (InputStream table =
        Objects.requireNonNull(MistakesTest.class.getResourceAsStream(TABLE))) {
      return new String(table.readAllBytes(), UTF_8)
          .lines().filter(line -> !line.startsWith("#")).map(Mistake::parse).toList().stream();
    }
  }

  @BeforeEach
  void makeWorld() throws IOException {
    world = new TestWorld(temporary);
    world.makeDirectory("src/inner");
    world.makeDirectory("mnt");
    world.makeDirectory("outer/src");
    Files.writeString(world.makeDirectory("images").resolve("a.jpg"), "x");
    Files.writeString(world.directory.resolve("file"), "x");
    Files.writeString(world.directory.resolve("set.tar"), "x");
    Files.writeString(world.directory.resolve("bad.toml"), "teir = \"x\"\n");
    Files.createSymbolicLink(world.directory.resolve("link"), world.directory.resolve("mnt"));
    Files.createSymbolicLink(world.directory.resolve("dangling"), Path.of("mnt/log"));
  }

  @ParameterizedTest
  @MethodSource("mistakes")
  void execute_mistake_isOneLineAndAStatus(Mistake mistake) {
    List<String> words = new ArrayList<>(Arrays.asList(mistake.commandLine().split(" ", -1)));
    words.removeIf(String::isEmpty);
    while (!words.isEmpty() && VARIABLE.matcher(words.get(0)).matches()) {
      String[] variable = words.remove(0).split("=", 2);
      world.environment.put(variable[0], variable[1]);
    }

    int status = world.execute(words.toArray(String[]::new));

    assertThat(world.errors()).matches(pattern(mistake.message()));
    assertThat(status).isEqualTo(mistake.status());
    assertThat(world.output()).isEmpty();
  }

  private Pattern pattern(String message) {
    String line = message.replace("DIR/", world.directory + "/");
    return Pattern.compile(
        "pmfs: "
            + Arrays.stream(line.split("<\\.\\.\\.>", -1))
                .map(Pattern::quote)
                .collect(Collectors.joining(".*"))
            + "\n");
  }
}
