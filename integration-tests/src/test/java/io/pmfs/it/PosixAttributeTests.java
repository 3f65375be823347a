package io.pmfs.it;

import static io.pmfs.it.Posix.outcome;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What stat, readlink, access, the attribute calls and statfs say. */
interface PosixAttributeTests extends PosixView {
  @Test
  default void stat_ofEachType_saysIt() {
    Map<String, Integer> types =
        Map.of(
            "types/file", Stat.S_IFREG,
            "types/fifo", Stat.S_IFIFO,
            "types/socket", Stat.S_IFSOCK,
            "types/link", Stat.S_IFLNK,
            "types/dangling", Stat.S_IFLNK,
            "types/loop", Stat.S_IFLNK,
            "types/other", Stat.S_IFDIR,
            "", Stat.S_IFDIR);
    types.forEach(
        (name, type) -> assertThat(Posix.lstat(at(name)).type()).as(name).isEqualTo(type));
    assertThat(Posix.lstat(at("types/fifo")).permissions()).isEqualTo(0640);
    assertThat(Posix.lstat(at("types/socket")).permissions()).isEqualTo(0600);
  }

  @Test
  default void stat_ofDevice_saysItsNumber() {
    assumeTrue(Machine.isRoot(), "only root makes devices");
    Stat device = Posix.lstat(at("types/device"));
    assertThat(device.type()).isEqualTo(Stat.S_IFCHR);
    assertThat(device.rdev()).isEqualTo((1L << 32) + 5);
  }

  @Test
  default void stat_ofRegularFiles_saysSizeAndBlocks() {
    PosixTree.FILES.forEach(
        (name, size) -> assertThat(Posix.stat(at("data/" + name)).size()).isEqualTo((long) size));
    Stat sparse = Posix.stat(at("data/sparse"));
    assertThat(sparse.size()).isEqualTo(PosixTree.SPARSE_SIZE);
    assertThat(sparse.blocks() * 512).isLessThan(PosixTree.SPARSE_SIZE / 2);
    assertThat(Posix.stat(at("data/large")).blocks() * 512).isGreaterThan(5 * 1024 * 1024);
  }

  @Test
  default void stat_ofHardLinks_isOneInode() {
    Stat file = Posix.stat(at("types/file"));
    assertThat(file.nlink()).isEqualTo(3);
    assertThat(Posix.stat(at("types/hard"))).isEqualTo(file);
    assertThat(Posix.stat(at("types/other/hard"))).isEqualTo(file);
    assertThat(Posix.stat(at("types/fifo")).ino()).isNotEqualTo(file.ino());
  }

  @Test
  default void stat_ofModes_hasEveryBit() {
    for (int mode : List.of(0, 0400, 0600, 0644, 0755, 01644, 02755, 04755, 07777)) {
      String name = "attributes/mode-" + Integer.toOctalString(mode);
      assertThat(Integer.toOctalString(Posix.stat(at(name)).permissions()))
          .isEqualTo(Integer.toOctalString(mode));
    }
    assertThat(Posix.stat(at("attributes/sticky")).permissions()).isEqualTo(01777);
  }

  @Test
  default void stat_ofOwners_saysThem() {
    assumeTrue(Machine.isRoot(), "only root gives files away");
    Stat owned = Posix.stat(at("attributes/owned"));
    assertThat(List.of(owned.uid(), owned.gid())).containsExactly(12_345, 54_321);
    Stat link = Posix.lstat(at("attributes/owned-link"));
    assertThat(List.of(link.uid(), link.gid())).containsExactly(65_530, 65_531);
  }

  @Test
  default void stat_ofTimes_isExactToTheNanosecond() {
    for (String name : PosixTree.sorted(PosixTree.TIMES)) {
      long[] time = PosixTree.TIMES.getOrDefault(name, new long[2]);
      Stat source = Posix.stat(tree().root() + "/attributes/" + name);
      Stat seen = Posix.stat(at("attributes/" + name));
      assertThat(List.of(seen.mtimeSeconds(), (long) seen.mtimeNanos()))
          .as(name)
          .containsExactly(source.mtimeSeconds(), (long) source.mtimeNanos());
      // Every file system of today holds these; some end in 2038 or 2106.
      if (time[0] >= 0 && time[0] < Integer.MAX_VALUE) {
        assertThat(List.of(seen.mtimeSeconds(), (long) seen.mtimeNanos()))
            .containsExactly(time[0], time[1]);
      }
    }
  }

  @Test
  default void stat_again_saysTheSame() {
    for (String name : List.of("data/odd", "types/link", "types", "attributes/mode-4755", "")) {
      Stat first = Posix.lstat(at(name));
      assertThat(Posix.lstat(at(name))).isEqualTo(first);
    }
  }

  @Test
  default void stat_throughLinks_followsThem() {
    assertThat(Posix.stat(at("types/link"))).isEqualTo(Posix.stat(at("types/file")));
    assertThat(outcome(Posix.statOutcome(at("types/dangling"), 0))).isEqualTo("ENOENT");
    assertThat(outcome(Posix.statOutcome(at("types/loop"), 0))).isEqualTo("ELOOP");
    assertThat(outcome(Posix.statOutcome(at("types/loop/x"), 0))).isEqualTo("ELOOP");
    assertThat(outcome(Posix.statOutcome(at("types/file/x"), 0))).isEqualTo("ENOTDIR");
  }

  @Test
  default void readlink_givesTheTargetsBytes() {
    assertThat(Posix.readlink(at("types/link"))).isEqualTo("file");
    assertThat(Posix.readlink(at("types/dangling"))).isEqualTo("nowhere");
    assertThat(Posix.readlink(at("types/link-of-bytes"))).isEqualTo("\u00ff\nbytes");
    assertThat(Posix.readlink(at("types/long"))).isEqualTo(tree().longTarget());
    assertThat(Posix.lstat(at("types/long")).size()).isEqualTo(tree().longTarget().length());
    byte[] few = new byte[2];
    assertThat(Posix.LIBC.readlink(Posix.c(at("types/link")), few, 2)).isEqualTo(2);
    assertThat(
            outcome(Posix.result(Posix.LIBC.readlink(Posix.c(at("types/file")), new byte[9], 9))))
        .isEqualTo("EINVAL");
  }

  @Test
  default void access_toReadAndExecute_followsTheMode() {
    assertThat(outcome(Posix.access(at("attributes/mode-755"), Posix.F_OK))).isEqualTo("ok");
    assertThat(outcome(Posix.access(at("attributes/mode-755"), Posix.R_OK | Posix.X_OK)))
        .isEqualTo("ok");
    // Even root needs one execute bit.
    assertThat(outcome(Posix.access(at("attributes/mode-644"), Posix.X_OK))).isEqualTo("EACCES");
    assertThat(outcome(Posix.access(at("attributes/none"), Posix.F_OK))).isEqualTo("ENOENT");
    if (!Machine.isRoot()) {
      assertThat(outcome(Posix.access(at("attributes/mode-0"), Posix.R_OK))).isEqualTo("EACCES");
    }
  }

  @Test
  default void open_byAnotherUser_followsTheMode() {
    assumeTrue(Machine.isRoot(), "only root becomes another user");
    Map<String, Boolean> readable =
        Map.of(
            "attributes/mode-644", true,
            "attributes/mode-755", true,
            "attributes/mode-600", false,
            "attributes/mode-400", false,
            "attributes/mode-0", false,
            "attributes/closed/file", false);
    readable.forEach(
        (name, allowed) -> {
          Command cat = OtherUser.run("cat", at(name));
          assertThat(cat.exit() == 0).as("nobody reads %s: %s", name, cat).isEqualTo(allowed);
          if (!allowed) {
            assertThat(cat.err()).contains("Permission denied");
          }
        });
    assertThat(OtherUser.run("ls", at("attributes/closed")).err()).contains("Permission denied");
    assertThat(OtherUser.run("test", "-x", at("attributes/mode-755")).exit()).isEqualTo(0);
  }

  @Test
  default void xattrs_ofUser_areListedAndRead() {
    assumeTrue(tree().hasXattrs(), "the temporary directory's file system has no user attributes");
    String file = at("attributes/xattrs");
    assertThat(Posix.userXattrs(file)).containsExactly("user.binary", "user.empty", "user.text");
    assertThat(Posix.xattr(file, "user.text")).isEqualTo(new byte[] {'a'});
    assertThat(Posix.xattr(file, "user.binary")).isEqualTo(PosixTree.BINARY);
    assertThat(Posix.xattr(file, "user.empty")).isEmpty();
    assertThat(Posix.userXattrs(at("attributes/sticky"))).containsExactly("user.directory");
    assertThat(Posix.xattr(at("attributes/sticky"), "user.directory"))
        .isEqualTo(new byte[] {1, 0, 2});
  }

  @Test
  default void xattrs_ofNone_areNone() {
    assumeTrue(tree().hasXattrs(), "the temporary directory's file system has no user attributes");
    assertThat(Posix.userXattrs(at("attributes/no-xattrs"))).isEmpty();
    assertThat(outcome(Posix.getxattr(at("attributes/no-xattrs"), "user.text", new byte[10])))
        .isEqualTo("ENODATA");
    assertThat(outcome(Posix.getxattr(at("attributes/none"), "user.text", new byte[10])))
        .isEqualTo("ENOENT");
  }

  @Test
  default void xattrs_intoSmallOrNoBuffer_tellTheSizeOrErange() {
    assumeTrue(tree().hasXattrs(), "the temporary directory's file system has no user attributes");
    byte[] file = Posix.c(at("attributes/xattrs"));
    byte[] name = Posix.c("user.binary");
    assertThat(Posix.result(Posix.LIBC.getxattr(file, name, new byte[1], 0))).isEqualTo(256);
    assertThat(outcome(Posix.result(Posix.LIBC.getxattr(file, name, new byte[255], 255))))
        .isEqualTo("ERANGE");
    assertThat(Posix.result(Posix.LIBC.getxattr(file, name, new byte[256], 256))).isEqualTo(256);
    long size = Posix.result(Posix.LIBC.listxattr(file, new byte[1], 0));
    assertThat(size).isGreaterThanOrEqualTo("user.text user.binary user.empty ".length());
    assertThat(outcome(Posix.result(Posix.LIBC.listxattr(file, new byte[3], 3))))
        .isEqualTo("ERANGE");
  }

  @Test
  default void statfs_isThatOfTheSourcesFileSystem() {
    ByteBuffer seen = statfs(view());
    ByteBuffer source = statfs(tree().root());
    assertThat(bytes(seen, 16)).isEqualTo(bytes(source, 16)).isPositive();
    // Others write to that file system while we look.
    assertThat(bytes(seen, 24)).isBetween(bytes(source, 24) * 9 / 10, bytes(source, 24) * 11 / 10);
    assertThat(bytes(seen, 32)).isBetween(bytes(source, 32) * 9 / 10, bytes(source, 32) * 11 / 10);
    assertThat(seen.getLong(40)).as("files").isEqualTo(source.getLong(40));
    long used = source.getLong(40) - source.getLong(48);
    assertThat(seen.getLong(40) - seen.getLong(48))
        .as("files that are not free")
        .isBetween(used * 9 / 10, used * 11 / 10);
    assertThat(seen.getLong(64)).as("longest name").isEqualTo(255);
  }

  /** Blocks at an offset of struct statfs as bytes; f_frsize is what they are counted in. */
  private static long bytes(ByteBuffer statfs, int offset) {
    return statfs.getLong(offset) * statfs.getLong(72);
  }

  private static ByteBuffer statfs(String path) {
    byte[] buffer = new byte[256];
    Posix.check(Posix.result(Posix.LIBC.statfs(Posix.c(path), buffer)));
    return ByteBuffer.wrap(buffer).order(ByteOrder.nativeOrder());
  }
}
