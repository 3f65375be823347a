package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Two jobs that follow each other on one mount point. The first one's mount was detached while it
 * had files open, and its daemon is killed, stopped or slow to end: its readers go on, and the
 * second one's mount is not touched.
 */
final class SuccessionIT {
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final Duration LIFETIME = Duration.ofMinutes(4);

  @Installed(byRoot = true)
  private Installation first;

  private Installation second;
  private Dataset before;
  private Dataset after;
  private Path mountpoint;
  private final List<Mapping> open = new ArrayList<>();

  @BeforeEach
  void makeSecond() {
    second = new Installation();
    before = Dataset.create(first.directory("source"), Dataset.sizes(8, 50_000));
    after = Dataset.create(second.directory("source"), Dataset.sizes(4, 40_000));
    mountpoint = first.mountpoint();
  }

  @AfterEach
  void remove() {
    open.forEach(Mapping::close);
    if (second != null) {
      second.close();
    }
  }

  /** The first job's mount, with all of its files open and none of them read. */
  private MountedPmfs mountFirst() {
    MountedPmfs mount = first.mount(LIFETIME, before.root());
    for (Dataset.Item item : before.items()) {
      open.add(new Mapping(mount.path(item.name()), item.size()));
    }
    return mount;
  }

  private void assertServed(int file) {
    open.get(file).assertEquals(before.items().get(file));
  }

  /** By another user or node's prologue: with a registry of its own. */
  private MountedPmfs mountSecond(Installation by) {
    Command mounted = by.run(by.mountArguments(after.root(), mountpoint));
    mounted.expect(0);
    return new MountedPmfs(by, after.root(), mountpoint, LIFETIME, mounted.out());
  }

  private static void detach(Path mountpoint) {
    Command.run("umount", "-l", mountpoint.toString()).expect(0);
  }

  private static void signal(String name, long pid) {
    Command.run("kill", "-" + name, Long.toString(pid)).expect(0);
  }

  private static void awaitAnother(MountedPmfs mount, long predecessor) {
    Await.until(
        "a successor of " + predecessor,
        PATIENCE,
        () -> mount.daemon() != predecessor && mount.daemon() != 0);
  }

  @Test
  void kill9_ofTheFirstDaemon_itsReadersGoOnAndTheSecondMountStays() {
    first.environment("PMFS_CRASH_LIMIT", "2");
    MountedPmfs old = mountFirst();
    detach(mountpoint);
    try (MountedPmfs next = mountSecond(second)) {
      for (int kill = 0; kill < 2; kill++) {
        long pid = old.daemon();
        signal("KILL", pid);
        awaitAnother(old, pid);
        assertServed(kill);
        after.assertEqualBelow(next.mountpoint());
      }
      // Three deaths within a minute end it; on a slow machine it takes more than the third one.
      Await.until("the first session ended", PATIENCE, () -> killNext(old));
      Await.until("read without a daemon", PATIENCE, () -> !readsAnything(5));
      assertThat(Mounts.count(mountpoint)).as("the second mount").isEqualTo(1);
      after.assertEqualBelow(next.mountpoint());
      assertThat(next.status().text("source")).isEqualTo(after.root().toString());
    }
    old.ended();
  }

  /** Whether its supervisor gave up; until then the daemon it has now is killed. */
  private static boolean killNext(MountedPmfs mount) {
    long daemon = mount.daemon();
    if (daemon != 0) {
      Command.run("kill", "-KILL", Long.toString(daemon));
    }
    return !mount.isSupervised();
  }

  private boolean readsAnything(int file) {
    try {
      assertServed(file);
      return true;
    } catch (UncheckedIOException e) {
      return false;
    }
  }

  @Test
  @OnRequest("cases")
  void stop_ofTheFirstDaemon_isNoticedAndTheSecondMountStays() {
    first.environment("PMFS_WATCHDOG", "5");
    MountedPmfs old = mountFirst();
    detach(mountpoint);
    try (MountedPmfs next = mountSecond(second)) {
      long pid = old.daemon();
      signal("STOP", pid);
      awaitAnother(old, pid);
      assertServed(0);
      after.assertEqualBelow(next.mountpoint());
    }
    open.forEach(Mapping::close);
    open.clear();
    Await.until("the first session ended", PATIENCE, () -> old.daemon() == 0);
    old.ended();
  }

  /** In one registry: the first daemon gives its place there to the second. */
  @Test
  @OnRequest("cases")
  void mount_whereADaemonServesADetachedMount_takesItsPlace() {
    MountedPmfs old = mountFirst();
    long serving = old.daemon();
    first.run("umount", "--lazy", mountpoint.toString()).expect(0);
    Path tier = first.directory("tier2");
    first.run(first.mountArguments(after.root(), mountpoint, "--tier", "ssd:" + tier)).expect(0);
    Command status = first.run("status", "--json", mountpoint.toString());
    assertThat(Status.parse(status.expect(0).out()).text("source"))
        .isEqualTo(after.root().toString());
    assertServed(0);
    assertThat(MountedPmfs.runs(serving)).isTrue();
    awaitListedAsDetached();
    assertThat(first.run("status").expect(0).out())
        .contains(before.root() + " on " + mountpoint + ", detached: 8 files still open")
        .contains(after.root() + " on " + mountpoint + "\n");
    assertThat(first.run("cache", "--tier", "ssd:" + first.tier()).expect(0).out())
        .contains("detached from " + mountpoint + " with files still open");

    first.run("umount", mountpoint.toString()).expect(0);

    assertServed(1);
    assertThat(Mounts.at(mountpoint)).isFalse();
    Command again = first.run("umount", mountpoint.toString()).expect(3);
    assertThat(again.err()).contains("no longer mounted: it was detached, and pid " + serving);
    awaitListedAsDetached();
    // Also after its daemon was replaced.
    signal("KILL", serving);
    awaitAnother(old, serving);
    awaitListedAsDetached();
    assertServed(2);
    open.forEach(Mapping::close);
    open.clear();
    Await.until("the first session ended", PATIENCE, () -> old.daemon() == 0);
    old.ended();
    assertThat(first.run("status").expect(0).out()).isEqualTo("No mounts.\n");
  }

  private void awaitListedAsDetached() {
    Await.until(
        "the detached mount in the list",
        PATIENCE,
        () -> first.run("status", "--json").expect(0).out().contains("\"openFiles\": 8"));
  }

  private Path said() {
    return first.scratch().root().resolve("said");
  }

  private Process startMount(Path where) {
    return first.start(
        Redirect.DISCARD, Redirect.to(said().toFile()), first.mountArguments(before.root(), where));
  }

  /** A wait of two seconds is worth a line. */
  private void awaitSaying(String line, Process mounting) {
    Await.until(
        () -> line + ": " + text(said()),
        PATIENCE,
        () -> text(said()).contains(line) || !mounting.isAlive());
    assertThat(text(said())).contains(line);
    assertThat(mounting.isAlive()).as("it waits").isTrue();
  }

  private void assertMounted(Process mounting) throws InterruptedException {
    assertThat(mounting.waitFor(2, TimeUnit.MINUTES)).isTrue();
    assertThat(mounting.exitValue()).as("%s", text(said())).isZero();
  }

  private static String text(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The place is free, and the copies are not. */
  @Test
  @OnRequest("cases")
  void mount_elsewhereWhileThePredecessorIsSlowToEnd_waitsForItsCopies() throws Exception {
    MountedPmfs old = first.mount(LIFETIME, before.root());
    long ending = old.daemon();
    signal("STOP", ending);
    Command.run("umount", "-i", "-l", mountpoint.toString()).expect(0);
    Path elsewhere = first.directory("elsewhere");
    Process next = startMount(elsewhere);
    awaitSaying("waiting for another pmfs, which holds the copies but is not mounted", next);
    signal("CONT", ending);
    old.ended();
    assertMounted(next);
    before.assertEqualBelow(elsewhere);
    first.run("umount", elsewhere.toString()).expect(0);
  }

  @Test
  void mount_whileThePredecessorIsSlowToEnd_waitsForIt() throws Exception {
    MountedPmfs old = first.mount(LIFETIME, before.root());
    long ending = old.daemon();
    signal("STOP", ending);
    Command.run("umount", "-i", "-l", mountpoint.toString()).expect(0);
    Process next = startMount(mountpoint);
    awaitSaying("waiting for pmfs (pid " + ending + ")", next);
    signal("CONT", ending);
    old.ended();
    assertMounted(next);
    before.assertEqualBelow(mountpoint);
    first.run("umount", mountpoint.toString()).expect(0);
  }
}
