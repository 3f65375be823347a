package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Daemons that die, hang or are replaced while files are read, open and mapped: nobody notices more
 * than a pause.
 */
@ParameterizedClass
@EnumSource(names = {"PAGE_CACHE", "PASSTHROUGH"})
final class SupervisorIT {
  private static final int KILLS = 2;
  private static final Duration LIFETIME = Duration.ofMinutes(2);
  private static final Duration SUCCESSOR = Duration.ofSeconds(60);

  @Parameter BridgeMode mode;

  @Installed(byRoot = true)
  private Installation pmfs;

  private Dataset dataset;

  @BeforeEach
  void makeSource() {
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(60, 150_000));
  }

  private MountedPmfs mount() {
    return mode.mount(pmfs, LIFETIME, dataset.root());
  }

  private List<Dataset.Item> held() {
    return dataset.items().subList(0, 40);
  }

  /** Readers whose files had copies when they opened them. */
  private Readers readersOf(MountedPmfs mount) {
    dataset.assertEqualBelow(mount.mountpoint());
    mount.awaitCopies(dataset.items().size());
    Readers readers = new Readers(dataset, mount.mountpoint(), 4, held());
    readers.awaitMore(50);
    return readers;
  }

  @Test
  void kill9_underReaders_noReadFailsAndNoByteIsWrong() {
    try (MountedPmfs mount = mount();
        Readers early =
            new Readers(dataset, mount.mountpoint(), 2, dataset.items().subList(0, 20));
        Readers late = readersOf(mount)) {
      for (int kill = 0; kill < KILLS; kill++) {
        long pid = mount.daemon();
        signal("KILL", pid);
        mount.awaitSuccessor(pid);
        early.awaitMore(50);
        late.awaitMore(50);
      }
      early.assertNoFailures();
      late.assertNoFailures();
    }
  }

  @Test
  @OnRequest("cases")
  void kill9_inForeground_readsGoOn() throws InterruptedException {
    mode.runsInEveryRunIf(BridgeMode.PAGE_CACHE);
    Path mountpoint = pmfs.mountpoint();
    Process process = pmfs.mountInForeground(dataset.root(), mode.with());
    try {
      long pid = daemonOf(mountpoint);
      signal("KILL", pid);
      dataset.assertEqualBelow(mountpoint);
      assertThat(daemonOf(mountpoint)).isNotEqualTo(pid);
      process.destroy();
      assertThat(process.waitFor(SUCCESSOR.toSeconds(), TimeUnit.SECONDS)).isTrue();
      assertThat(process.exitValue()).isEqualTo(143);
      assertThat(Mounts.at(mountpoint)).isFalse();
    } finally {
      process.destroyForcibly();
    }
  }

  private long daemonOf(Path mountpoint) {
    String json = pmfs.run("status", "--json", mountpoint.toString()).expect(0).out();
    return Status.parse(json).number("pid");
  }

  /**
   * Then it finds two of its children ended at once, looks again without a pause, and ends a child
   * that has only just begun. That child has not forgotten yet what its parent does at its end.
   */
  @Test
  @OnRequest("cases")
  void kill9_whileTheSupervisorIsStopped_isGoneOnWith() throws Exception {
    mode.runsInEveryRunIf(BridgeMode.PAGE_CACHE);
    killWhileTheSupervisorIsStopped(KILLS);
  }

  @Test
  @OnRequest(value = "modes", what = "the same several times")
  void kill9_whileTheSupervisorIsStoppedAgainAndAgain_isGoneOnWith() throws Exception {
    killWhileTheSupervisorIsStopped(4);
  }

  private void killWhileTheSupervisorIsStopped(int kills) throws Exception {
    pmfs.environment("PMFS_CRASH_LIMIT", "100");
    try (MountedPmfs mount = mount();
        Readers readers = readersOf(mount)) {
      long supervisor = ProcessHandle.of(mount.daemon()).orElseThrow().parent().orElseThrow().pid();
      for (int kill = 0; kill < kills; kill++) {
        long pid = mount.daemon();
        signal("STOP", supervisor);
        signal("KILL", pid);
        Thread.sleep(2_500);
        signal("CONT", supervisor);
        mount.awaitSuccessor(pid);
        readers.awaitMore(20);
      }
      readers.assertNoFailures();
    }
  }

  @Test
  @OnRequest("cases")
  void stop_ofTheDaemon_isNoticedAndItIsReplaced() {
    mode.runsInEveryRunIf(BridgeMode.PASSTHROUGH);
    pmfs.environment("PMFS_WATCHDOG", "3");
    try (MountedPmfs mount = mount();
        Readers readers = readersOf(mount)) {
      long pid = mount.daemon();
      signal("STOP", pid);
      mount.awaitSuccessor(pid);
      readers.awaitMore(50);
      readers.assertNoFailures();
    }
  }

  /** The daemon lives and has its heartbeat; but who is to answer hangs. */
  @Test
  @OnRequest("cases")
  void lockUp_ofTheWorkers_isNoticedAndTheirStacksAreInTheLog() throws IOException {
    mode.runsInEveryRunIf(BridgeMode.PAGE_CACHE);
    pmfs.environment("PMFS_WATCHDOG", "4");
    try (MountedPmfs mount = mount();
        Readers readers = readersOf(mount)) {
      long pid = mount.daemon();
      try (HeldThreads held = new HeldThreads(pid, "fuse-")) {
        assertThat(held).isNotNull();
        mount.awaitSuccessor(pid);
      }
      readers.awaitMore(50);
      readers.assertNoFailures();
      assertThat(Files.readString(Path.of(mount.status().text("logFile"))))
          .containsOnlyOnce("(pid " + pid + ") does not answer: its threads follow")
          .contains("Full thread dump", "\"fuse-1\"");
    }
  }

  /** The heartbeat is the time of a file: it changes, whatever time it is. */
  @Test
  @OnRequest("cases")
  void clock_thatIsSet_hasNoDaemonReplaced() throws IOException {
    mode.runsInEveryRunIf(BridgeMode.PAGE_CACHE);
    pmfs.environment("PMFS_WATCHDOG", "3");
    try (MountedPmfs mount = mount()) {
      long pid = mount.daemon();
      Path session = session();
      long end = System.nanoTime() + Duration.ofSeconds(10).toNanos();
      for (int i = 0; System.nanoTime() < end; i++) {
        Files.setLastModifiedTime(session, FileTime.fromMillis(i));
        assertThat(mount.daemon()).isEqualTo(pid);
      }
    }
  }

  private Path session() throws IOException {
    try (DirectoryStream<Path> found =
        Files.newDirectoryStream(pmfs.scratch().root().resolve("run"), "session.????????")) {
      return found.iterator().next();
    }
  }

  /** Not a crash loop: what is missing may come back, and readers wait for it. */
  @Test
  void refusal_ofSuccessors_isTriedAgainAndSaidInTheLog() throws IOException {
    mode.runsInEveryRunIf(BridgeMode.PAGE_CACHE);
    Path java = pmfs.directory("java").resolve("java");
    Path real = Path.of(System.getProperty("java.home"), "bin", "java");
    Files.createSymbolicLink(java, real);
    pmfs.environment("PMFS_JAVA", java.toString());
    pmfs.environment("PMFS_CRASH_LIMIT", "1");
    try (MountedPmfs mount = mount();
        Readers readers = readersOf(mount)) {
      Path log = Path.of(mount.status().text("logFile"));
      long pid = mount.daemon();
      Files.delete(java);
      signal("KILL", pid);
      Await.until(
          () -> "a third try; the log: " + read(log),
          SUCCESSOR,
          () -> read(log).contains("trying another in 4 s"));
      assertThat(Mounts.at(mount.mountpoint())).isTrue();
      assertThat(read(log))
          .contains(java + ": not an executable file", "could not continue (status 5)")
          .containsOnlyOnce("the daemon died");
      Files.createSymbolicLink(java, real);
      mount.awaitSuccessor(pid);
      readers.awaitMore(50);
      readers.assertNoFailures();
    }
  }

  @Test
  void sigterm_whileTheNextDaemonStarts_unmounts() throws IOException {
    mode.runsInEveryRunIf(BridgeMode.PAGE_CACHE);
    Path java = pmfs.directory("java").resolve("java");
    Path real = Path.of(System.getProperty("java.home"), "bin", "java");
    Files.createSymbolicLink(java, real);
    pmfs.environment("PMFS_JAVA", java.toString());
    MountedPmfs mount = mount();
    long pid = mount.daemon();
    ProcessHandle supervisor = ProcessHandle.of(pid).flatMap(ProcessHandle::parent).orElseThrow();
    Path started = pmfs.directory("java").resolve("started");
    String slow =
        "#!/bin/sh\ncase \"$*\" in *' mount '*) touch %s; exec sleep 60 ;; esac\nexec %s \"$@\"\n"
            .formatted(started, real);
    Path next = Files.writeString(java.resolveSibling("next"), slow);
    Files.setPosixFilePermissions(next, PosixFilePermissions.fromString("rwxr-xr-x"));
    Files.move(next, java, StandardCopyOption.ATOMIC_MOVE);
    signal("KILL", pid);
    Await.until("the next daemon starts", SUCCESSOR, () -> Files.exists(started));

    signal("TERM", supervisor.pid());

    Await.until("the supervisor's end", SUCCESSOR, () -> !supervisor.isAlive());
    assertThat(Mounts.at(mount.mountpoint())).isFalse();
  }

  @Test
  void sigterm_whileTheDaemonIsStopped_unmounts() {
    mode.runsInEveryRunIf(BridgeMode.PAGE_CACHE);
    pmfs.environment("PMFS_WATCHDOG", "3");
    MountedPmfs mount = mount();
    long pid = mount.daemon();
    ProcessHandle supervisor = ProcessHandle.of(pid).flatMap(ProcessHandle::parent).orElseThrow();
    signal("STOP", pid);

    signal("TERM", supervisor.pid());

    Await.until("the supervisor's end", SUCCESSOR, () -> !supervisor.isAlive());
    assertThat(Mounts.at(mount.mountpoint())).isFalse();
  }

  private static String read(Path file) {
    return new String(Dataset.read(file), UTF_8);
  }

  @Test
  void upgrade_underReaders_startsAnotherDaemonThatStoppedCleanlyBefore() {
    mode.runsInEveryRunIf(BridgeMode.PASSTHROUGH);
    try (MountedPmfs mount = mount();
        Readers readers = readersOf(mount)) {
      for (int upgrade = 0; upgrade < 2; upgrade++) {
        long pid = mount.daemon();
        pmfs.run("upgrade", mount.mountpoint().toString()).expect(0);
        assertThat(mount.daemon()).isNotEqualTo(pid);
        assertThat(mount.status().number("sourceOperations.reads")).isZero();
        readers.awaitMore(50);
      }
      readers.assertNoFailures();
    }
  }

  @Test
  @OnRequest("cases")
  void crashLoop_endsUnmountedWithALineInTheLog() throws IOException {
    mode.runsInEveryRunIf(BridgeMode.PASSTHROUGH);
    pmfs.environment("PMFS_CRASH_LIMIT", "2");
    MountedPmfs mount = mount();
    Path log = Path.of(mount.status().text("logFile"));
    Dataset.Item item = dataset.items().get(0);
    try (Mapping open = new Mapping(mount.path(item.name()), item.size())) {
      open.assertEquals(item);
      for (int kill = 0; kill < 3; kill++) {
        long pid = mount.daemon();
        signal("KILL", pid);
        if (kill < 2) {
          mount.awaitSuccessor(pid);
        }
      }
      Await.until("unmounted", SUCCESSOR, () -> !Mounts.at(mount.mountpoint()));
    }
    assertThat(pmfs.run("status", mount.mountpoint().toString()).exit()).isEqualTo(3);
    assertThat(mount.mountpoint()).isEmptyDirectory();
    assertThat(Files.readString(log)).containsOnlyOnce("the daemon died 3 times in 60 s");
    mount.ended();
  }

  @ParameterizedTest
  @OnRequest("cases")
  @ValueSource(strings = {"mount", "umount"})
  void kill9_ofSupervisorAndDaemon_theNextCommandCleansUp(String next) {
    mode.runsInEveryRunIf(next.equals("mount") ? BridgeMode.PAGE_CACHE : BridgeMode.PASSTHROUGH);
    MountedPmfs mount = mount();
    dataset.assertEqualBelow(mount.mountpoint());
    mount.awaitCopies(dataset.items().size());
    Dataset.Item item = dataset.items().get(0);
    try (Mapping open = new Mapping(mount.path(item.name()), item.size())) {
      open.assertEquals(item);
      mount.kill9();
      if (next.equals("umount")) {
        pmfs.run("umount", mount.mountpoint().toString()).expect(0);
        assertThat(Mounts.at(mount.mountpoint())).isFalse();
      } else {
        try (MountedPmfs again = mount()) {
          dataset.assertEqualBelow(again.mountpoint());
        }
      }
    }
  }

  private static void signal(String name, long pid) {
    Command.run("kill", "-" + name, Long.toString(pid)).expect(0);
  }
}
