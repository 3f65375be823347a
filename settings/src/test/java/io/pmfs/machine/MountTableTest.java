package io.pmfs.machine;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.mounts.DaemonRecord;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class MountTableTest {
  private static final MountTable TABLE =
      MountTable.parse(
          new String(
              """
              22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
              23 22 0:21 / /home rw master:3 shared:4 - nfs4 srv:/home rw,vers=4.2
              24 22 0:22 / /mnt/a\\040bä ro,nosuid - fuse.pmfs /lustre/x ro,user_id=0
              25 22 259:0 / /mnt/pmem0 rw - ext4 /dev/pmem0 rw,dax=always
              26 22 0:23 / /tmp rw - tmpfs tmpfs rw
              27 23 8:2 / /home rw - xfs /dev/sdb1 rw
              nonsense
              """
                  .getBytes(UTF_8),
              ISO_8859_1));

  @Test
  void at_escapedMountPoint_isFound() {
    MountTable.Mount mount = Objects.requireNonNull(TABLE.at(Path.of("/mnt/a bä")));

    assertThat(mount.isPmfs()).isTrue();
    assertThat(mount.source()).isEqualTo("/lustre/x");
  }

  @Test
  void placesOf_session_areItsWholeMountsThatAreNotCovered() {
    MountTable table =
        MountTable.parse(
            """
            30 22 0:40 / /a ro - fuse.pmfs /source ro
            31 22 0:40 / /b ro - fuse.pmfs /source ro
            32 22 0:40 /train /part ro - fuse.pmfs /source ro
            33 22 0:40 / /covered ro - fuse.pmfs /source ro
            34 33 0:41 / /covered rw - tmpfs tmpfs rw
            """);

    assertThat(table.placesOf("0:40")).containsExactly(Path.of("/a"), Path.of("/b"));
    assertThat(table.placesOf((String) null)).isEmpty();
  }

  @Test
  void placesOf_daemonWhoseEndedSessionHasLeftItsNumberToAnother_areItsOwn() {
    MountTable table =
        MountTable.parse(
            """
            30 22 0:40 / /a ro - fuse.pmfs /source ro
            31 22 0:41 / /other ro - fuse.pmfs /another ro
            32 22 0:42 / /tmp rw - tmpfs /source rw
            """);
    DaemonRecord entry =
        DaemonRecord.of("/a", "/source", 7, "/x", "/log")
            .withDevice("0:40")
            .withSessions(List.of("0:40", "0:41", "0:42"));

    assertThat(table.places(entry::shows)).containsExactly(Path.of("/a"));
  }

  @Test
  void at_directoryThatIsNoMount_isNull() {
    assertThat(TABLE.at(Path.of("/mnt"))).isNull();
  }

  @Test
  void at_stackedMounts_isTheTopmost() {
    assertThat(TABLE.at(Path.of("/home"))).extracting(MountTable.Mount::type).isEqualTo("xfs");
  }

  @ParameterizedTest
  @CsvSource({"/,ext4", "/mnt/pmem0/x,ext4", "/homes,ext4", "/home/ada,xfs", "/tmp/a/b,tmpfs"})
  void holding_path_isTheLongestPrefix(String path, String type) {
    assertThat(TABLE.holding(Path.of(path))).extracting(MountTable.Mount::type).isEqualTo(type);
  }

  @Test
  void hasOption_ofFileSystem_isSeen() {
    MountTable.Mount pmem = Objects.requireNonNull(TABLE.at(Path.of("/mnt/pmem0")));

    assertThat(pmem.hasOption("dax=always")).isTrue();
    assertThat(pmem.hasOption("dax")).isFalse();
  }

  @ParameterizedTest
  @CsvSource({
    "ext4,true",
    "xfs,true",
    "btrfs,true",
    "overlay,true",
    "nfs,false",
    "nfs4,false",
    "lustre,false",
    "beegfs,false",
    "gpfs,false",
    "fuse,false",
    "fuse.juicefs,false",
    "fuse.pmfs,false",
    "tmpfs,false",
    "ramfs,false"
  })
  void isLocalDisk_byType_isKnown(String type, boolean local) {
    assertThat(new MountTable.Mount(Path.of("/x"), type, "x", "rw", "0:9", true, "7").isLocalDisk())
        .isEqualTo(local);
  }

  @Test
  void read_ofThisMachine_knowsTheRoot() throws Exception {
    assertThat(MountTable.load(Path.of("/")).holding(Path.of("/"))).isNotNull();
  }
}
