package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Holes, as programs that copy or pack files look for them. */
final class SparseFileIT {
  private static final Duration LIFETIME = Duration.ofMinutes(2);
  private static final long SIZE = 24 << 20;

  @Installed private Installation pmfs;
  private Path source;

  @BeforeEach
  void makeSource() {
    source = pmfs.directory("source");
    String make =
        "truncate -s "
            + SIZE
            + " sparse; for at in 0 5000000 12345678; do"
            + " head -c 70001 /dev/urandom | dd of=sparse bs=1M oflag=seek_bytes seek=$at"
            + " conv=notrunc status=none; done;"
            + " head -c 100000 /dev/urandom > dense; truncate -s 1M hole; sync .";
    Command.run("sh", "-ec", "cd '" + source + "'; " + make).expect(0);
  }

  /** Where data begins and ends, in turn; the last entry is minus an errno. */
  private static List<Long> edges(Path file) {
    List<Long> edges = new ArrayList<>();
    Posix.withFile(
        file.toString(),
        Posix.O_RDONLY,
        fd -> {
          long at = 0;
          int whence = Posix.SEEK_DATA;
          while (at >= 0) {
            at = Posix.result(Posix.LIBC.lseek(fd, at, whence));
            whence = whence == Posix.SEEK_DATA ? Posix.SEEK_HOLE : Posix.SEEK_DATA;
            edges.add(at);
          }
          return 0;
        });
    return edges;
  }

  @ParameterizedTest
  @EnumSource(names = {"PAGE_CACHE", "PASSTHROUGH"})
  void lseek_findsTheDataAndHolesOfTheSource_beforeAndAfterItIsCopied(BridgeMode mode) {
    assumeTrue(edges(source.resolve("sparse")).size() > 3, "the file system has no holes");
    try (MountedPmfs mount = mode.mount(pmfs, LIFETIME, source)) {
      assertEdgesOfTheSource(mount);
      assertThat(Command.run("cmp", source + "/sparse", mount.path("sparse")).exit()).isZero();
      assertThat(Command.run("cmp", source + "/hole", mount.path("hole")).exit()).isZero();
      mount.awaitCopies(2);
      Machine.forget(mount.mountpoint());
      assertEdgesOfTheSource(mount);
    }
  }

  private void assertEdgesOfTheSource(MountedPmfs mount) {
    for (String name : List.of("sparse", "dense", "hole")) {
      assertThat(edges(mount.mountpoint().resolve(name)))
          .as(name)
          .isEqualTo(edges(source.resolve(name)));
    }
  }

  @ParameterizedTest
  @EnumSource
  void cpAndTar_ofSparseFiles_giveTheSameContent(BridgeMode mode) {
    mode.runsInEveryRunIf(BridgeMode.JNR);
    try (MountedPmfs mount = mode.mount(pmfs, LIFETIME, source)) {
      for (int round = 0; round < 2; round++) {
        Path copied = pmfs.directory("copied" + round);
        Path unpacked = pmfs.directory("unpacked" + round);
        String from = "cd '" + mount.mountpoint() + "'; ";
        Command.run("sh", "-ec", from + "cp --sparse=auto * '" + copied + "'").expect(0);
        Command.run("sh", "-ec", from + "tar -cSf - . | tar -xSf - -C '" + unpacked + "'")
            .expect(0);
        for (Path made : List.of(copied, unpacked)) {
          Command.run("diff", "-r", source.toString(), made.toString()).expect(0);
        }
        if (mode != BridgeMode.JNR) {
          assertThat(blocks(copied.resolve("sparse"))).isLessThan(SIZE / 512 / 4);
          assertThat(blocks(unpacked.resolve("sparse"))).isLessThan(SIZE / 512 / 4);
        }
        mount.awaitStagingIdle();
      }
    }
  }

  private static long blocks(Path file) {
    return Long.parseLong(Command.run("stat", "-c", "%b", file.toString()).expect(0).out().strip());
  }

  @Test
  void lseek_inAFileWithoutHoles_asksTheSourceNothing() {
    try (MountedPmfs mount = BridgeMode.PAGE_CACHE.mount(pmfs, LIFETIME, source)) {
      assertThat(edges(mount.mountpoint().resolve("dense"))).hasSizeGreaterThan(1);
      assertThat(mount.status().number("sourceOperations.seeks")).isZero();
      edges(mount.mountpoint().resolve("sparse"));
      assertThat(mount.status().number("sourceOperations.seeks")).isPositive();
    }
  }
}
