package io.pmfs.distribution;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** A program of this machine that a test runs. */
final class Program {
  private Program() {}

  /** Skips the test without the program, or fails it where scripts/test has installed it. */
  static void require(String name) {
    String path = String.valueOf(System.getenv("PATH"));
    boolean exists =
        Stream.of(path.split(File.pathSeparator, -1))
            .anyMatch(directory -> Files.isExecutable(Path.of(directory, name)));
    String missing = "needs " + name + ": scripts/install-requirements test";
    if (!exists && "1".equals(System.getenv("PMFS_REQUIRE_FUSE"))) {
      fail("PMFS_REQUIRE_FUSE=1, but the test " + missing);
    }
    assumeTrue(exists, missing);
  }

  /** The output, with errors, of a program that succeeds. */
  static String run(String input, String... command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    try (OutputStream in = process.getOutputStream()) {
      in.write(input.getBytes(UTF_8));
    }
    String output = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    return output;
  }
}
