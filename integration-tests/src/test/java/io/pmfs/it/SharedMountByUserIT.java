package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Several mounts of one dataset by a user without root: one daemon with a session for each. */
final class SharedMountByUserIT {
  /** Of one mount point, while another one is read. */
  private static final int MOUNTS = Requested.count("large", 200, 6);

  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final int FILES = 8;

  private AccountBed bed;
  private Account user;
  private Installation pmfs;
  private Dataset dataset;

  @BeforeEach
  void install() {
    bed = AccountBed.ofUser();
    pmfs = bed.pmfs();
    user = bed.user();
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(FILES, 50_000));
  }

  @AfterEach
  void remove() {
    if (bed != null) {
      bed.close();
    }
  }

  /** A directory of the user's. */
  private Path place(String name) {
    Path mountpoint = pmfs.directory(name);
    user.own(mountpoint.toString());
    return mountpoint;
  }

  private Path join(String name, String... options) {
    Path mountpoint = place(name);
    Command joined = pmfs.run(pmfs.mountArguments(dataset.root(), mountpoint, options));
    joined.expect(0);
    assertThat(joined.out()).contains("shares the daemon of ");
    return mountpoint;
  }

  private void umount(Path mountpoint, String... options) {
    List<String> line = new ArrayList<>(List.of("umount"));
    line.addAll(List.of(options));
    line.add(mountpoint.toString());
    pmfs.run(line.toArray(String[]::new)).expect(0);
    assertThat(Mounts.at(mountpoint)).isFalse();
  }

  private void fusermount(Path mountpoint) {
    user.run("fusermount3", "-u", mountpoint.toString()).expect(0);
  }

  private void assertEqual(Path mountpoint) {
    user.run("diff", "-r", dataset.root().toString(), mountpoint.toString()).expect(0);
  }

  private String inodes(Path mountpoint) {
    String list = "cd \"$0\" && find . -printf '%i %p\\n' | sort";
    return user.run("sh", "-c", list, mountpoint.toString()).expect(0).out();
  }

  private Status statusOf(Path mountpoint) {
    return Status.parse(pmfs.run("status", "--json", mountpoint.toString()).expect(0).out());
  }

  private Path file(Path mountpoint, int number) {
    return mountpoint.resolve(dataset.items().get(number).name());
  }

  private List<String> registered() {
    try (Stream<Path> left = Files.list(pmfs.scratch().root().resolve("run"))) {
      return left.map(Path::toString)
          .filter(name -> name.matches(".*(\\.json|\\.sock|\\.holder|\\.new|\\.kept)"))
          .toList();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Nothing of a mount is left: no process, socket, record or mount. */
  private void assertNothingLeft(MountedPmfs mount) {
    mount.awaitGone();
    mount.ended();
    assertThat(Mounts.below(pmfs.scratch().root())).isEmpty();
    assertThat(registered()).isEmpty();
    user.awaitNoProcess();
  }

  @Test
  @OnRequest("cases")
  void mount_threeMore_showTheSameAndReadTheSourceOnce() {
    MountedPmfs mount = pmfs.mount(dataset.root());
    List<Path> all = List.of(mount.mountpoint(), join("b"), join("c"), join("d"));
    for (Path mountpoint : all) {
      assertEqual(mountpoint);
      Status status = statusOf(mountpoint);
      assertThat(status.number("pid")).isEqualTo(mount.pid());
      for (int i = 0; i < all.size(); i++) {
        assertThat(status.text("holders." + i + ".mountpoint")).isEqualTo(all.get(i).toString());
      }
    }
    assertThat(inodes(all.get(3))).isEqualTo(inodes(all.get(0)));
    assertThat(mount.status().number("sourceOperations.bytes")).isEqualTo(dataset.bytes());
    all.forEach(this::umount);
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest(value = "modes", what = "as for root")
  void umount_ofTheFirst_leavesTheSecondItsReadersAndItsDaemon() throws Exception {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    Process reader = user.hold(file(second, 0));
    try {
      umount(mount.mountpoint());
      assertEqual(second);
      Await.until(
          "the daemon has left the place to others",
          PATIENCE,
          () -> registered().stream().anyMatch(file -> file.matches(".*-0-\\d+\\.json")));
      assertThat(statusOf(second).number("pid")).isEqualTo(mount.pid());
      assertThat(statusOf(second).text("holders.0.mountpoint")).isEqualTo(second.toString());
      umount(join("c"));
      assertWorkBy(second);
      // Another dataset takes the place, and perhaps the device number.
      Dataset other = Dataset.create(pmfs.directory("other"), Dataset.sizes(2, 1000));
      MountedPmfs next = pmfs.mount(other.root(), "--tier", "ssd:" + place("tier2"));
      user.run("diff", "-r", other.root().toString(), next.mountpoint().toString()).expect(0);
      assertEqual(second);
      assertThat(statusOf(second).number("pid")).isEqualTo(mount.pid());
      assertThat(statusOf(next.mountpoint()).number("pid")).isEqualTo(next.pid());
      umount(next.mountpoint());
      next.awaitGone();
      next.ended();
      Command busy = pmfs.run("umount", second.toString());
      busy.expect(1);
      assertThat(busy.err()).contains("busy");
    } finally {
      reader.destroyForcibly().waitFor();
    }
    umount(second);
    assertNothingLeft(mount);
  }

  @Test
  void umount_ofTheSecondWhileTheFirstIsRead_waitsForNobody() throws Exception {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    Process reader = user.hold(file(mount.mountpoint(), 0));
    try {
      umount(second);
      assertThat(mount.status().number("pid")).isEqualTo(mount.pid());
      assertEqual(mount.mountpoint());
    } finally {
      reader.destroyForcibly().waitFor();
    }
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void umount_whileTheFirstIsDetachedWithOpenFiles_waitsForNobody() throws Exception {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    Process reader = user.hold(file(mount.mountpoint(), 0));
    try {
      umount(mount.mountpoint(), "--lazy");
      assertEqual(second);
      umount(second);
      Await.until(
          "the daemon serves the open file",
          PATIENCE,
          () -> pmfs.run("status").out().contains("1 file still open"));
    } finally {
      reader.destroyForcibly().waitFor();
    }
    assertNothingLeft(mount);
  }

  @Test
  void fusermount_ofEach_endsTheDaemonWithTheLast() {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    fusermount(second);
    Await.until(
        "only one is listed",
        PATIENCE,
        () -> !pmfs.run("status", "--json").out().contains(second.toString()));
    join("b");
    fusermount(mount.mountpoint());
    assertEqual(second);
    fusermount(second);
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void umountPurge_whileAnotherShares_dropsNothing() {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    assertEqual(second);
    Command refused = pmfs.run("umount", "--purge", mount.mountpoint().toString());
    refused.expect(2);
    assertThat(refused.err()).contains(second.toString());
    umount(mount.mountpoint());
    umount(second, "--purge");
    assertThat(pmfs.copies()).isEmpty();
    assertNothingLeft(mount);
  }

  @Test
  void kill9_ofTheDaemon_leavesNothing() {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    assertEqual(second);
    mount.kill9();
    Await.until(
        "both are unmounted", PATIENCE, () -> !Mounts.at(mount.mountpoint()) && !Mounts.at(second));
    user.awaitNoProcess();
    Path next = place("next");
    pmfs.run(pmfs.mountArguments(dataset.root(), next)).expect(0);
    assertThat(registered()).as("only those of the new mount").hasSize(3);
    assertEqual(next);
    umount(next);
    assertThat(registered()).isEmpty();
    user.awaitNoProcess();
  }

  @Test
  void sigterm_ofTheDaemon_unmountsAll() {
    MountedPmfs mount = pmfs.mount(dataset.root());
    join("b");
    join("c");
    mount.signal("TERM");
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest(value = "modes", what = "as for root")
  void mountAndUmount_manyTimes_disturbNoReader() throws Exception {
    MountedPmfs mount = pmfs.mount(Duration.ofMinutes(10), dataset.root());
    Path ends = pmfs.directory("signs").resolve("ends");
    Process reader =
        user.start(
            "sh",
            "-c",
            "while [ ! -e \"$2\" ]; do diff -r \"$0\" \"$1\" || exit; done",
            dataset.root().toString(),
            mount.mountpoint().toString(),
            ends.toString());
    int before = -1;
    for (int i = 0; i < MOUNTS; i++) {
      Path second = join("b");
      user.run(
              "cmp", file(second, i % FILES).toString(), file(dataset.root(), i % FILES).toString())
          .expect(0);
      if (i % 2 == 0) {
        umount(second);
      } else {
        fusermount(second);
      }
      before = i == 4 ? descriptors(mount) : before;
    }
    int allowed = before;
    Await.until(
        () -> descriptors(mount) + " descriptors, " + allowed + " before",
        PATIENCE,
        () -> descriptors(mount) <= allowed);
    Await.until(
        "one guard",
        PATIENCE,
        () -> user.processes().lines().filter(line -> line.contains("pmfs-guard")).count() == 1);
    Files.createFile(ends);
    assertThat(reader.waitFor()).isZero();
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  private static int descriptors(MountedPmfs mount) {
    try (Stream<Path> open = Files.list(Path.of("/proc/" + mount.pid() + "/fd"))) {
      return (int) open.count();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  @OnRequest("cases")
  void mount_withAnotherView_isRefusedAndNamesBothValues() {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = place("b");
    Command refused =
        pmfs.run(pmfs.mountArguments(dataset.root(), second, "--source-form", "directory"));
    refused.expect(2);
    assertThat(refused.err())
        .contains("--source-form is directory here, and auto for the mount on ");
    Command ignored = pmfs.run(pmfs.mountArguments(dataset.root(), second, "--log-level", "debug"));
    ignored.expect(0);
    assertThat(ignored.errorLines())
        .containsExactly(
            "pmfs: %s: shares the daemon of %s; ignored here: --log-level"
                .formatted(second, mount.mountpoint()));
    Command taken = pmfs.run(pmfs.mountArguments(dataset.root(), second));
    taken.expect(2);
    assertThat(taken.err()).contains("already mounted: pid " + mount.pid());
    umount(second);
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest(value = "modes", what = "as for root")
  void mount_afterTheMost_isInUse() {
    MountedPmfs mount = pmfs.mount(dataset.root());
    List<Path> joined = new ArrayList<>();
    for (int i = 1; i < 8; i++) {
      joined.add(join("m" + i));
    }
    Path more = place("more");
    Command refused = pmfs.run(pmfs.mountArguments(dataset.root(), more));
    refused.expect(6);
    assertThat(refused.err()).contains("it has 8 mount points");
    umount(joined.remove(3));
    pmfs.run(pmfs.mountArguments(dataset.root(), more)).expect(0);
    joined.forEach(this::umount);
    umount(more);
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void upgradeAndKeep_needRoot_andSaySo() {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    Command upgrade = pmfs.run("upgrade", second.toString());
    upgrade.expect(1);
    assertThat(upgrade.errorLines()).singleElement().asString().contains("no supervisor holds it");
    Command keep = pmfs.run(pmfs.mountArguments(dataset.root(), place("c"), "--linger", "5m"));
    keep.expect(2);
    assertThat(keep.errorLines()).singleElement().asString().contains("works only for root");
    umount(second);
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  private void assertWorkBy(Path mountpoint) {
    String place = mountpoint.toString();
    String item = file(mountpoint, 3).toString();
    pmfs.run("evict", place).expect(0);
    assertThat(pmfs.run("stage", "--check", place).exit()).isEqualTo(4);
    pmfs.run("stage", item).expect(0);
    pmfs.run("stage", place).expect(0);
    pmfs.run("stage", "--check", place).expect(0);
    pmfs.run("verify", item).expect(0);
    pmfs.run("doctor", place).expect(0);
    assertThat(pmfs.run("config", "--running", place).exit()).isIn(0, 2);
    assertThat(pmfs.run("status", place).expect(0).out())
        .startsWith(dataset.root() + " on ")
        .containsPattern("mounted on +" + place);
  }
}
