package io.pmfs.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OpenFileLimitTest {
  @TempDir private Path directory;

  private int limit(String openFiles) throws Exception {
    Path limits = directory.resolve("limits");
    Files.writeString(
        limits,
        "Limit                     Soft Limit           Hard Limit           Units\n"
            + "Max processes             90000                90000                processes\n"
            + "Max open files            "
            + openFiles
            + "                 1048576              files\n");
    return OpenFileLimit.of(limits);
  }

  @Test
  void of_limits_leavesMostForTheRest() throws Exception {
    assertThat(limit("512")).isEqualTo(80);
    assertThat(limit("4096")).isEqualTo(976);
    assertThat(limit("1048576")).isEqualTo(4096);
    assertThat(limit("unlimited")).isEqualTo(4096);
    assertThat(limit("64")).isEqualTo(16);
    assertThat(OpenFileLimit.of(directory.resolve("none"))).isEqualTo(16);
    assertThat(OpenFileLimit.ofProcess()).isPositive();
  }
}
