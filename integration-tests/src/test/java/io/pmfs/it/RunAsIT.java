package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code pmfs mount --user}: root mounts, and the user's daemon serves the user. */
final class RunAsIT {
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final String CAP_SYS_ADMIN = "0000000000200000";
  private static final String NO_CAPABILITY = "0000000000000000";

  private AccountBed bed;
  private Installation pmfs;
  private Account user;
  private Dataset dataset;

  @BeforeEach
  void install() {
    bed = AccountBed.ofRoot();
    pmfs = bed.pmfs();
    user = bed.user();
    for (String name : List.of("home", "tier")) {
      user.own(pmfs.directory(name).toString());
    }
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(20, 50_000));
    // One file is open to the user only through the second group, the others to nobody else.
    user.own(dataset.root().toString());
    chmod(dataset.root(), 0700);
    Path first = dataset.root().resolve(dataset.items().get(0).name());
    Command.run("chown", "0:" + user.otherGroup(), first.toString()).expect(0);
    chmod(first, 0640);
  }

  private static void chmod(Path path, int mode) {
    Posix.check(Posix.result(Posix.LIBC.chmod(Posix.c(path.toString()), mode)));
  }

  @AfterEach
  void remove() {
    if (bed != null) {
      bed.close();
    }
  }

  private MountedPmfs mount(String... options) {
    return mount(dataset.root(), options);
  }

  private MountedPmfs mount(Path source, String... options) {
    List<String> all = new ArrayList<>(List.of("--user", user.name()));
    all.addAll(Arrays.asList(options));
    return pmfs.mount(source, all.toArray(String[]::new));
  }

  /** A pmfs command by the user, who finds the mounts that root made for them. */
  private Command byUser(String... arguments) {
    List<String> line = new ArrayList<>(List.of(bed.scripts().resolve("pmfs").toString()));
    line.addAll(Arrays.asList(arguments));
    Path runtime = pmfs.scratch().root().resolve("run-" + user.uid());
    return user.run(Map.of("PMFS_RUNTIME_DIR", runtime.toString()), line.toArray(String[]::new));
  }

  private void assertReadRight(MountedPmfs mount) {
    user.run("diff", "-r", mount.source().toString(), mount.mountpoint().toString()).expect(0);
  }

  /** What /proc/PID/status says under a name. */
  private static String status(long pid, String name) {
    try {
      return Files.readAllLines(Path.of("/proc/" + pid + "/status")).stream()
          .filter(line -> line.startsWith(name + ":"))
          .map(line -> line.substring(name.length() + 1).strip())
          .findFirst()
          .orElseThrow();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private void assertPowerless(long pid) {
    String uid = Integer.toString(user.uid());
    String gid = Integer.toString(user.gid());
    assertThat(status(pid, "Uid").split("\\s+")).containsOnly(uid);
    assertThat(status(pid, "Gid").split("\\s+")).containsOnly(gid);
    assertThat(status(pid, "Groups").split("\\s+"))
        .containsExactlyInAnyOrder(gid, Integer.toString(user.otherGroup()));
    for (String set : List.of("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")) {
      assertThat(status(pid, set)).as(set).isEqualTo(NO_CAPABILITY);
    }
    assertThat(status(pid, "NoNewPrivs")).isEqualTo("1");
  }

  @Test
  void mount_forUser_isServedByAProcessOfTheirs() {
    try (MountedPmfs mount = mount()) {
      assertPowerless(mount.pid());
      assertThat(mount.status().text("user")).isEqualTo(user.name());
      assertThat(Mounts.options(mount.mountpoint()))
          .contains("nosuid", "nodev", "user_id=" + user.uid(), "group_id=" + user.gid())
          .doesNotContain("allow_other");
    }
  }

  @Test
  void mount_forUser_servesThemAndNobodyElse() {
    try (MountedPmfs mount = mount()) {
      assertReadRight(mount);
      mount.awaitCopies(dataset.items().size());
      Machine.dropCaches();
      assertReadRight(mount);
      String file = mount.path(dataset.items().get(1).name());
      Command refused = OtherUser.run("cat", file);
      assertThat(refused.exit()).isNotZero();
      assertThat(refused.err()).contains("Permission denied");
      assertThat(Posix.outcome(Posix.statOutcome(file, 0))).as("root").isEqualTo("EACCES");
    }
  }

  @Test
  void mount_ofSourceThatIsClosedToRoot_works() {
    try (MountedPmfs closed = mount()) {
      assertThat(Posix.outcome(Posix.statOutcome(closed.path("x"), 0))).isEqualTo("EACCES");
      Path mountpoint = pmfs.directory("mnt2");
      Path tier = pmfs.directory("tier2");
      user.own(tier.toString());
      String name = user.name();
      String source = closed.mountpoint().toString();
      String place = "ssd:" + tier;
      pmfs.run("mount", "--user", name, "--tier", place, source, mountpoint.toString()).expect(0);
      user.run("diff", "-r", dataset.root().toString(), mountpoint.toString()).expect(0);
      pmfs.run("umount", mountpoint.toString()).expect(0);
    }
  }

  @Test
  void mount_withAllowOther_letsOthersInAsFarAsModesPermit() {
    chmod(dataset.root(), 0755);
    try (MountedPmfs mount = mount("--allow-other")) {
      String shared = mount.path(dataset.items().get(1).name());
      OtherUser.run("cat", shared).expect(0);
      assertThat(OtherUser.run("cat", mount.path(dataset.items().get(0).name())).exit())
          .isNotZero();
    }
  }

  @Test
  void mount_withAllowOtherInTheUsersFile_isRefused() throws IOException {
    Path file = pmfs.directory("home").resolve("pmfs.toml");
    Files.writeString(file, "allow-other = true\n");
    Command refused =
        pmfs.run(
            pmfs.mountArguments(
                dataset.root(),
                pmfs.mountpoint(),
                "--user",
                user.name(),
                "--config",
                file.toString()));
    assertThat(refused.expect(2).err()).contains("--allow-other").contains("root");
    assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
  }

  @Test
  @OnRequest("cases")
  void defaults_followTheUser() {
    pmfs.environment("PMFS_CACHE_DIR", pmfs.directory("of-root").toString());
    chmod(pmfs.directory("of-root"), 0700);
    pmfs.run(
            "mount", "--user", user.name(), dataset.root().toString(), pmfs.mountpoint().toString())
        .expect(0);
    Status status =
        Status.parse(pmfs.run("status", pmfs.mountpoint().toString(), "--json").expect(0).out());
    assertThat(status.text("stateDirectory")).doesNotContain("of-root");
    pmfs.run("umount", "--purge", pmfs.mountpoint().toString()).expect(0);
  }

  @Test
  @OnRequest("cases")
  void kill9_ofTheDaemon_itGoesOnAsTheUser() {
    try (MountedPmfs mount = mount()) {
      long pid = mount.pid();
      for (int kill = 0; kill < 3; kill++) {
        Command.run("kill", "-KILL", Long.toString(pid)).expect(0);
        assertReadRight(mount);
        pid = mount.awaitSuccessor(pid);
        assertPowerless(pid);
      }
    }
  }

  @Test
  void upgrade_byRootAndByTheUser_goesOnAsTheUser() {
    try (MountedPmfs mount = mount()) {
      String mountpoint = mount.mountpoint().toString();
      pmfs.run("upgrade", mountpoint).expect(0);
      long second = mount.status().number("pid");
      assertThat(second).isNotEqualTo(mount.pid());
      byUser("upgrade", mountpoint).expect(0);
      assertThat(mount.status().number("pid")).isNotEqualTo(second);
      assertPowerless(mount.status().number("pid"));
      assertReadRight(mount);
    }
  }

  /** A pool that the user's daemon makes, and each that comes after it maps. */
  @Test
  @OnRequest("cases")
  void pool_ofTheUser_isServedFromAlsoAfterAnUpgradeAndAnotherMount() throws IOException {
    Path pool = pmfs.tier().resolve("test.pool");
    String[] tier = {"--tier", "pm:" + pool + ":32M"};
    int count = dataset.items().size();
    try (MountedPmfs mount = mount(tier)) {
      assertReadRight(mount);
      mount.awaitCopies(count);
      assertThat(Files.getAttribute(pool, "unix:uid")).isEqualTo(user.uid());
      assertThat(Files.getPosixFilePermissions(pool))
          .isEqualTo(PosixFilePermissions.fromString("rw-------"));
      long pid = mount.daemon();
      pmfs.run("upgrade", mount.mountpoint().toString()).expect(0);
      assertThat(mount.daemon()).isNotEqualTo(pid);
      assertPowerless(mount.daemon());
      assertServedFrom(pool, mount);
    }
    try (MountedPmfs mount = mount(tier)) {
      assertServedFrom(pool, mount);
    }
  }

  private void assertServedFrom(Path pool, MountedPmfs mount) {
    Machine.dropCaches();
    assertReadRight(mount);
    Status status = mount.status();
    assertThat(status.text("tiers.0.path")).isEqualTo(pool.toString());
    assertThat(status.number("tiers.0.copies")).isEqualTo(dataset.items().size());
    assertThat(status.number("sourceOperations.reads")).isZero();
    assertThat(status.number("staging.mismatches")).isZero();
  }

  @Test
  void pool_ofRoots_isRefusedInOneLineAndLeftAsItIs() throws IOException {
    Path pool = Files.createFile(pmfs.tier().resolve("test.pool"));
    chmod(pool, 0600);
    Command refused =
        pmfs.run(
            pmfs.mountArguments(
                dataset.root(),
                pmfs.mountpoint(),
                "--user",
                user.name(),
                "--tier",
                "pm:" + pool + ":32M"));
    assertThat(refused.exit()).as("%s", refused).isIn(1, 2);
    assertThat(refused.errorLines()).as("%s", refused).hasSize(1);
    assertThat(refused.err()).contains(pool.toString(), "permission denied");
    assertThat(pool).isEmptyFile();
    assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
  }

  @Test
  @OnRequest("cases")
  void umount_byTheUser_ends() {
    MountedPmfs mount = mount();
    assertThat(byUser("status", "--json").expect(0).out()).contains(mount.mountpoint().toString());
    byUser("umount", mount.mountpoint().toString()).expect(0);
    mount.awaitGone();
    mount.ended();
    assertThat(Mounts.at(mount.mountpoint())).isFalse();
  }

  @Test
  @OnRequest("cases")
  void status_byRoot_listsMountsOfUsers() {
    try (MountedPmfs mount = mount()) {
      assertThat(pmfs.run("status").expect(0).out())
          .contains(mount.mountpoint().toString())
          .contains("of user " + user.name());
    }
  }

  @Test
  @OnRequest("cases")
  void sigterm_toTheSupervisorAndToTheDaemon_unmounts() {
    for (boolean supervisor : new boolean[] {true, false}) {
      MountedPmfs mount = mount();
      long parent = ProcessHandle.of(mount.pid()).orElseThrow().parent().orElseThrow().pid();
      Command.run("kill", "-TERM", Long.toString(supervisor ? parent : mount.pid())).expect(0);
      Await.until("the supervisor ended", PATIENCE, () -> !MountedPmfs.runs(parent));
      mount.ended();
      assertThat(MountedPmfs.runs(mount.pid())).isFalse();
      assertThat(Mounts.at(mount.mountpoint())).isFalse();
    }
  }

  @Test
  @OnRequest("cases")
  void sigterm_toADaemonWithSeveralMountPoints_unmountsAll() {
    MountedPmfs mount = mount();
    List<Path> others = List.of(pmfs.directory("second"), pmfs.directory("third"));
    for (Path other : others) {
      user.own(other.toString());
      pmfs.run(pmfs.mountArguments(dataset.root(), other, "--user", user.name())).expect(0);
    }
    long parent = ProcessHandle.of(mount.pid()).orElseThrow().parent().orElseThrow().pid();
    Command.run("kill", "-TERM", Long.toString(mount.pid())).expect(0);
    Await.until("the supervisor ended", PATIENCE, () -> !MountedPmfs.runs(parent));
    mount.ended();
    assertThat(Mounts.at(mount.mountpoint())).isFalse();
    assertThat(others).noneMatch(Mounts::at);
  }

  @Test
  @OnRequest("cases")
  void foreground_servesUntilTerminated() throws Exception {
    Process process = pmfs.mountInForeground(dataset.root(), "--user", user.name());
    Await.until("status", PATIENCE, () -> pmfs.run("status", pmfs.mountpoint() + "").exit() == 0);
    user.run("diff", "-r", dataset.root().toString(), pmfs.mountpoint().toString()).expect(0);
    process.destroy();
    assertThat(process.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).isEqualTo(143);
    assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
  }

  /** The user could keep it, read what root types later, and type commands. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void processOfTheUser_hasNothingOfRootsTerminal(boolean isForeground) throws Exception {
    Path seen = Files.createFile(pmfs.directory("home").resolve("seen"));
    user.own(seen.toString());
    Path java = bed.scripts().resolve("java");
    String record = "fds=$(readlink /proc/$$/fd/*); echo $fds on $(ps -o tty= -p $$). >>" + seen;
    Files.writeString(
        java,
        "#!/bin/bash\n[ $EUID = 0 ] || { %s; }\nexec %s/bin/java \"$@\"\n"
            .formatted(record, System.getProperty("java.home")));
    Command.run("chmod", "755", java.toString()).expect(0);
    pmfs.environment("PMFS_JAVA", java.toString());
    List<String> words = new ArrayList<>(List.of("--user", user.name(), "--log-level", "info"));
    if (isForeground) {
      words.add("--foreground");
    }
    String[] line =
        pmfs.mountArguments(dataset.root(), pmfs.mountpoint(), words.toArray(String[]::new));
    String ctrlC = isForeground ? " mounted on " : "never";

    Command mounted = pmfs.runOnTerminal(TerminalIT.TERMINAL, List.of("24", "80", ctrlC), line);

    assertThat(mounted.out()).contains(" mounted on ");
    assertThat(Files.readString(seen)).contains(" on ?.").doesNotContain("/dev/pts", "/dev/tty");
    assertThat(mounted.exit()).as("%s", mounted).isEqualTo(isForeground ? 130 : 0);
    assertThat(Mounts.at(pmfs.mountpoint())).isEqualTo(!isForeground);
    if (!isForeground) {
      pmfs.run("umount", pmfs.mountpoint().toString()).expect(0);
    }
  }

  @Test
  @OnRequest("cases")
  void kill9_ofSupervisorAndDaemon_theNextMountAndUmountCleanUp() {
    mount().kill9();
    MountedPmfs second = mount();
    assertReadRight(second);
    second.kill9();
    pmfs.run("umount", second.mountpoint().toString()).expect(0);
    assertThat(Mounts.at(second.mountpoint())).isFalse();
  }

  @Test
  @OnRequest("cases")
  void kill9_ofTheSupervisorAlone_umountStillWorks() {
    MountedPmfs mount = mount();
    long parent = ProcessHandle.of(mount.pid()).orElseThrow().parent().orElseThrow().pid();
    Command.run("kill", "-KILL", Long.toString(parent)).expect(0);
    assertReadRight(mount);
    pmfs.run("umount", mount.mountpoint().toString()).expect(0);
    mount.ended();
    assertThat(Mounts.at(mount.mountpoint())).isFalse();
  }

  @Test
  void passthrough_withTheCapability_hasThatOneOnly() {
    try (MountedPmfs mount = mount("--read-mode", "passthrough", "--passthrough-capability")) {
      for (String set : List.of("CapPrm", "CapEff", "CapBnd")) {
        assertThat(status(mount.pid(), set)).as(set).isEqualTo(CAP_SYS_ADMIN);
      }
      assertThat(status(mount.pid(), "Uid").split("\\s+"))
          .containsOnly(Integer.toString(user.uid()));
      assertReadRight(mount);
      mount.awaitCopies(dataset.items().size());
      assertReadRight(mount);
      assertThat(mount.status().text("readMode")).isEqualTo("passthrough");
      // Who may attach to the daemon would have what it has.
      assertThat(user.run("ls", "-l", "/proc/" + mount.pid() + "/fd/0").exit()).isNotZero();
      assertThat(commandLine(mount.pid())).contains("-XX:+DisableAttachMechanism");
    }
  }

  private static String commandLine(long pid) {
    return Command.run("cat", "/proc/" + pid + "/cmdline").out();
  }

  @Test
  @OnRequest("cases")
  void passthrough_withoutTheCapability_isPageCacheAndSaysWhy() {
    try (MountedPmfs mount = mount("--read-mode", "passthrough")) {
      for (int round = 0; round < 2; round++) {
        assertReadRight(mount);
        assertThat(mount.status().text("readMode")).isEqualTo("page-cache");
        assertThat(mount.status().text("readModeReason")).contains("--passthrough-capability");
        long pid = mount.status().number("pid");
        Command.run("kill", "-KILL", Long.toString(pid)).expect(0);
        mount.awaitSuccessor(pid);
      }
    }
  }

  @Test
  void sessionFile_forgedByTheUser_movesRootToNothing() throws IOException {
    Path other = pmfs.scratch().tmpfs("other", "size=1m");
    Path forbidden = pmfs.directory("of-root").resolve("log");
    chmod(forbidden.resolveSibling(""), 0700);
    try (MountedPmfs mount = mount()) {
      Path runtime = pmfs.scratch().root().resolve("run-" + user.uid());
      // Not the session's settings beside it: without these it would wait for them for ever.
      try (var files = Files.newDirectoryStream(runtime, "session.????????")) {
        for (Path session : files) {
          Files.writeString(session, "page-cache\n" + forbidden + "\n" + other + "\n");
        }
      }
      long pid = mount.pid();
      for (int kill = 0; kill < 2; kill++) {
        Command.run("kill", "-KILL", Long.toString(pid)).expect(0);
        pid = mount.awaitSuccessor(pid);
      }
      assertReadRight(mount);
    }
    assertThat(forbidden).doesNotExist();
    assertThat(Mounts.at(other)).isTrue();
  }

  @Test
  void mountpoint_throughALinkToADirectoryOfRoots_isRefused() throws IOException {
    Path link = pmfs.directory("home").resolve("link");
    Files.createSymbolicLink(link, pmfs.directory("empty"));
    user.own(link.toString());
    Command refused = pmfs.run(pmfs.mountArguments(dataset.root(), link, "--user", user.name()));
    assertThat(refused.expect(2).err()).contains("symbolic link");
    assertThat(Mounts.at(pmfs.directory("empty"))).isFalse();
  }

  @Test
  @OnRequest("cases")
  void mountpoint_withOddNames_isServedAndGoesOn() {
    Path mountpoint = pmfs.directory("a b,c\\d\ne=f/mnt");
    Path source = pmfs.directory("s,o\\040 u\nr=c");
    Dataset odd = Dataset.create(source, Dataset.sizes(2, 1000));
    pmfs.run(pmfs.mountArguments(odd.root(), mountpoint, "--user", user.name())).expect(0);
    String below = mountpoint.toString();
    user.run("diff", "-r", source.toString(), below).expect(0);
    Status status = Status.parse(pmfs.run("status", below, "--json").expect(0).out());
    Command.run("kill", "-KILL", Long.toString(status.number("pid"))).expect(0);
    user.run("diff", "-r", source.toString(), below).expect(0);
    pmfs.run("umount", below).expect(0);
  }

  @Test
  @OnRequest("cases")
  void refusals_areOneLine() {
    String source = dataset.root().toString();
    String mountpoint = pmfs.mountpoint().toString();
    String name = user.name();
    assertRefused("no such user", "--user", "no-such-user", source, mountpoint);
    assertRefused("no user name", "--user", "", source, mountpoint);
    assertRefused("is root", "--user", "root", source, mountpoint);
    assertRefused("--bridge jnr", "--user", name, "--bridge", "jnr", source, mountpoint);
    assertRefused("not empty", "--user", name, source, source);
    assertRefused("no MOUNTPOINT", "--user", name);
    Command byUser = byUser("mount", "--user", name, source, mountpoint);
    assertThat(byUser.expect(2).errorLines()).singleElement().asString().contains("only root");
    try (MountedPmfs mount = mount()) {
      assertThat(mount.status().text("user")).isEqualTo(name);
      assertRefused("already mounted", "--user", name, source, mountpoint);
    }
  }

  private void assertRefused(String why, String... arguments) {
    List<String> all = new ArrayList<>(List.of("mount"));
    all.addAll(List.of(arguments));
    Command refused = pmfs.run(all.toArray(String[]::new)).expect(2);
    assertThat(refused.errorLines()).singleElement().asString().startsWith("pmfs: ").contains(why);
  }

  @Test
  @OnRequest("cases")
  void stage_directoryThatTheUserMayNotRead_isReportedToUserAndRoot() {
    Path closed = dataset.root().resolve("closed");
    Command.run("mkdir", "-m", "0700", closed.toString()).expect(0);
    Command.run("touch", closed.resolve("file").toString()).expect(0);
    try (MountedPmfs mount = mount()) {
      Command staged = byUser("stage", mount.mountpoint().toString()).expect(4);

      assertThat(staged.out()).contains("staged 20 files, 1 file failed");
      assertThat(staged.errorLines()).hasSize(1);
      assertThat(staged.err()).startsWith("pmfs: closed: ");
      assertThat(pmfs.run("stage", "--check", mount.mountpoint().toString()).expect(4).out())
          .contains("20 files in the tiers, 1 file missing or stale");
      assertPowerless(mount.pid());
    }
  }

  /** Root mounts once more for the user. */
  private Command join(Path mountpoint, String... options) {
    List<String> all = new ArrayList<>(List.of("--user", user.name()));
    all.addAll(Arrays.asList(options));
    return pmfs.run(pmfs.mountArguments(dataset.root(), mountpoint, all.toArray(String[]::new)));
  }

  @Test
  @OnRequest("cases")
  void mount_again_sharesTheDaemonAndEndsWithTheLast() throws Exception {
    try (MountedPmfs mount = mount()) {
      Path second = pmfs.directory("jobs'/2");
      pmfs.environment("PMFS_SERVED_JOB", "42");
      Command joined = join(second).expect(0);
      assertThat(joined.out()).contains("shares the daemon of ");
      assertThat(Mounts.options(second)).contains("ro", "nosuid", "nodev", "user_id=" + user.uid());
      assertThat(pmfs.scratch().root().resolve("run")).isEmptyDirectory();
      user.run("diff", "-r", dataset.root().toString(), second.toString()).expect(0);
      assertThat(Posix.outcome(Posix.statOutcome(second + "/x", 0))).isEqualTo("EACCES");
      for (Command status :
          List.of(
              byUser("status", "--json", second + ""), pmfs.run("status", "--json", second + ""))) {
        Status seen = Status.parse(status.expect(0).out());
        assertThat(seen.number("pid")).isEqualTo(mount.pid());
        assertThat(seen.text("holders.1.mountpoint")).isEqualTo(second.toString());
        assertThat(seen.text("holders.1.job")).isEqualTo("42");
      }
      long killed = mount.daemon();
      mount.killDaemon();
      user.run("diff", "-r", dataset.root().toString(), second.toString()).expect(0);
      Await.until("a successor", PATIENCE, () -> mount.daemon() != killed && mount.daemon() != 0);

      Process reader = user.hold(second.resolve(dataset.items().get(1).name()));
      try {
        byUser("umount", mount.mountpoint().toString()).expect(0);
        user.run("diff", "-r", dataset.root().toString(), second.toString()).expect(0);
        join(mount.mountpoint()).expect(0);
        pmfs.run("umount", mount.mountpoint().toString()).expect(0);
        assertThat(byUser("umount", second.toString()).exit()).isEqualTo(1);
      } finally {
        reader.destroyForcibly().waitFor();
      }
      byUser("umount", second.toString()).expect(0);
      assertThat(Mounts.below(pmfs.scratch().root())).isEmpty();
      mount.ended();
    }
  }

  @Test
  @OnRequest("cases")
  void mount_againWithAllowOther_isRefused() {
    try (MountedPmfs mount = mount()) {
      Path second = pmfs.directory("second");
      Command refused = join(second, "--allow-other");
      refused.expect(2);
      assertThat(refused.err()).contains("--allow-other is true here, and false for the mount on ");
      assertThat(Mounts.at(second)).isFalse();
      assertReadRight(mount);
    }
  }

  /** The copies are the first user's own. */
  @Test
  void mount_forAnotherUser_doesNotShare() {
    try (MountedPmfs mount = mount()) {
      chmod(dataset.root(), 0755);
      Path second = pmfs.directory("second");
      Command refused = pmfs.run(pmfs.mountArguments(dataset.root(), second, "--user", "nobody"));
      refused.expect(2);
      assertThat(refused.err()).contains(pmfs.tier().toString());
      Path tier = pmfs.directory("tier2");
      Command.run("chown", "nobody", tier.toString()).expect(0);
      Command apart =
          pmfs.run(
              pmfs.mountArguments(
                  dataset.root(), second, "--user", "nobody", "--tier", "ssd:" + tier));
      apart.expect(0);
      assertThat(apart.out()).doesNotContain("shares");
      pmfs.run("umount", second.toString()).expect(0);
      assertReadRight(mount);
    }
  }

  @Test
  @OnRequest("cases")
  void linger_afterTheLastUnmount_isJoinedAndEndsByTheUser() throws IOException {
    try (MountedPmfs mount = mount("--linger", "10m")) {
      Path own = pmfs.scratch().root().resolve("run");
      byUser("umount", mount.mountpoint().toString()).expect(0);
      List<String> kept = Mounts.below(own);
      assertThat(kept).hasSize(1);
      join(mount.mountpoint()).expect(0);
      assertReadRight(mount);
      Command joined = byUser("status", "--json", mount.mountpoint().toString()).expect(0);
      assertThat(Status.parse(joined.out()).number("pid")).isEqualTo(mount.pid());
      byUser("umount", mount.mountpoint().toString()).expect(0);
      mount.killDaemon();
      Await.until("it is listed", PATIENCE, () -> byUser("status").out().contains("kept without"));
      byUser("umount", kept.get(0)).expect(0);
      mount.ended();
      assertThat(Mounts.below(pmfs.scratch().root())).isEmpty();
      assertThat(own).isEmptyDirectory();
    }
  }

  @Test
  @OnRequest("cases")
  void linger_withoutASupervisor_isSweptByTheNextMount() throws IOException {
    Path own = pmfs.scratch().root().resolve("run");
    try (MountedPmfs mount = mount("--linger", "10m")) {
      byUser("umount", mount.mountpoint().toString()).expect(0);
      mount.kill9();
    }
    assertThat(Mounts.below(own)).hasSize(1);
    try (MountedPmfs mount = mount("--linger", "1s")) {
      assertThat(Mounts.below(own)).hasSize(1);
      assertReadRight(mount);
      pmfs.run("umount", mount.mountpoint().toString()).expect(0);
      Await.until("it ended", PATIENCE, () -> !mount.isSupervised());
    }
    assertThat(own).isEmptyDirectory();
  }
}
