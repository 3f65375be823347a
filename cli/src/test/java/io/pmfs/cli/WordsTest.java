package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** All output passes through PathText: in the log, in Invocation, or in a class listed here. */
final class WordsTest {
  /** Classes that print only lines that passed through PathText, numbers, or text of pmfs. */
  private static final Set<String> PRINT =
      Set.of(
          "ConfigCommand.java", // the example of a configuration
          "DrainProgress.java", // an encoded line
          "ProfileDisplay.java", // empty lines
          "RunCommand.java", // for scripts/pmfs-run, which parses it
          "StatusCommand.java" // empty lines
          );

  @Test
  void sources_printThroughInvocation() throws IOException {
    for (Path file : sources("cli", "daemon")) {
      String text = Files.readString(file);
      if (!PRINT.contains(String.valueOf(file.getFileName()))) {
        assertThat(text).as("%s", file).doesNotContainPattern("(out|err)\\(\\)(\\.|::)print");
      }
      assertThat(text)
          .as("%s", file)
          .doesNotContain("System.out.print")
          .doesNotContain("System.err.print");
    }
  }

  @Test
  void sources_escapeInOnePlace() throws IOException {
    for (Path file :
        sources("cli", "daemon", "cluster", "settings", "shards", "fs-core", "writable")) {
      assertThat(Files.readString(file))
          .as("%s", file)
          .doesNotContain("p{Cntrl}\", \"?")
          .doesNotContain("isISOControl")
          .doesNotContain("PatternLayout");
    }
  }

  private static List<Path> sources(String... modules) throws IOException {
    List<Path> found = new java.util.ArrayList<>();
    for (String module : modules) {
      try (Stream<Path> files =
          Files.walk(Repository.ROOT.resolve(module).resolve("src/main/java"))) {
        files.filter(file -> file.toString().endsWith(".java")).forEach(found::add);
      }
    }
    assertThat(found).isNotEmpty();
    return found;
  }
}
