package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The limit of threads is reached while a mount is in use, as when a job forks until it is: a
 * cgroup lets the daemon have those that it has.
 */
@Timeout(value = 180, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class ThreadLimitIT {
  private static final int READERS = 8;

  @Installed private Installation pmfs;
  private ControlGroup group;
  private Dataset dataset;

  @BeforeEach
  void makeGroup() throws IOException {
    Machine.requireFuse();
    Machine.requireRoot();
    group = new ControlGroup("pids");
    int[] sizes = Dataset.sizes(430, 5000);
    for (int i = 0; i < 8; i++) {
      sizes[50 * i] = (3 << 20) + i;
    }
    dataset = Dataset.create(pmfs.directory("source"), sizes);
    for (int i = 0; i < 300; i++) {
      // More names than one request of attributes has.
      Files.createFile(Files.createDirectories(dataset.root().resolve("many")).resolve("f" + i));
    }
  }

  @AfterEach
  void removeGroup() {
    if (group != null) {
      group.close();
    }
  }

  /** From now on the daemon gets no more threads, and no processes. */
  private void limit(MountedPmfs mount) throws IOException {
    group.add(mount.daemon());
    group.set("pids.max", group.get("pids.current"));
  }

  private void lift() throws IOException {
    group.set("pids.max", "max");
  }

  private void readAll(MountedPmfs mount) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(READERS);
    try {
      List<CompletableFuture<Void>> readers = new ArrayList<>();
      for (int i = 0; i < READERS; i++) {
        readers.add(
            CompletableFuture.runAsync(
                () -> dataset.assertEqualBelow(mount.mountpoint()), threads));
      }
      for (CompletableFuture<Void> reader : readers) {
        reader.get(60, TimeUnit.SECONDS);
      }
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void readers_whileTheDaemonGetsNoMoreThreads_getEveryByteAndLaterCopies() throws Exception {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      limit(mount);
      readAll(mount);
      try (var names = Files.list(mount.mountpoint().resolve("many"))) {
        assertThat(names).hasSize(300);
      }
      assertThat(mount.status().number("reads.errors")).isZero();
      lift();
      readAll(mount);
      mount.awaitCopies(dataset.items().size());
      assertThat(mount.status().text("threadFailure")).isEmpty();
    }
  }

  /** A task that gets no thread at all says so; a reader's files are right all the while. */
  @Test
  @OnRequest("cases")
  void stage_whileTheDaemonGetsNoMoreThreads_endsAndStagesAllLater() throws Exception {
    String[] stage = {"stage", pmfs.mountpoint().toString()};
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      limit(mount);
      Command staged = pmfs.run(stage);
      assertThat(staged.exit()).as("%s", staged.err()).isIn(0, 1);
      assertThat(staged.exit() == 0 ? "start a thread" : staged.err()).contains("start a thread");
      readAll(mount);
      lift();
      pmfs.run(stage).expect(0);
      mount.awaitCopies(dataset.items().size());
      readAll(mount);
      assertThat(mount.status().number("reads.errors")).isZero();
      assertThat(mount.status().text("threadFailure")).isEmpty();
    }
  }

  /** What needs a thread of its own says that there is none; what is written reaches the source. */
  @Test
  @OnRequest("cases")
  void writer_whileTheDaemonGetsNoMoreThreads_isDrained() throws Exception {
    String[] drain = {"drain", pmfs.mountpoint().toString()};
    try (MountedPmfs mount = pmfs.mount(dataset.root(), "--writable")) {
      limit(mount);
      readAll(mount);
      for (int i = 0; i < 50; i++) {
        Files.writeString(mount.mountpoint().resolve("new" + i), "text " + i);
      }
      for (int i = 0; i < 50; i++) {
        Path arrived = dataset.root().resolve("new" + i);
        String text = "text " + i;
        Await.until(text, Duration.ofSeconds(60), () -> hasText(arrived, text));
      }
      Command refused = pmfs.run(drain);
      assertThat(refused.exit()).isIn(0, 1);
      assertThat(refused.exit() == 0 ? "start a thread" : refused.err()).contains("start a thread");
      lift();
      pmfs.run(drain).expect(0);
      assertThat(mount.status().text("threadFailure")).isEmpty();
    }
  }

  private static boolean hasText(Path file, String text) {
    try {
      return Files.exists(file) && Files.readString(file).equals(text);
    } catch (IOException e) {
      return false;
    }
  }

  /**
   * Supervisor and daemon are in the group. The next daemon gets what the last one had: enough for
   * readers, and for commands when there is more.
   */
  @Test
  void daemon_thatDiesAtTheLimit_isReplacedAndReadersGetTheirBytes() throws Exception {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      long daemon = mount.daemon();
      ProcessHandle supervisor = ProcessHandle.of(daemon).orElseThrow().parent().orElseThrow();
      group.add(supervisor.pid());
      limit(mount);
      mount.killDaemon();
      readAll(mount);
      long next = mount.daemon();
      assertThat(next).isNotIn(0L, daemon);
      lift();
      assertThat(mount.awaitSuccessor(daemon)).isEqualTo(next);
      readAll(mount);
      assertThat(mount.status().number("reads.errors")).isZero();
      pmfs.run("stage", mount.mountpoint().toString()).expect(0);
      pmfs.run("status", mount.mountpoint().toString()).expect(0);
    }
  }

  /** The next daemon may have no thread for commands. */
  @Test
  @OnRequest("cases")
  void commands_afterADaemonDiedAtTheLimit_sayWhatIsTheCaseAndUnmount() throws Exception {
    MountedPmfs mount = pmfs.mount(dataset.root());
    String place = mount.mountpoint().toString();
    ProcessHandle supervisor =
        ProcessHandle.of(mount.daemon()).orElseThrow().parent().orElseThrow();
    group.add(supervisor.pid());
    limit(mount);
    mount.killDaemon();
    readAll(mount);
    // Whether it has one is chance.
    Command status = pmfs.run("status", place);
    assertThat(status.exit()).isIn(0, 1);
    assertThat(status.exit() == 0 ? "answers no commands yet" : status.err())
        .contains("answers no commands yet");
    pmfs.run("umount", place).expect(0);
    assertThat(Mounts.at(mount.mountpoint())).isFalse();
    Await.until("the supervisor ended", Duration.ofSeconds(60), () -> !mount.isSupervised());
    mount.ended();
  }

  /** The supervisor sees a daemon that works all the while. */
  @Test
  @OnRequest("cases")
  void daemon_thatGetsNoMoreThreads_isNotReplaced() throws Exception {
    pmfs.environment("PMFS_WATCHDOG", "3");
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      long daemon = mount.daemon();
      limit(mount);
      readAll(mount);
      long end = System.nanoTime() + Duration.ofSeconds(12).toNanos();
      while (System.nanoTime() < end) {
        assertThat(mount.daemon()).isEqualTo(daemon);
        TimeUnit.MILLISECONDS.sleep(200);
      }
      lift();
    }
  }
}
