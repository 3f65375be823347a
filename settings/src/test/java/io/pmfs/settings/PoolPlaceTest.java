package io.pmfs.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class PoolPlaceTest {
  @TempDir private Path temporary;

  private static TierSpec tier(String kind, Path path, Capacity capacity) {
    return new TierSpec(kind, path, capacity);
  }

  @Test
  void isPool_whatIsThere_decides() throws Exception {
    Path file = Files.createFile(temporary.resolve("file"));
    Path directory = Files.createDirectory(temporary.resolve("directory.pool"));

    assertThat(PoolPlace.isPool(tier("pm", file, Capacity.WHOLE_DISK))).isTrue();
    assertThat(PoolPlace.isPool(tier("pm", Path.of("/dev/null"), Capacity.WHOLE_DISK))).isTrue();
    assertThat(PoolPlace.isPool(tier("pm", directory, Capacity.WHOLE_DISK))).isFalse();
    assertThat(PoolPlace.isPool(tier("ssd", file, Capacity.WHOLE_DISK))).isFalse();
    assertThat(PoolPlace.isPool(tier("pm", temporary.resolve("new.pool"), Capacity.WHOLE_DISK)))
        .isTrue();
    assertThat(PoolPlace.isPool(tier("pm", temporary.resolve("new"), Capacity.ofBytes(1 << 30))))
        .isFalse();
  }

  @Test
  void check_newFile_needsADirectoryAndASize() throws Exception {
    Path path = temporary.resolve("new.pool");
    PoolPlace.check(tier("pm", path, Capacity.ofBytes(1 << 30)));
    PoolPlace.check(tier("pm", Path.of("/dev/null"), Capacity.WHOLE_DISK));

    assertThatThrownBy(() -> PoolPlace.check(tier("pm", path, Capacity.ofPercent(50))))
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("a file for a pool needs a size; give it one, such as pm:" + path);
    assertThatThrownBy(
            () -> PoolPlace.check(tier("pm", path.resolve("a.pool"), Capacity.ofBytes(1 << 30))))
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("there is no directory for it");
    Path empty = Files.createFile(temporary.resolve("empty"));
    assertThatThrownBy(() -> PoolPlace.check(tier("pm", empty, Capacity.WHOLE_DISK)))
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("needs a size");
  }

  @Test
  void format_noPool_isRefused() {
    assertThatThrownBy(() -> PoolPlace.format(List.of(tier("pm", temporary, Capacity.WHOLE_DISK))))
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("leave it out");
  }
}
