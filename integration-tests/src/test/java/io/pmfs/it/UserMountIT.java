package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Mounts by an account without privileges, through fusermount3. */
final class UserMountIT {
  private AccountBed bed;
  private Account user;
  private Installation pmfs;
  private Dataset dataset;

  @BeforeEach
  void becomeAble() {
    bed = AccountBed.ofUser();
    pmfs = bed.pmfs();
    user = bed.user();
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(20, 10_000));
  }

  private static void chmod(Path path, int mode) {
    Posix.check(Posix.result(Posix.LIBC.chmod(Posix.c(path.toString()), mode)));
  }

  @AfterEach
  void putBack() {
    if (bed != null) {
      bed.close();
    }
  }

  private Command byUser(String... line) {
    List<String> all = new ArrayList<>(user.prefix());
    all.addAll(List.of(line));
    return Command.run(all.toArray(String[]::new));
  }

  private MountedPmfs mount(BridgeMode mode) {
    // Without root there is no passthrough: what is asked for is not what comes about.
    mode.require();
    MountedPmfs mount = pmfs.mount(dataset.root(), mode.with());
    mode.assertBridge(mount);
    return mount;
  }

  private void awaitUnmounted() {
    Await.until("unmounted", Duration.ofSeconds(20), () -> !Mounts.at(pmfs.mountpoint()));
  }

  private void assertServes(MountedPmfs mount) {
    byUser("diff", "-r", dataset.root().toString(), mount.mountpoint().toString()).expect(0);
  }

  @Test
  void mount_byUserWhomAListNames_letsThemRead() {
    chmod(dataset.root(), 0700);
    AccessList.set(dataset.root(), "u::rwx u:" + user.uid() + ":rx g::- m::rx o::-");
    try (MountedPmfs mount = mount(BridgeMode.PAGE_CACHE)) {
      assertServes(mount);
    }
  }

  @Test
  void writable_mountOfAUser_bringsFilesToTheSource() {
    byUser("chmod", "-R", "u+w", dataset.root().toString());
    Command.run("chown", "-R", user.name(), dataset.root().toString()).expect(0);
    try (MountedPmfs mount = pmfs.mount(dataset.root(), "--writable")) {
      byUser(
              "sh",
              "-euc",
              "cd -- \"$1\"; mkdir new; echo x >new/file; mv new/file new/moved; rm -r new/moved;"
                  + " head -c 3M /dev/urandom >new/large; chmod 600 new/large",
              "-",
              mount.mountpoint().toString())
          .expect(0);
      pmfs.run("drain", mount.mountpoint().toString()).expect(0);
      assertServes(mount);
      assertThat(Posix.stat(dataset.root().resolve("new/large").toString()).permissions())
          .isEqualTo(0600);
    }
    user.awaitNoProcess();
  }

  @ParameterizedTest
  @EnumSource(BridgeMode.class)
  void mount_byUser_servesThatUserAndNobodyElse(BridgeMode mode) {
    Requested.assume("modes", mode != BridgeMode.PASSTHROUGH, "a user's mount that falls back");
    try (MountedPmfs mount = mount(mode)) {
      String mountpoint = mount.mountpoint().toString();
      assertServes(mount);
      assertThat(Mounts.options(mount.mountpoint()))
          .contains("ro,")
          .contains("nosuid")
          .contains("nodev")
          .contains("default_permissions")
          .doesNotContain("allow_other");
      String file = mountpoint + "/" + dataset.items().get(0).name();
      for (String[] line : new String[][] {{"ls", mountpoint}, {"cat", file}}) {
        Command refused = OtherUser.run(line);
        assertThat(refused.exit()).as("%s", refused).isNotEqualTo(0);
        assertThat(refused.err()).contains("Permission denied");
      }
      // Not even root, who looks at it here.
      assertThat(Posix.outcome(Posix.statOutcome(file, 0))).isEqualTo("EACCES");
      mount.awaitCopies(dataset.items().size());
      pmfs.run("umount", mountpoint).expect(0);
      mount.ended();
      assertThat(Mounts.at(mount.mountpoint())).isFalse();
    }
    user.awaitNoProcess();
  }

  @ParameterizedTest
  @EnumSource(
      value = BridgeMode.class,
      names = {"PAGE_CACHE", "JNR"})
  void mount_byUser_refusesWhatTheSourceRefuses(BridgeMode mode) {
    mode.runsInEveryRunIf(BridgeMode.PAGE_CACHE);
    Path secret = dataset.root().resolve(dataset.items().get(0).name());
    chmod(secret, 0600);
    try (MountedPmfs mount = mount(mode)) {
      String file = mount.path(dataset.items().get(0).name());
      Command refused = byUser("cat", file);
      assertThat(refused.exit()).as("%s", refused).isNotEqualTo(0);
      assertThat(refused.err()).contains("Permission denied");
      byUser("cat", mount.path(dataset.items().get(1).name())).expect(0);
    }
  }

  @Test
  void mount_byUser_isByTheKernelBridgeAndSaysWhy() {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      String mountpoint = mount.mountpoint().toString();
      Status status = Status.parse(pmfs.run("status", mountpoint, "--json").expect(0).out());
      assertThat(status.text("bridge")).isEqualTo("kernel");
      assertThat(status.text("bridgeReason")).contains("fusermount3");
      assertThat(status.text("readMode")).isEqualTo("page-cache");
    }
  }

  /** The kernel has passthrough for CAP_SYS_ADMIN only. */
  @Test
  void mount_byUserWithPassthrough_isPageCacheAndSaysWhy() {
    try (MountedPmfs mount = mount(BridgeMode.PASSTHROUGH)) {
      assertServes(mount);
      assertThat(mount.status().text("readMode")).isEqualTo("page-cache");
      assertThat(mount.status().text("readModeReason")).contains("root");
    }
  }

  @Test
  void kill9_ofUsersDaemon_leavesNoMountAndNoProcess() {
    MountedPmfs killed = mount(BridgeMode.PAGE_CACHE);
    assertServes(killed);
    killed.kill9();
    awaitUnmounted();
    user.awaitNoProcess();
    try (MountedPmfs mount = mount(BridgeMode.PAGE_CACHE)) {
      assertServes(mount);
    }
  }

  /** A user's mount has no supervisor: its log says why the daemon ended. */
  @Test
  @OnRequest("cases")
  void heap_thatRunsOut_isSaidAndLeavesNoMountAndNoProcess() throws IOException {
    Path process = pmfs.directory("switch");
    user.own(process.toString());
    pmfs.environment("PMFS_JAVA_OPTIONS", ErrorAgent.option(process));
    MountedPmfs full = pmfs.mount(dataset.root());
    assertServes(full);
    Path log = Path.of(full.status().text("logFile"));

    String where =
        ErrorSwitch.throwIn(
            process,
            "fuse-",
            10,
            ErrorSwitch.FILLED_HEAP,
            () -> byUser("stat", "-f", pmfs.mountpoint().toString()));

    assertThat(where).isNotEmpty();
    full.awaitGone();
    full.ended();
    awaitUnmounted();
    user.awaitNoProcess();
    assertThat(log).content().contains("java.lang.OutOfMemoryError: Java heap space");
    try (MountedPmfs next = pmfs.mount(dataset.root())) {
      assertServes(next);
    }
  }

  @Test
  void kill9_ofUsersProcessGroup_leavesNoMount() {
    MountedPmfs killed = mount(BridgeMode.PAGE_CACHE);
    Command.run("kill", "-KILL", "--", "-" + killed.pid()).expect(0);
    killed.awaitGone();
    killed.ended();
    awaitUnmounted();
    user.awaitNoProcess();
  }

  @Test
  @OnRequest("cases")
  void abort_ofUsersSession_leavesNoMountAndNoProcess() {
    Machine.requireFusectl();
    MountedPmfs mount = mount(BridgeMode.PAGE_CACHE);
    String connection = "/sys/fs/fuse/connections/$(stat -c %d \"$1\")/abort";
    String path = pmfs.mountpoint().toString();
    byUser("sh", "-c", "echo 1 >" + connection, "sh", path).expect(0);
    mount.ended();
    mount.awaitGone();
    awaitUnmounted();
    user.awaitNoProcess();
  }

  @Test
  void kill9_ofUsersJnrDaemon_nextMountServes() {
    mount(BridgeMode.JNR).kill9();
    try (MountedPmfs mount = mount(BridgeMode.JNR)) {
      assertServes(mount);
    }
  }

  @Test
  @OnRequest("cases")
  void sigterm_toUsersDaemon_leavesNoMountAndNoProcess() {
    MountedPmfs mount = mount(BridgeMode.PAGE_CACHE);
    mount.signal("TERM");
    mount.awaitGone();
    mount.ended();
    assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
    user.awaitNoProcess();
  }

  @Test
  @OnRequest("cases")
  void fusermount_byUser_endsTheDaemon() {
    MountedPmfs mount = mount(BridgeMode.PAGE_CACHE);
    byUser("fusermount3", "-u", pmfs.mountpoint().toString()).expect(0);
    mount.awaitGone();
    mount.ended();
    user.awaitNoProcess();
  }

  /** Somebody may mount there again before the daemon of the mount before is gone. */
  @Test
  void kill9_afterUnmountAndNextMount_leavesTheNextMountAlone() {
    MountedPmfs first = mount(BridgeMode.PAGE_CACHE);
    first.signal("STOP");
    byUser("fusermount3", "-uz", pmfs.mountpoint().toString()).expect(0);
    byUser("sh", "-c", "rm -f " + pmfs.scratch().root() + "/run/*").expect(0);
    try (MountedPmfs second =
        pmfs.mount(dataset.root(), "--tier", "ssd:" + pmfs.directory("home").resolve("tier"))) {
      first.kill9();
      assertServes(second);
      assertThat(Mounts.at(pmfs.mountpoint())).isTrue();
    }
    user.awaitNoProcess();
  }

  /** Root's mounts log there, and a user may not look into it. */
  @Test
  @OnRequest("cases")
  void run_besideTheLogsOfRoot_saysNothingOfThem() throws IOException {
    Path logs = Path.of("/var/log/pmfs");
    boolean isNew = !Files.exists(logs);
    if (isNew) {
      Files.createDirectory(
          logs, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    }
    try {
      String first = dataset.root().resolve(dataset.items().get(0).name()).toString();
      Command run =
          pmfs.run("run", "--source", dataset.root().toString(), "--", "test", "-f", first);
      run.expect(0);
      assertThat(run.err().lines())
          .singleElement()
          .asString()
          .contains(dataset.root() + " mounted on ");
    } finally {
      if (isNew) {
        Files.delete(logs);
      }
    }
    user.awaitNoProcess();
  }
}
