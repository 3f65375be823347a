package io.pmfs.places;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.machine.MountFailure;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class PoolPlaceTest {
  @TempDir private Path temporary;

  private static TierPlace place(TierKind kind, Path path, Capacity capacity) {
    return new TierSpec(kind, path, capacity).place();
  }

  private static void check(Path path, Capacity capacity) throws MountFailure {
    place(TierKind.PM, path, capacity).check(Capacity.ofBytes(0), null);
  }

  @Test
  void place_whatIsThere_decides() throws Exception {
    Path file = Files.createFile(temporary.resolve("file"));
    Path directory = Files.createDirectory(temporary.resolve("directory.pool"));

    assertThat(place(TierKind.PM, file, Capacity.WHOLE_DISK)).isInstanceOf(PoolPlace.class);
    assertThat(place(TierKind.PM, Path.of("/dev/null"), Capacity.WHOLE_DISK))
        .isInstanceOf(PoolPlace.class);
    assertThat(place(TierKind.PM, directory, Capacity.WHOLE_DISK))
        .isInstanceOf(DirectoryPlace.class);
    assertThat(place(TierKind.SSD, file, Capacity.WHOLE_DISK)).isInstanceOf(DirectoryPlace.class);
    assertThat(place(TierKind.PM, temporary.resolve("new.pool"), Capacity.WHOLE_DISK))
        .isInstanceOf(PoolPlace.class);
    assertThat(place(TierKind.PM, temporary.resolve("new"), Capacity.ofBytes(1 << 30)))
        .isInstanceOf(DirectoryPlace.class);
  }

  @Test
  void check_newFile_needsADirectoryAndASize() throws Exception {
    Path path = temporary.resolve("new.pool");
    check(path, Capacity.ofBytes(1 << 30));

    assertThatThrownBy(() -> check(path, Capacity.ofPercent(50)))
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("the file of a pool needs a size; add one, such as pm:" + path);
    assertThatThrownBy(() -> check(path.resolve("a.pool"), Capacity.ofBytes(1 << 30)))
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("its directory does not exist");
    Path empty = Files.createFile(temporary.resolve("empty"));
    assertThatThrownBy(() -> check(empty, Capacity.WHOLE_DISK))
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("needs a size");
  }

  @Test
  void check_deviceThatEverybodyCanWrite_isRefused() {
    assertThatThrownBy(() -> check(Path.of("/dev/null"), Capacity.WHOLE_DISK))
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("everybody can write in /dev/null (mode 0666); choose");
  }

  @Test
  void format_noPool_isRefused() {
    TierSpec directory = new TierSpec(TierKind.PM, temporary, Capacity.WHOLE_DISK);

    assertThatThrownBy(() -> TierPlace.format(List.of(directory)))
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("leave it out");
  }
}
