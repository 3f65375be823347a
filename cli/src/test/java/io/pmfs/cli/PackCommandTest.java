package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.machine.ExitStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class PackCommandTest {
  @TempDir Path temporary;
  private TestWorld world;
  private Path shards;

  @BeforeEach
  void makeSource() throws IOException {
    world = new TestWorld(temporary);
    shards = world.directory.resolve("shards");
    Path source = world.makeDirectory("source");
    for (int i = 0; i < 10; i++) {
      Files.writeString(source.resolve(i + ".txt"), "x".repeat(1000 * i));
    }
  }

  @Test
  void pack_ofASource_writesAndChecks() {
    assertThat(world.execute("pack", "source", "shards", "--shard-size", "20KiB")).isZero();
    assertThat(world.output()).contains("10 files in 1 directories", "shards of");
    assertThat(shards.resolve("shard-000000.tar")).exists();
    assertThat(world.execute("pack", "--check", "shards")).isZero();
    assertThat(world.output()).contains("0 wrong");
  }

  @Test
  void check_ofADamagedShard_exitsWith4AndNamesIt() throws IOException {
    world.execute("pack", "source", "shards");
    Files.writeString(shards.resolve("shard-000000.tar"), "damaged");
    assertThat(world.execute("pack", "--check", "shards")).isEqualTo(ExitStatus.PARTLY);
    assertThat(world.errors()).contains(shards + "/shard-000000.tar: has 7 bytes");
  }

  @Test
  void dryRun_writesNothing() {
    assertThat(world.execute("pack", "source", "shards", "--dry-run")).isZero();
    assertThat(world.output()).contains("shard-000000.tar", "to be written");
    assertThat(shards).doesNotExist();
  }

  @ParameterizedTest
  @CsvSource({
    "--sort, random, random",
    "--compression, gzip, gzip",
    "--compression, zstd:23, zstd:23",
    "--shard-size, many, many",
    "--shard-size, 0, shard-size",
    "--jobs, 0, jobs"
  })
  void option_thatMakesNoSense_isRefused(String option, String value, String named) {
    assertThat(world.execute("pack", "source", "shards", option, value))
        .isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors()).contains(named).hasLineCount(1);
    assertThat(shards).doesNotExist();
  }

  @Test
  void source_thatIsMissing_isRefused() {
    assertThat(world.execute("pack", "missing", "shards")).isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors()).contains("missing").hasLineCount(1);
  }

  @Test
  void directory_insideTheSource_isRefused() {
    assertThat(world.execute("pack", "source", "source/shards")).isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors()).contains("inside the source").hasLineCount(1);
  }

  @Test
  void directory_withAFinishedPack_isRefused() {
    world.execute("pack", "source", "shards");
    assertThat(world.execute("pack", "source", "shards")).isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors()).contains("finished pack").hasLineCount(1);
  }
}
