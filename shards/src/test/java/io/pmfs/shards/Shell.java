package io.pmfs.shards;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;

/** Runs shell scripts in a directory; a failing script fails the test. */
final class Shell {
  private Shell() {}

  /** The output of the script, one char per byte. */
  static String run(Path directory, String script) {
    try {
      Process process =
          new ProcessBuilder("bash", "-euo", "pipefail", "-c", script)
              .directory(directory.toFile())
              .redirectErrorStream(true)
              .start();
      String output = new String(process.getInputStream().readAllBytes(), ISO_8859_1);
      assertThat(process.waitFor()).as("%s: %s", script, output).isZero();
      return output;
    } catch (IOException e) {
      throw new IllegalStateException(script, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(script, e);
    }
  }
}
