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
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The mount point is at home/d/mnt, and its user, at the worst moment, makes home/d a link to a
 * directory where something else is mounted: root must neither unmount nor change that. Programs
 * that root's scripts call stand in for luck: they change the names, then do their work.
 */
final class SwappedNamesIT {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private AccountBed bed;
  private Installation pmfs;
  private Account user;
  private Dataset dataset;
  private Path home;
  private Path mountpoint;
  private Path canary;
  private Path calls;

  @BeforeEach
  void install() throws IOException {
    bed = AccountBed.ofRoot();
    pmfs = bed.pmfs();
    user = bed.user();
    home = pmfs.directory("home");
    mountpoint = pmfs.directory("home/d/mnt");
    for (String name : List.of("home", "home/d", "home/d/mnt", "tier")) {
      user.own(pmfs.directory(name).toString());
    }
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(5, 10_000));
    canary = pmfs.scratch().tmpfs("canary/mnt", "size=1m");
    calls = Files.createFile(pmfs.directory("bin").resolve("calls"));
    Files.setPosixFilePermissions(calls, PosixFilePermissions.fromString("rw-rw-rw-"));
    for (String name : List.of("mount", "umount", "stat")) {
      stand(name);
    }
    pmfs.environment("PATH", pmfs.directory("bin") + ":" + System.getenv("PATH"));
  }

  /** Takes the place of a program; what it does besides may follow. */
  private void stand(String name) throws IOException {
    Path program = pmfs.directory("bin").resolve(name);
    String real = Command.run("which", name).expect(0).out().strip();
    Files.writeString(
        program,
        """
        #!/bin/bash
        echo "%1$s $*" >>%2$s
        [ ! -e "$0.before" ] || . "$0.before"
        %3$s "$@"
        status=$?
        [ ! -e "$0.after" ] || . "$0.after"
        exit $status
        """
            .formatted(name, calls, real));
    Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  /**
   * From now on a call whose arguments match a pattern changes the names.
   *
   * @param when before or after it does its work
   */
  private void swapAt(String program, String when, String pattern) throws IOException {
    Files.writeString(
        pmfs.directory("bin").resolve(program + "." + when),
        """
        case " $* " in %1$s)
          [ -L %2$s/d ] || { mv %2$s/d %2$s/moved && ln -s %3$s %2$s/d; } ;;
        esac
        """
            .formatted(pattern, home, canary.getParent()));
  }

  private void assertSwapped() {
    assertThat(home.resolve("d")).as("the test swapped the names").isSymbolicLink();
  }

  private void swapBack() throws IOException {
    for (String program : List.of("mount", "umount", "stat")) {
      for (String when : List.of("before", "after")) {
        Files.deleteIfExists(pmfs.directory("bin").resolve(program + "." + when));
      }
    }
    if (Files.isSymbolicLink(home.resolve("d"))) {
      Files.delete(home.resolve("d"));
      Files.move(home.resolve("moved"), home.resolve("d"));
    }
  }

  @AfterEach
  void remove() throws IOException {
    if (bed == null) {
      return;
    }
    try {
      swapBack();
      for (String left : Mounts.below(home)) {
        Command.run("umount", "-l", left);
      }
    } finally {
      bed.close();
    }
  }

  private Command mount(Path where, String... options) {
    List<String> all = new ArrayList<>(List.of("--user", user.name()));
    all.addAll(List.of(options));
    return pmfs.run(pmfs.mountArguments(dataset.root(), where, all.toArray(String[]::new)));
  }

  /** By a daemon of root's, with a tier of root's. */
  private Command mountOfRoots(String... options) {
    List<String> all = new ArrayList<>(List.of("--tier", tier("")));
    all.addAll(List.of(options));
    return pmfs.run(pmfs.mountArguments(dataset.root(), mountpoint, all.toArray(String[]::new)));
  }

  private String tier(String runAs) {
    return "ssd:" + (runAs.isEmpty() ? pmfs.directory("roots") : pmfs.tier());
  }

  private Command byUser(String... arguments) {
    List<String> line = new ArrayList<>(List.of(bed.scripts().resolve("pmfs").toString()));
    line.addAll(List.of(arguments));
    Path runtime = pmfs.scratch().root().resolve("run-" + user.uid());
    return user.run(Map.of("PMFS_RUNTIME_DIR", runtime.toString()), line.toArray(String[]::new));
  }

  private long daemon() {
    String json = pmfs.run("status", "--json", mountpoint.toString()).expect(0).out();
    return Status.parse(json).number("pid");
  }

  private void killSupervisorAndDaemon() {
    long pid = daemon();
    long parent = ProcessHandle.of(pid).orElseThrow().parent().orElseThrow().pid();
    for (long process : new long[] {parent, pid}) {
      Command.run("kill", "-KILL", Long.toString(process)).expect(0);
    }
    Await.until("no daemon", PATIENCE, () -> !MountedPmfs.runs(pid));
  }

  private void assertCanaryIsAsBefore() {
    assertThat(Mounts.at(canary)).as("what was mounted elsewhere still is").isTrue();
    assertThat(Mounts.options(canary)).startsWith("rw,").doesNotContain("noexec");
  }

  private void awaitNothingMounted() {
    Await.until(() -> Mounts.below(home).toString(), PATIENCE, () -> Mounts.below(home).isEmpty());
  }

  @Test
  @OnRequest("cases")
  void mount_namesSwappedWhileAStaleMountIsAsked_unmountsNothingElse() throws IOException {
    mount(mountpoint).expect(0);
    killSupervisorAndDaemon();
    swapAt("stat", "after", "*' -f '*");

    Command refused = mount(mountpoint);

    assertSwapped();
    assertCanaryIsAsBefore();
    assertThat(refused.expect(1).errorLines()).singleElement().asString().contains("stale mount");
    swapBack();
    assertThat(mount(mountpoint).expect(0).out()).contains("removed a stale mount");
    pmfs.run("umount", mountpoint.toString()).expect(0);
  }

  @Test
  void mount_namesSwappedWhenMounted_unmountsNothingElse() throws IOException {
    swapAt("mount", "after", "*fuse.pmfs*");

    mount(mountpoint, "--ready-timeout", "5s");

    assertSwapped();
    assertCanaryIsAsBefore();
    assertThat(Mounts.below(home)).containsExactly(home.resolve("moved/mnt").toString());
    swapBack();
    pmfs.run("umount", mountpoint.toString()).expect(0);
    awaitNothingMounted();
  }

  @Test
  @OnRequest("cases")
  void umount_byTheUser_callsNoProgramByName() throws IOException {
    for (String how : List.of("--grace", "--lazy")) {
      mount(mountpoint).expect(0);
      swapAt("umount", "before", "*");
      List<String> line = new ArrayList<>(List.of("umount", how));
      if (how.equals("--grace")) {
        line.add("1s");
      }
      line.add(mountpoint.toString());

      byUser(line.toArray(String[]::new));

      assertCanaryIsAsBefore();
      awaitNothingMounted();
      swapBack();
    }
  }

  @Test
  void umount_ofAStaleMount_callsNoProgramByName() throws IOException {
    mount(mountpoint).expect(0);
    killSupervisorAndDaemon();
    swapAt("umount", "before", "*");

    pmfs.run("umount", mountpoint.toString()).expect(0);

    assertCanaryIsAsBefore();
    awaitNothingMounted();
  }

  @Test
  void crashLoop_ofADaemonOfRoots_unmountsOurs() throws IOException {
    pmfs.environment("PMFS_CRASH_LIMIT", "0");
    mountOfRoots().expect(0);
    swapAt("umount", "before", "*");

    Command.run("kill", "-KILL", Long.toString(daemon())).expect(0);

    awaitNothingMounted();
    assertCanaryIsAsBefore();
  }

  private Command helper(Path where, String options) {
    Path helper = bed.scripts().resolve("mount.pmfs");
    Path original = Installation.launcherOfCheckout().resolveSibling("mount.pmfs");
    Command.run("cp", original.toString(), helper.toString()).expect(0);
    String all = options + "noexec,keep_free=0,tier=" + tier(options);
    return pmfs.program(
        Map.of(),
        PATIENCE,
        helper.toString(),
        dataset.root().toString(),
        where.toString(),
        "-o",
        all);
  }

  @Test
  @OnRequest("cases")
  void mountHelper_noexec_isThatOfTheMountAlone() throws IOException {
    swapAt("mount", "before", "*remount*");
    for (String options : List.of("run-as=" + user.name() + ",", "")) {
      helper(mountpoint, options).expect(0);

      assertCanaryIsAsBefore();
      assertThat(Mounts.options(mountpoint)).startsWith("ro,nosuid,nodev,noexec");
      pmfs.run("umount", "--purge", mountpoint.toString()).expect(0);
      awaitNothingMounted();
    }
  }

  @Test
  @OnRequest("cases")
  void mountHelper_noexecOfAFurtherMount_isThatOfTheMountAlone() throws IOException {
    Path second = pmfs.directory("second");
    for (String options : List.of("run-as=" + user.name() + ",", "")) {
      (options.isEmpty() ? mountOfRoots() : mount(mountpoint)).expect(0);
      Command joined = helper(second, options).expect(0);

      assertThat(joined.out()).contains("shares the daemon");
      assertThat(Mounts.options(second)).startsWith("ro,nosuid,nodev,noexec");
      assertThat(Mounts.options(mountpoint)).doesNotContain("noexec");
      pmfs.run("umount", second.toString()).expect(0);
      pmfs.run("umount", "--purge", mountpoint.toString()).expect(0);
      awaitNothingMounted();
    }
  }

  /** libfuse 2 goes by names. */
  @Test
  void mount_byLibfuseOfRoots_isRefusedBelowADirectoryOfAUser() {
    Command refused = mountOfRoots("--bridge", "jnr");

    assertThat(refused.expect(1).err()).contains("not safe for root with --bridge jnr");
    assertThat(Mounts.at(mountpoint)).isFalse();
  }

  /** Of all that root does for a user: mount, keep, join, unmount, find a stale mount. */
  @Test
  void programsOfRoot_getNoNameBelowADirectoryOfTheUsers() throws IOException {
    Path second = pmfs.directory("home/d/second");
    user.own(second.toString());
    mount(mountpoint, "--linger", "10m").expect(0);
    mount(second).expect(0);
    byUser("umount", second.toString()).expect(0);
    byUser("umount", mountpoint.toString()).expect(0);
    mount(mountpoint).expect(0);
    byUser("umount", mountpoint.toString()).expect(0);
    for (String kept : Mounts.below(pmfs.scratch().root().resolve("run"))) {
      byUser("umount", kept).expect(0);
    }
    mount(mountpoint).expect(0);
    killSupervisorAndDaemon();
    mount(mountpoint).expect(0);
    pmfs.run("umount", mountpoint.toString()).expect(0);

    List<String> all = Files.readAllLines(calls);
    assertThat(all).anyMatch(call -> call.startsWith("mount ") && call.contains("--bind"));
    assertThat(all).anyMatch(call -> call.startsWith("umount "));
    // stat looks at the mount as the user.
    assertThat(all)
        .filteredOn(call -> !call.startsWith("stat "))
        .noneMatch(call -> call.contains(home.toString()));
  }
}
