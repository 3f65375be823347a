package io.pmfs.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class OutputSettingsTest {
  @TempDir private Path temporary;
  private TestMachine world;

  @BeforeEach
  void makeWorld() {
    world = new TestMachine(temporary);
  }

  @Test
  void withoutTheOption_thereAreNone() throws Exception {
    assertThat(world.settings(Map.of()).outputs()).isNull();
  }

  @ParameterizedTest
  @CsvSource({"unlimited,0", "500M,524288000"})
  void drainRate_isBytesASecond(String text, long bytes) throws Exception {
    MountSettings settings =
        world.settings(
            Map.of(MountOption.WRITABLE, List.of("true"), MountOption.DRAIN_RATE, List.of(text)));

    assertThat(settings.outputs())
        .isEqualTo(new OutputSettings(bytes, false, Duration.ofMinutes(5)));
  }

  @Test
  void fsync_meansTheNodeUnlessTheSourceIsNamed() throws Exception {
    Map<MountOption<?>, List<String>> writable = Map.of(MountOption.WRITABLE, List.of("true"));
    assertThat(world.settings(writable).outputs())
        .isEqualTo(new OutputSettings(0, false, Duration.ofMinutes(5)));
    assertThat(
            world
                .settings(
                    Map.of(
                        MountOption.WRITABLE,
                        List.of("true"),
                        MountOption.FSYNC,
                        List.of("source")))
                .outputs())
        .isEqualTo(new OutputSettings(0, true, Duration.ofMinutes(5)));
  }

  @ParameterizedTest
  @CsvSource({
    "source-form, tar",
    "nested, true",
    "compression, zstd",
    "bridge, jnr",
    "read-mode, passthrough",
    "eviction, lru",
    "replicas, 2",
    "tier, ssd:/local:80%:zstd"
  })
  void option_thatCannotGoWithIt_isRefusedWithARemedy(String key, String value) {
    MountOption<?> option = MountOption.ofKey(key);

    assertThatThrownBy(
            () ->
                world.settings(
                    Map.of(MountOption.WRITABLE, List.of("true"), option, List.of(value))))
        .isInstanceOfSatisfying(
            MountFailure.class,
            e -> {
              assertThat(e.exitStatus()).isEqualTo(ExitStatus.USAGE);
              assertThat(e.line()).startsWith("--writable: not with ").contains(key).contains(";");
            });
  }

  @Test
  void clusterWithoutAList_hasNoOwnerAndIsRefused() {
    assertThatThrownBy(
            () ->
                world.settings(
                    Map.of(
                        MountOption.WRITABLE,
                        List.of("true"),
                        MountOption.CLUSTER,
                        List.of("training"),
                        MountOption.CLUSTER_DIR,
                        List.of("/shared/cluster"))))
        .isInstanceOfSatisfying(
            MountFailure.class,
            e -> {
              assertThat(e.exitStatus()).isEqualTo(ExitStatus.USAGE);
              assertThat(e.line()).contains("--cluster-dir").contains("--nodes");
            });
  }
}
