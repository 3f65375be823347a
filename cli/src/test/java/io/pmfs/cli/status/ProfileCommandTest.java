package io.pmfs.cli.status;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.pmfs.cli.TestWorld;
import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ProfileCommandTest {
  private static final String READS =
      """
      2026-11-22T02:26:00.000000Z [uid:0,gid:0,pid:1] lookup ("/train/a"): OK <0.000010>
      2026-11-22T02:26:01.000000Z [uid:0,gid:0,pid:1] read ("/train/a",131072,0): OK (1000) <0.002000>
      2026-11-22T02:26:02.000000Z [uid:0,gid:0,pid:2] read ("/train/b",131072,0): EIO <0.006000>
      """;

  @TempDir private Path temporary;
  private TestWorld world;

  @BeforeEach
  void makeWorld() throws Exception {
    world = new TestWorld(temporary);
    Files.writeString(world.directory.resolve("access"), READS);
    Files.writeString(
        world.directory.resolve("access.1"),
        READS.replace(":26:", ":25:")
            + "2026-11-22T02:25:59.000000Z ... 7 requests are missing here: why\nnot a line\n");
  }

  @Test
  void profile_ofAFile_isOneTable() {
    assertThat(world.execute("profile", "access")).isZero();

    assertThat(world.output())
        .startsWith("3 requests in 2.0 s, 1000 B\noperation ")
        .containsPattern("read +2 +1\\.0 +1000 B +99\\.9 % +4\\.00 ms .* 6\\.00 ms +1\n")
        .containsPattern("lookup +1 ");
    assertThat(world.errors()).isEmpty();
  }

  @Test
  void profile_ofSeveralFiles_isTheirSum() {
    assertThat(world.execute("profile", "access", "access.1", "--by", "path")).isZero();

    assertThat(world.output())
        .startsWith("6 requests in 62.0 s")
        .contains("/train/b", "7 requests had no line", "1 lines are malformed");
  }

  @Test
  void profile_ofStandardInputAsJson_isOneLine() {
    world.in = new ByteArrayInputStream(READS.getBytes(UTF_8));

    assertThat(world.execute("profile", "-", "--json", "--top", "1", "--by", "pid")).isZero();

    assertThat(world.output().lines()).hasSize(1);
    JsonObject report = JsonParser.parseString(world.output()).getAsJsonObject();
    assertThat(report.get("by").getAsString()).isEqualTo("pid");
    assertThat(report.get("isTotal").getAsBoolean()).isTrue();
    JsonObject row = report.getAsJsonArray("rows").get(0).getAsJsonObject();
    assertThat(row.get("key").getAsString()).isEqualTo("2");
    assertThat(row.get("failed").getAsLong()).isEqualTo(1);
    assertThat(report.getAsJsonObject("others").get("count").getAsLong()).isEqualTo(2);
    assertThat(report.getAsJsonObject("all").get("count").getAsLong()).isEqualTo(3);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "profile nothing            | 2 | nothing: no such file or directory; name a mount point",
        "profile access --by inode  | 2 | --by: 'inode' is not known; choose one of operation,"
            + " path",
        "profile access --top 0     | 2 | --top: '0' is not a number from 1 to",
        "profile access --for soon  | 2 | --for: 'soon' is not a duration",
        "profile access --interval 0s | 2 | --interval: '0s': a duration must be longer than zero",
        "profile                    | 2 | FILE",
        "profile /                  | 3 | /: not mounted by pmfs; pmfs status lists the mounts",
        "profile /proc/self/status  | 1 | /proc/self/status: not a line of an access log",
      })
  void profile_wrong_isOneLine(String line, int status, String error) {
    assertThat(world.execute(line.split(" ", -1))).isEqualTo(status);

    assertThat(world.errors()).contains(error.strip());
    assertThat(world.errors().lines()).hasSize(1);
  }

  @Test
  void profile_ofAnEmptyFile_isEmpty() throws Exception {
    Files.writeString(world.directory.resolve("empty"), "");

    assertThat(world.execute("profile", "empty")).isZero();
    assertThat(world.output()).startsWith("0 requests in 0.0 s, 0 B\n");
  }
}
