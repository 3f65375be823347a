package io.pmfs.fuse.mounting;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class SessionMountTest {
  private static final String TABLE =
      """
      22 1 8:1 / / rw - ext4 /dev/sda1 rw
      30 22 0:40 / /mnt/a ro,nosuid - fuse.pmfs /one ro
      31 22 0:41 / /mnt/b\\040c\\134\\012 ro - fuse.pmfs /two ro
      32 30 0:42 / /mnt/a ro,nosuid - fuse.pmfs /three ro
      """;

  @Test
  void deviceAt_mountsOnEachOther_isThatOfTheTopmost() {
    assertThat(SessionMount.deviceAt(Path.of("/mnt/a"), TABLE)).isEqualTo("0:42");
  }

  @Test
  void deviceAt_pathThatIsWrittenOtherwise_isFound() {
    assertThat(SessionMount.deviceAt(Path.of("/mnt/b c\\\n"), TABLE)).isEqualTo("0:41");
  }

  @Test
  void deviceAt_noMount_isNull() {
    assertThat(SessionMount.deviceAt(Path.of("/mnt"), TABLE)).isNull();
  }

  @Test
  void isAtMountpoint_sameDevice_isTrue() {
    String root = SessionMount.deviceAt(Path.of("/"));
    assertThat(root).isNotNull();
    assertThat(new SessionMount(Path.of("/"), root).isAtMountpoint()).isTrue();
  }

  @Test
  void isAtMountpoint_anotherMountOnThePath_isFalse() {
    assertThat(new SessionMount(Path.of("/"), "0:999999").isAtMountpoint()).isFalse();
  }

  @Test
  void isAtMountpoint_nothingKnown_isTrue(@TempDir Path directory) {
    assertThat(new SessionMount(directory, null).isAtMountpoint()).isTrue();
  }

  /** Unmounting by path alone would unmount the other mount. */
  @Test
  void unmount_anotherMountOnThePath_isLeftAlone() throws Exception {
    Unmount.unmount(new SessionMount(Path.of("/proc"), "0:999999"), true);

    assertThat(SessionMount.deviceAt(Path.of("/proc"))).isNotNull();
  }
}
