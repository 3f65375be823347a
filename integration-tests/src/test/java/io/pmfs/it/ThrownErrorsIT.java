package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * Errors are thrown in threads of a daemon that have to live, each kind at several calls: each of
 * them goes on, and the daemon is the same one at the end.
 */
final class ThrownErrorsIT {
  private static final List<String> KINDS = List.of("thread", "direct", "stack", "class");
  private static final Duration SOON = Duration.ofSeconds(30);
  private static final Duration LIFETIME = Duration.ofMinutes(8);
  private static final int FILES = 40;

  @Installed(byRoot = true)
  private Installation pmfs;

  private final Random random = new Random(5);
  private Path process;
  private int round;

  @BeforeEach
  void makeSwitch() {
    process = pmfs.directory("switch");
    pmfs.environment("PMFS_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 " + ErrorAgent.option(process));
  }

  private static boolean lives(MountedPmfs mount, String thread) {
    return Pattern.compile("\"" + Pattern.quote(thread)).matcher(mount.threads()).find();
  }

  /** Throws each kind of Error in a thread; says where. */
  private void throwIn(MountedPmfs mount, String thread, int mostCalls, Runnable meanwhile)
      throws IOException {
    long daemon = mount.daemon();
    assertThat(lives(mount, thread)).as(thread + " lives").isTrue();
    for (String kind : KINDS) {
      String where =
          ErrorSwitch.throwIn(process, thread, random.nextInt(mostCalls), kind, meanwhile);
      assertThat(where).as("%s comes to an error", thread).isNotEmpty();
      Await.until(thread + " lives after\n" + where, SOON, () -> lives(mount, thread));
      assertThat(mount.daemon()).as("the daemon after\n" + where).isEqualTo(daemon);
    }
  }

  private static void pause() {
    try {
      TimeUnit.MILLISECONDS.sleep(20);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void awaitNoTrouble(MountedPmfs mount) {
    Await.until(
        "no trouble any more",
        Duration.ofSeconds(60),
        () -> mount.status().text("threadFailure").isEmpty());
  }

  @Test
  @EnabledIfSystemProperty(
      named = "pmfs.modes",
      matches = "all",
      disabledReason = "the same, read-only; -Dpmfs.modes=all runs it")
  void threads_ofAMount_goOnAfterErrors() throws Exception {
    Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(FILES, 5000));
    try (MountedPmfs mount =
        pmfs.mount(
            LIFETIME, dataset.root(), "--access-log", pmfs.directory("logs") + "/access.log")) {
      Runnable reading = () -> dataset.assertEqualBelow(mount.mountpoint());
      throwIn(mount, "requests", 200, reading);
      assertThat(mount.status().text("threadFailure")).startsWith("thread requests: ");
      throwIn(mount, "heartbeat", 8, ThrownErrorsIT::pause);
      assertThat(mount.status().text("threadFailure")).contains("thread ");
      throwIn(mount, "state", 1, ThrownErrorsIT::pause);
      reading.run();
      mount.awaitCopies(FILES);
      awaitNoTrouble(mount);
    }
  }

  @Test
  void threads_ofAWritableMount_goOnAfterErrors() throws Exception {
    Path source = pmfs.directory("source");
    try (MountedPmfs mount = pmfs.mount(LIFETIME, source, "--writable")) {
      Runnable writing = () -> write(mount.mountpoint());
      throwIn(mount, "pmfs-outputs", 30, writing);
      throwIn(mount, "pmfs-copier", 60, writing);
      for (int most = 50; most < 1000; most += 100) {
        throwIn(mount, "pmfs-committer", most, writing);
        // The pauses between attempts begin anew with what succeeds.
        Await.until("drained", SOON, () -> mount.status().number("outputs.waitingChanges") == 0);
      }
      pmfs.run("drain", mount.mountpoint().toString()).expect(0);
      for (int i = 0; i < round; i++) {
        assertThat(source.resolve("d" + i + "/new")).hasContent("text " + i + "\nmore\n");
        assertThat(source.resolve("d" + i + "/old")).doesNotExist();
      }
      awaitNoTrouble(mount);
      assertThat(mount.status().number("outputs.waitingChanges")).isZero();
      assertThat(mount.status().number("outputs.conflicts")).isZero();
    }
  }

  private void write(Path mountpoint) {
    try {
      Path directory = Files.createDirectory(mountpoint.resolve("d" + round));
      Path file = directory.resolve("old");
      Files.writeString(file, "text " + round + "\n");
      Files.move(file, directory.resolve("new"));
      Files.writeString(directory.resolve("new"), "more\n", StandardOpenOption.APPEND);
      round++;
      pause();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
