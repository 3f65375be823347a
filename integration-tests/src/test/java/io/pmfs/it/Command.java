package io.pmfs.it;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A finished process.
 *
 * @param exit its exit status
 * @param out what it wrote on standard output, one char a byte
 * @param err the same of standard error
 */
record Command(List<String> line, int exit, String out, String err) {
  static final Duration DEADLINE = Duration.ofMinutes(Machine.isEmulated() ? 10 : 2);

  static Command run(String... line) {
    return run(Map.of(), DEADLINE, List.of(line));
  }

  /**
   * Runs a process to its end.
   *
   * @param environment added to ours; an empty value removes the name
   */
  static Command run(Map<String, String> environment, Duration deadline, List<String> line) {
    try {
      // Files and no pipes: a daemon that keeps them open must not keep us waiting.
      Path out = Files.createTempFile("pmfs-it", ".out");
      Path err = Files.createTempFile("pmfs-it", ".err");
      try {
        Process process =
            builder(environment, line)
                .redirectOutput(out.toFile())
                .redirectError(err.toFile())
                .start();
        if (!process.waitFor(deadline.toMillis(), TimeUnit.MILLISECONDS)) {
          process.destroyForcibly();
          throw new AssertionError(
              "not done after " + deadline + ": " + String.join(" ", line) + "\n" + text(err));
        }
        return new Command(line, process.exitValue(), text(out), text(err));
      } finally {
        Files.deleteIfExists(out);
        Files.deleteIfExists(err);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("interrupted: " + String.join(" ", line), e);
    }
  }

  static ProcessBuilder builder(Map<String, String> environment, List<String> line) {
    ProcessBuilder builder =
        new ProcessBuilder(line).redirectInput(Redirect.from(Path.of("/dev/null").toFile()));
    builder.environment().putAll(environment);
    builder.environment().values().removeIf(String::isEmpty);
    return builder;
  }

  private static String text(Path file) throws IOException {
    return Files.readString(file, ISO_8859_1);
  }

  Command expect(int status) {
    if (exit != status) {
      throw new AssertionError("exit status " + exit + " instead of " + status + ": " + this);
    }
    return this;
  }

  List<String> errorLines() {
    return err.lines().toList();
  }

  @Override
  public String toString() {
    return String.join(" ", line)
        + "\nexit status: "
        + exit
        + "\nstdout: "
        + head(out)
        + "\nstderr: "
        + head(err);
  }

  private static String head(String text) {
    return text.length() <= 2000 ? text : text.substring(0, 2000) + "...";
  }
}
