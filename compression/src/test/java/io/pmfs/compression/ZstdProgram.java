package io.pmfs.compression;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** The zstd command line tool, the reference for the format. */
public final class ZstdProgram {
  private ZstdProgram() {}

  /** Skips the test if zstd is not installed. */
  public static void assume() throws InterruptedException {
    boolean runs;
    try {
      run("--version");
      runs = true;
    } catch (IOException e) {
      runs = false;
    }
    assumeTrue(runs, "the zstd program is not installed (apt-get install zstd)");
  }

  /** Runs it, and expects it to succeed. */
  public static void run(String... arguments) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(List.of("zstd"));
    command.addAll(List.of(arguments));
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    assertThat(process.waitFor()).as(String.join(" ", command)).isZero();
  }
}
