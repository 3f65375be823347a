package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Several mounts of one dataset by root: one daemon, which ends with the last of them. */
final class SharedMountIT {
  /** Of one mount point, while another one is read. */
  private static final int MOUNTS = 200;

  private static final Duration PATIENCE = Duration.ofSeconds(60);

  @Installed(byRoot = true)
  private Installation pmfs;

  private Dataset dataset;

  @BeforeEach
  void makeDataset() {
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(8, 50_000));
  }

  private Path join(String name, String... options) {
    Path mountpoint = pmfs.directory(name);
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

  private Status statusOf(Path mountpoint) {
    return Status.parse(pmfs.run("status", "--json", mountpoint.toString()).expect(0).out());
  }

  private static Process hold(Path file) throws IOException {
    return new ProcessBuilder("sleep", "300").redirectInput(Redirect.from(file.toFile())).start();
  }

  private Path file(Path mountpoint, int number) {
    return mountpoint.resolve(dataset.items().get(number).name());
  }

  /** Nothing of a mount is left: no process, socket, record or mount. */
  private void assertNothingLeft(MountedPmfs mount) throws IOException {
    Await.until("the supervisor ended", PATIENCE, () -> !mount.isSupervised());
    assertThat(mount.daemon()).isZero();
    assertThat(Mounts.below(pmfs.scratch().root())).isEmpty();
    try (Stream<Path> left = Files.list(pmfs.scratch().root().resolve("run"))) {
      assertThat(left.map(Path::toString))
          .noneMatch(name -> name.matches(".*(\\.json|\\.sock|\\.holder|\\.new|\\.kept)"));
    }
    mount.ended();
  }

  @Test
  void mount_threeMore_showTheSameAndReadTheSourceOnce() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root());
    List<Path> all = List.of(mount.mountpoint(), join("b"), join("c"), join("d"));
    for (Path mountpoint : all) {
      dataset.assertEqualBelow(mountpoint);
      Status status = statusOf(mountpoint);
      assertThat(status.number("pid")).isEqualTo(mount.pid());
      for (int i = 0; i < all.size(); i++) {
        assertThat(status.text("holders." + i + ".mountpoint")).isEqualTo(all.get(i).toString());
      }
    }
    assertThat(mount.status().number("sourceOperations.bytes")).isEqualTo(dataset.bytes());
    all.forEach(this::umount);
    assertNothingLeft(mount);
  }

  @Test
  void umount_ofTheFirst_leavesTheSecondItsReadersAndItsDaemon() throws Exception {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    Process reader = hold(file(second, 0));
    try {
      umount(mount.mountpoint());
      dataset.assertEqualBelow(second);
      // The daemon moves to the place of a mount that is not at its mount point.
      Await.until(
          "the daemon is found by its other mount point",
          PATIENCE,
          () -> pmfs.run("status", second.toString()).exit() == 0);
      assertThat(statusOf(second).number("pid")).isEqualTo(mount.pid());
      assertThat(statusOf(second).text("holders.0.mountpoint")).isEqualTo(second.toString());
      pmfs.run("stage", second.toString()).expect(0);
      pmfs.run("upgrade", second.toString()).expect(0);
      dataset.assertEqualBelow(second);
      Command busy = pmfs.run("umount", second.toString());
      busy.expect(1);
      assertThat(busy.err()).contains(Long.toString(reader.pid()));
    } finally {
      reader.destroyForcibly().waitFor();
    }
    umount(second);
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void umount_ofTheSecondWhileTheFirstIsRead_waitsForNobody() throws Exception {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    Process reader = hold(file(mount.mountpoint(), 0));
    try {
      umount(second);
      assertThat(mount.status().number("pid")).isEqualTo(mount.pid());
      dataset.assertEqualBelow(mount.mountpoint());
    } finally {
      reader.destroyForcibly().waitFor();
    }
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void umount8_ofBoth_endsTheDaemon() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    Command.run("umount", second.toString()).expect(0);
    assertThat(statusOf(mount.mountpoint()).text("holders.0.mountpoint"))
        .isEqualTo(mount.mountpoint().toString());
    second = join("b");
    Command.run("umount", mount.mountpoint().toString()).expect(0);
    dataset.assertEqualBelow(second);
    Command.run("umount", second.toString()).expect(0);
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void umountPurge_whileAnotherShares_dropsNothing() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    dataset.assertEqualBelow(second);
    Command refused = pmfs.run("umount", "--purge", mount.mountpoint().toString());
    refused.expect(2);
    assertThat(refused.err()).contains(second.toString());
    umount(mount.mountpoint());
    umount(second, "--purge");
    assertThat(pmfs.copies()).isEmpty();
    assertNothingLeft(mount);
  }

  @Test
  void kill9_ofTheDaemon_readersOfBothGoOn() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    long killed = mount.daemon();
    mount.killDaemon();
    dataset.assertEqualBelow(second);
    dataset.assertEqualBelow(mount.mountpoint());
    Await.until("a successor", PATIENCE, () -> mount.daemon() != killed && mount.daemon() != 0);
    umount(mount.mountpoint());
    mount.killDaemon();
    dataset.assertEqualBelow(second);
    umount(second);
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void kill9_ofSupervisorAndDaemon_theNextMountsRemoveWhatIsStale() throws IOException {
    MountedPmfs dead = pmfs.mount(dataset.root());
    Path second = join("b");
    dead.kill9();
    MountedPmfs mount = pmfs.mount(dataset.root());
    join("b");
    dataset.assertEqualBelow(second);
    dataset.assertEqualBelow(mount.mountpoint());
    umount(second);
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void sigterm_ofTheDaemon_unmountsAll() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root());
    join("b");
    mount.signal("TERM");
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest(value = "large", what = "200 mounts of one mount point")
  void mountAndUmount_manyTimes_disturbNoReader() throws Exception {
    MountedPmfs mount = pmfs.mount(dataset.root());
    AtomicBoolean ends = new AtomicBoolean();
    CompletableFuture<Integer> reader =
        CompletableFuture.supplyAsync(
            () -> {
              int rounds = 0;
              for (; !ends.get(); rounds++) {
                dataset.assertEqualBelow(mount.mountpoint());
              }
              return rounds;
            });
    try {
      for (int i = 0; i < MOUNTS; i++) {
        Path second = join("b");
        assertThat(Dataset.read(file(second, i % 8))).hasSize(50_000);
        if (i % 2 == 0) {
          umount(second);
        } else {
          Command.run("umount", second.toString()).expect(0);
        }
      }
    } finally {
      ends.set(true);
    }
    assertThat(reader.get()).isPositive();
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void mount_withAnotherView_isRefusedAndNamesBothValues() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = pmfs.directory("b");
    Command refused = pmfs.run(pmfs.mountArguments(dataset.root(), second, "--allow-other"));
    refused.expect(2);
    assertThat(refused.err()).contains("--allow-other is true here, and false for the mount on ");
    assertThat(Mounts.at(second)).isFalse();
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void mount_onAPlaceThatIsTaken_namesTheDaemon() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    Command refused = pmfs.run(pmfs.mountArguments(dataset.root(), second));
    refused.expect(2);
    assertThat(refused.err()).contains("already mounted: pid " + mount.pid());
    umount(second);
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  private void assertWorkBy(Path mountpoint, MountedPmfs mount) {
    String place = mountpoint.toString();
    String item = file(mountpoint, 3).toString();
    pmfs.run("evict", place).expect(0);
    assertThat(pmfs.run("stage", "--check", place).exit()).isEqualTo(4);
    pmfs.run("stage", item).expect(0);
    pmfs.run("stage", "--check", item).expect(0);
    pmfs.run("stage", place).expect(0);
    pmfs.run("verify", place).expect(0);
    pmfs.run("verify", item).expect(0);
    pmfs.run("evict", item).expect(0);
    pmfs.run("doctor", place).expect(0);
    assertThat(pmfs.run("config", "--running", place).exit()).isIn(0, 2);
    long before = mount.daemon();
    assertThat(pmfs.run("upgrade", place).expect(0).out()).contains(place);
    assertThat(mount.daemon()).isNotIn(0L, before);
    assertThat(pmfs.run("status", place).expect(0).out())
        .startsWith(dataset.root() + " on ")
        .containsPattern("mounted on +" + place);
  }

  @Test
  @OnRequest("cases")
  void commands_byAnyMountPoint_workAlsoWithoutTheFirst() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = join("b");
    pmfs.run("stage", second.toString()).expect(0);
    pmfs.run("stage", "--check", mount.mountpoint().toString()).expect(0);
    umount(mount.mountpoint());
    Path third = join("c");
    assertWorkBy(third, mount);
    for (String all : List.of("status", "status --json", "status " + second, "status " + third)) {
      assertThat(pmfs.run(all.split(" ")).expect(0).out())
          .contains(second.toString())
          .doesNotContain(mount.mountpoint() + "\n", "on " + mount.mountpoint() + "\"");
    }
    pmfs.run("stage", dataset.root().toString()).expect(0);
    umount(third);
    umount(second);
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void mount_withOtherOptions_namesThoseThatItIgnores() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root(), "--eviction", "lru", "--buffer-memory", "64M");
    Path second = pmfs.directory("b");
    Command joined =
        pmfs.run(
            pmfs.mountArguments(
                dataset.root(),
                second,
                "--buffer-memory",
                "65536k",
                "--log-level",
                "debug",
                "--metrics",
                "0"));
    joined.expect(0);
    assertThat(joined.errorLines())
        .containsExactly(
            "pmfs: %s: shares the daemon of %s; ignored here: --metrics, --log-level"
                .formatted(second, mount.mountpoint()));
    assertThat(pmfs.run(pmfs.mountArguments(dataset.root(), pmfs.directory("c"))).expect(0).err())
        .isEmpty();
    umount(pmfs.directory("c"));
    umount(second);
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  @Test
  void mount_withoutATier_sharesWhateverDaemonShowsTheSame() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path second = pmfs.directory("b");
    String source = dataset.root().toString();
    assertThat(pmfs.run("mount", source, second.toString()).expect(0).out())
        .contains("shares the daemon of " + mount.mountpoint());
    dataset.assertEqualBelow(second);
    assertThat(statusOf(second).number("pid")).isEqualTo(mount.pid());
    umount(second);
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void mount_besideAWritableOneWithItsTier_sharesTheReadOnlyDaemon() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Path writable = pmfs.directory("writable");
    pmfs.run(pmfs.mountArguments(dataset.root(), writable, "--writable")).expect(0);
    Path second = join("b");
    assertThat(statusOf(second).number("pid")).isEqualTo(mount.pid());
    umount(second);
    umount(writable);
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void mount_withAnotherTier_hasADaemonOfItsOwnThatOthersShare() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root());
    String tier = "ssd:" + pmfs.directory("tier2");
    Path apart = pmfs.directory("apart");
    Command mounted = pmfs.run(pmfs.mountArguments(dataset.root(), apart, "--tier", tier));
    mounted.expect(0);
    assertThat(mounted.out()).doesNotContain("shares");
    Path joined = join("joined", "--tier", tier);
    assertThat(statusOf(joined).number("pid"))
        .isEqualTo(statusOf(apart).number("pid"))
        .isNotEqualTo(mount.pid());
    umount(apart);
    umount(joined);
    umount(mount.mountpoint());
    assertNothingLeft(mount);
  }

  /** The place of a daemon that stays; empty if none does. */
  private String kept() {
    return Mounts.below(pmfs.scratch().root()).stream()
        .filter(place -> place.endsWith(".kept"))
        .findFirst()
        .orElse("");
  }

  @Test
  void linger_afterTheLastUnmount_theNextMountFindsTheDaemon() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root(), "--linger", "10m");
    dataset.assertEqualBelow(mount.mountpoint());
    assertThat(pmfs.run("status").expect(0).out()).doesNotContain("kept");
    Command left = pmfs.run("umount", mount.mountpoint().toString()).expect(0);
    assertThat(left.out()).contains("pmfs umount " + kept() + " ends it");
    Await.until(
        "status tells the time",
        PATIENCE,
        () ->
            pmfs.run("status")
                .out()
                .contains(kept() + ", kept without a mount point for another 9m"));
    assertThat(
            Status.parse(pmfs.run("status", "--json", kept()).expect(0).out())
                .number("keptSeconds"))
        .isBetween(1L, 600L);
    pmfs.run("stage", "--check", dataset.root().toString()).expect(0);

    Path second = join("b");
    assertThat(statusOf(second).number("pid")).isEqualTo(mount.pid());
    dataset.assertEqualBelow(second);
    assertThat(statusOf(second).number("sourceOperations.bytes")).isEqualTo(dataset.bytes());
    assertThat(pmfs.run("status").expect(0).out()).doesNotContain("kept", mount.mountpoint() + ",");
    long killed = mount.daemon();
    Command.run("umount", second.toString()).expect(0);
    mount.killDaemon();
    Await.until("a successor", PATIENCE, () -> mount.daemon() != killed && mount.daemon() != 0);
    Await.until("it is listed", PATIENCE, () -> pmfs.run("status", kept()).exit() == 0);

    umount(Path.of(kept()));
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void linger_ofAShortTime_endsByItself() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root(), "--linger", "3s");
    Path second = join("b");
    umount(mount.mountpoint());
    pmfs.run("upgrade", second.toString()).expect(0);
    Command.run("umount", second.toString()).expect(0);
    assertThat(kept()).isNotEmpty();
    assertNothingLeft(mount);
  }

  @Test
  @OnRequest("cases")
  void linger_ofAMountThatIsPurgedOrTerminated_leavesNothing() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root(), "--linger", "10m");
    dataset.assertEqualBelow(mount.mountpoint());
    umount(mount.mountpoint(), "--purge");
    assertThat(pmfs.copies()).isEmpty();
    assertNothingLeft(mount);

    MountedPmfs terminated = pmfs.mount(dataset.root(), "--linger", "10m");
    umount(terminated.mountpoint());
    terminated.signal("TERM");
    assertNothingLeft(terminated);

    MountedPmfs killed = pmfs.mount(dataset.root(), "--linger", "10m");
    umount(killed.mountpoint());
    killed.kill9();
    MountedPmfs next = pmfs.mount(dataset.root());
    umount(next.mountpoint());
    assertNothingLeft(next);
  }
}
