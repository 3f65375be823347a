package io.pmfs.daemon;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.daemon.dataset.FakeDataset;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.fuse.Bridge;
import io.pmfs.settings.TestMachine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Which daemons count as working. A pipe without a writer stands in for a hanging mount. */
@Timeout(120)
final class HeartbeatTest {
  private static final Duration INTERVAL = Duration.ofMillis(100);
  private static final int LOOKS = 3;
  private static final int LOOKS_OF_A_BUSY_MACHINE = 100;

  @TempDir private Path directory;
  private final Semaphore looks = new Semaphore(0);
  private final AtomicLong seconds = new AtomicLong(1_000_000);
  private Path file;
  private Path mountpoint;
  private FakeDataset dataset;
  private Heartbeat heartbeat;

  @SuppressWarnings("NullAway.Init")
  HeartbeatTest() {}

  @BeforeEach
  void makeSession() throws Exception {
    TestMachine world = new TestMachine(directory);
    file = Files.createFile(directory.resolve("session"));
    mountpoint = world.makeDirectory("mnt");
    world.environment.put(Supervision.DESCRIPTOR, "3");
    world.environment.put(Supervision.FILE, file.toString());
    dataset = new FakeDataset(world.settings(Map.of()), world);
    Supervision supervision = Objects.requireNonNull(Supervision.of(world.surroundings()));
    heartbeat =
        new Heartbeat(
            mountpoint,
            supervision,
            dataset,
            looks::release,
            () -> Instant.ofEpochSecond(seconds.incrementAndGet()),
            INTERVAL,
            this::ask);
  }

  private volatile boolean answers = true;

  /** Replaces the shell that sends requests through the mount. */
  private String ask() {
    return answers ? "while read -r _; do echo; done" : "exec sleep 1000";
  }

  @AfterEach
  void close() {
    heartbeat.close();
  }

  /** Whether the file is touched in some checks after the first, which sends a request. */
  private boolean beats() throws IOException, InterruptedException {
    return beatsWithin(LOOKS_OF_A_BUSY_MACHINE);
  }

  private boolean isSilent() throws IOException, InterruptedException {
    return !beatsWithin(LOOKS);
  }

  private boolean beatsWithin(int looks) throws IOException, InterruptedException {
    heartbeat.start();
    awaitLooks(2);
    FileTime before = Files.getLastModifiedTime(file);
    for (int look = 0; look < looks; look++) {
      awaitLooks(1);
      if (!Files.getLastModifiedTime(file).equals(before)) {
        return true;
      }
    }
    return false;
  }

  private void awaitLooks(int count) throws InterruptedException {
    assertThat(looks.tryAcquire(count, 60, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void mount_thatAnswers_beats() throws Exception {
    assertThat(beats()).isTrue();
  }

  @Test
  void mount_thatDoesNotAnswerWithIdleWorkers_doesNotBeat() throws Exception {
    answers = false;
    assertThat(isSilent()).isTrue();
  }

  /** Waiting for the source does not count as hanging. */
  @Test
  void mount_thatDoesNotAnswerWithIdleWorkersAndOthersWaiting_doesNotBeat() throws Exception {
    answers = false;
    dataset.isSourceSilent = true;
    assertThat(isSilent()).isTrue();
  }

  /** A program that creates a file in the root waits for the source; so does the check. */
  @Test
  void mount_whoseRootIsLocked_beats() throws Exception {
    answers = false;
    dataset.isRootLocked = true;
    assertThat(beats()).isTrue();
  }

  @Test
  void workers_allHangInPmfs_doesNotBeat() throws Exception {
    answers = false;
    dataset.isIdle = false;
    assertThat(isSilent()).isTrue();
  }

  @Test
  void workers_allWaitForTheSource_beats() throws Exception {
    answers = false;
    dataset.isIdle = false;
    dataset.isSourceSilent = true;
    assertThat(beats()).isTrue();
  }

  @Test
  void workers_allBusyAndGettingOn_beats() throws Exception {
    answers = false;
    dataset.isIdle = false;
    Thread work = new Thread(this::work);
    work.setDaemon(true);
    work.start();
    assertThat(beats()).isTrue();
    work.interrupt();
  }

  private void work() {
    while (!Thread.currentThread().isInterrupted()) {
      dataset.progress = System.nanoTime();
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
    }
  }

  /** If another mount is on top, its answers do not count. */
  @Test
  void mount_detached_beatsWithoutBeingAsked() throws Exception {
    answers = false;
    dataset.isDetached = true;
    assertThat(beats()).isTrue();
  }

  @Test
  void mount_detachedAndAllWorkersWaitForTheSource_beats() throws Exception {
    dataset.isDetached = true;
    dataset.isIdle = false;
    dataset.isSourceSilent = true;
    assertThat(beats()).isTrue();
  }

  @Test
  void mount_detachedAndAllWorkersHang_doesNotBeat() throws Exception {
    dataset.isDetached = true;
    dataset.isIdle = false;
    assertThat(isSilent()).isTrue();
  }

  /** The real script, which the other tests replace. */
  @Test
  void question_ofTheShell_isAnsweredForEachLine() throws Exception {
    Process shell =
        new ProcessBuilder(
                "/bin/sh", "-c", Heartbeat.ASK, "sh", mountpoint + "/" + Bridge.HEARTBEAT)
            .start();
    shell.getOutputStream().write('\n');
    shell.getOutputStream().flush();
    assertThat(shell.getInputStream().read()).isEqualTo('\n');
    shell.getOutputStream().close();
    assertThat(shell.waitFor(Duration.ofSeconds(30).toSeconds(), TimeUnit.SECONDS)).isTrue();
  }
}
