package io.pmfs.fuse.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class MountedNamesTest {
  private static final long EXT4 = 0xef53;
  private static final long NFS = 0x6969;
  private static final long XFS = 0x58465342;
  private static final long BTRFS = 0x9123683eL;
  private static final long OVERLAY = 0x794c7630;

  private static final String MOUNTINFO =
      """
      21 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
      30 21 0:50 / /data rw,relatime - nfs4 server:/data rw,vers=4.2
      31 30 0:51 / /data/a rw,relatime - nfs4 server:/data/a rw,vers=4.2
      32 30 0:51 / /data/b rw,relatime - nfs4 server:/data/b rw,vers=4.2
      33 21 259:3 / /x rw - xfs /dev/mapper/x rw
      34 21 0:60 /@home /b rw - btrfs /dev/sdc rw
      35 21 0:61 / /o rw - overlay overlay rw
      """;

  private static List<String> names(long type, long id, int major, int minor) {
    return MountedNames.of(type, id, Posix.makedev(major, minor), MOUNTINFO).names();
  }

  @Test
  void names_withAnId_areThatWithTheDiskAndThatAlone() {
    assertThat(names(EXT4, 0x1234, 8, 1)).containsExactly("ef53 1234 /dev/sda1", "ef53 1234");
  }

  @Test
  void names_withoutId_areAllThatIsMounted() {
    assertThat(names(NFS, 0, 0, 51)).containsExactly("6969 server:/data/a", "6969 server:/data/b");
  }

  @Test
  void names_withTheDeviceNumberAsId_areTheDisk() {
    assertThat(names(XFS, Posix.makedev(259, 3), 259, 3)).containsExactly("58465342 /dev/mapper/x");
  }

  @Test
  void names_ofASubvolume_areItsId() {
    assertThat(names(BTRFS, 0x77, 0, 62)).containsExactly("9123683e 77");
  }

  @Test
  void names_ofALayer_areUnknown() {
    assertThat(names(OVERLAY, 0x78, 0, 62)).isEmpty();
  }

  @Test
  void mounted_areTheDevicesOfAllMounts() {
    assertThat(MountedNames.of(NFS, 0, Posix.makedev(0, 50), MOUNTINFO).mounted())
        .contains(Posix.makedev(8, 1), Posix.makedev(0, 51), Posix.makedev(259, 3));
  }
}
