package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Mount namespaces beside that of the mount, as containers and services with PrivateTmp have them:
 * each has a copy of the mounts that were there when it was made.
 */
final class MountNamespaceIT {
  private static final Duration LONG = Duration.ofMinutes(2);

  /** A new namespace must not keep the mounts of other tests, only that at $0. */
  private static final String ALONE =
      "awk -v own=\"$0\" '$0 ~ / fuse.pmfs / && $5 != own { print $5 }' /proc/self/mountinfo"
          + " | xargs -r -n 1 umount -i -l; ";

  @Installed(byRoot = true)
  private Installation pmfs;

  private Dataset dataset;
  private final List<Process> others = new ArrayList<>();

  @BeforeEach
  void makeSource() {
    Machine.requireRoot();
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(5, 10_000));
  }

  @AfterEach
  void endOthers() throws InterruptedException {
    for (Process other : others) {
      other.destroyForcibly().waitFor();
    }
  }

  /** A process in a namespace of its own; returns when it is there. */
  private Process namespace(String propagation) throws IOException {
    return namespace(propagation, "exec sleep 1000");
  }

  private Process namespace(String propagation, String last) throws IOException {
    Process process =
        new ProcessBuilder(
                "unshare",
                "--mount",
                "--propagation",
                propagation,
                "sh",
                "-c",
                ALONE + "echo there; " + last,
                pmfs.mountpoint().toString())
            .redirectError(Redirect.DISCARD)
            .start();
    others.add(process);
    assertThat(process.inputReader().readLine()).isEqualTo("there");
    return process;
  }

  private Command inNamespaceOf(Process process, String... command) {
    List<String> line =
        new ArrayList<>(List.of("nsenter", "-t", Long.toString(process.pid()), "--mount"));
    line.addAll(List.of(command));
    return Command.run(line.toArray(String[]::new));
  }

  private Command compare(Process process) {
    return inNamespaceOf(
        process, "diff", "-r", dataset.root().toString(), pmfs.mountpoint().toString());
  }

  private static void awaitEnd(long pid) {
    Await.until(
        "pid " + pid + " has ended",
        LONG,
        () -> ProcessHandle.of(pid).map(process -> !process.isAlive()).orElse(true));
  }

  @Test
  void umount_whileAnotherNamespaceHasTheMount_endsAtOnceAndSaysWho() throws IOException {
    MountedPmfs mount = pmfs.mount(dataset.root());
    Process other = namespace("private");
    String who = "pid " + other.pid() + " (sleep)";
    String place = pmfs.mountpoint().toString();

    long begin = System.nanoTime();
    Command umount = pmfs.run("umount", place).expect(0);
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(30));
    mount.ended();

    assertThat(umount.out() + umount.err())
        .contains("unmounted here, but not in other mount namespaces: " + who);
    assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
    compare(other).expect(0);
    Await.until(
        "status names it",
        LONG,
        () -> pmfs.run("status").out().contains(who + " has the mount in another namespace"));
    begin = System.nanoTime();
    Command again = pmfs.run(pmfs.mountArguments(dataset.root(), pmfs.mountpoint())).expect(6);
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(25));
    assertThat(again.err()).contains("serves it in other mount namespaces: " + who);
    compare(other).expect(0);

    other.destroyForcibly();
    awaitEnd(mount.pid());
    try (MountedPmfs next = pmfs.mount(dataset.root())) {
      dataset.assertEqualBelow(next.mountpoint());
    }
  }

  @Test
  void umount_thatOtherNamespacesFollow_endsTheDaemon() throws IOException {
    pmfs.scratch().shareMounts();
    MountedPmfs mount = pmfs.mount(dataset.root());
    Process other = namespace("slave");
    compare(other).expect(0);

    Command umount = pmfs.run("umount", pmfs.mountpoint().toString()).expect(0);
    mount.ended();

    assertThat(umount.out() + umount.err()).doesNotContain("namespaces");
    awaitEnd(mount.pid());
  }

  /** The kernel refuses as if the file were open here, where no process has it. */
  @Test
  @OnRequest("cases")
  void umount_whileANamespaceThatFollowsHasAFileOpen_saysWho() throws IOException {
    pmfs.scratch().shareMounts();
    MountedPmfs mount = pmfs.mount(dataset.root());
    String file = mount.path(dataset.items().get(0).name());
    Process other = namespace("slave", "exec sleep 1000 <'" + file + "'");
    String place = pmfs.mountpoint().toString();

    Await.until(
        "the file is open",
        LONG,
        () -> Command.run("readlink", "/proc/" + other.pid() + "/fd/0").out().contains(file));
    Command busy = pmfs.run("umount", place).expect(1);

    assertThat(busy.err()).contains("busy: ", "pid " + other.pid() + " (sleep)");
    other.destroyForcibly();
    Await.until("unmounted", LONG, () -> pmfs.run("umount", place).exit() == 0);
    mount.ended();
    awaitEnd(mount.pid());
  }

  /** As systemd makes it for a service: what is below /tmp is covered, and follows all the same. */
  @Test
  void umount_ofAMountThatAPrivateTmpCovers_endsTheDaemon() throws IOException {
    pmfs.scratch().shareMounts();
    Path covered = pmfs.scratch().root();
    String directory = pmfs.directory("private").toString();
    MountedPmfs mount = pmfs.mount(dataset.root());
    Process other =
        namespace(
            "slave",
            "mount --bind '%s' '%s' && mount --make-rshared / && exec sleep 1000"
                .formatted(directory, covered));
    Await.until(
        "covered", LONG, () -> inNamespaceOf(other, "ls", covered.toString()).out().isEmpty());

    Command umount = pmfs.run("umount", pmfs.mountpoint().toString()).expect(0);
    mount.ended();

    assertThat(umount.out() + umount.err()).doesNotContain("namespaces");
    awaitEnd(mount.pid());
  }

  /** The directory of the mount goes with the run, and with it what others have mounted there. */
  @Test
  @OnRequest("cases")
  void run_whoseCommandLeavesANamespace_losesNoTime() {
    long begin = System.nanoTime();
    Command ran =
        pmfs.run(
            "run",
            "--source",
            dataset.root().toString(),
            "--keep-free",
            "0",
            "--tier",
            "ssd:" + pmfs.tier(),
            "--",
            "bash",
            "-c",
            "unshare --mount --propagation private sh -c '"
                + ALONE.replace("'", "'\\''")
                + "exec sleep 1000' \"$PMFS_MOUNT\" <&- >/dev/null 2>&1 & echo $!;"
                + " until grep -qx sleep /proc/$!/comm; do :; done; exit 3");
    ran.expect(3);
    ProcessHandle.of(Long.parseLong(ran.out().strip())).ifPresent(ProcessHandle::destroyForcibly);

    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(40));
    assertThat(ran.err()).contains("not in other mount namespaces");
  }

  @Test
  void mount_inAPrivateNamespace_endsWithIt() {
    List<String> line =
        new ArrayList<>(
            List.of(
                "unshare",
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                ALONE + "\"$@\"",
                "sh"));
    line.add(Installation.launcherOfCheckout().toString());
    line.addAll(List.of(pmfs.mountArguments(dataset.root(), pmfs.mountpoint())));
    Command mounted = Command.run(pmfs.environment(), LONG, line).expect(0);
    long daemon =
        Long.parseLong((mounted.out() + mounted.err()).replaceAll("(?s).*\\(pid (\\d+), .*", "$1"));
    long supervisor = ProcessHandle.of(daemon).orElseThrow().parent().orElseThrow().pid();

    awaitEnd(daemon);
    awaitEnd(supervisor);
    Path sockets = pmfs.scratch().root().resolve("run");
    assertThat(Installation.files(sockets)).noneMatch(file -> file.toString().endsWith(".sock"));
  }
}
