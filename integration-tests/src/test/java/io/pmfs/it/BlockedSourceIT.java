package io.pmfs.it;

import static io.pmfs.source.FaultyStore.Operation.READ;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import io.pmfs.tier.Hold;
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
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A source that does not answer reads. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class BlockedSourceIT {
  private static final int READERS = 2 * OwnMount.WORKERS;
  private static final int DAEMON_WORKERS = 64;

  private static final String COMPARE_ALL =
      "for i in $(seq 0 2 127); do cmp $1/file$i $2/file$i & cmp $1/d$i/file $2/d$i/file & done;"
          + " wait";

  private Scratch scratch;
  private Path tree;

  @BeforeEach
  void makeTree() throws IOException {
    Machine.requireFuse();
    Machine.requireRoot();
    scratch = new Scratch();
    tree = scratch.directory("tree");
    for (int i = 0; i < READERS; i++) {
      Files.write(tree.resolve("file" + i), new byte[5000]);
      Files.write(Files.createDirectory(tree.resolve("d" + i)).resolve("file"), new byte[5000]);
    }
  }

  @AfterEach
  void remove() {
    if (scratch != null) {
      scratch.close();
    }
  }

  @Test
  void reads_thatAllWaitForTheSource_leaveNamesAndAttributesAnswered() throws Exception {
    ExecutorService threads = Executors.newCachedThreadPool();
    try (OwnMount mount = new OwnMount(scratch, tree)) {
      Hold reads = mount.source().on(READ).hold();
      List<CompletableFuture<byte[]>> readers = new ArrayList<>();
      for (int i = 0; i < READERS; i++) {
        Path file = mount.path("file" + i);
        readers.add(CompletableFuture.supplyAsync(() -> read(file), threads));
      }
      try {
        Await.until(
            "reads that wait", Duration.ofSeconds(30), () -> reads.count() >= OwnMount.WORKERS / 2);
        CompletableFuture<Boolean> names =
            CompletableFuture.supplyAsync(() -> Files.exists(mount.path("absent")), threads);
        assertThat(names.get(30, TimeUnit.SECONDS)).isFalse();
        // Who answered is idle again a moment after its answer.
        Await.until("an idle worker", Duration.ofSeconds(30), () -> mount.bridge().hasIdleWorker());
      } finally {
        reads.release();
      }
      for (CompletableFuture<byte[]> reader : readers) {
        assertThat(reader.get(30, TimeUnit.SECONDS)).hasSize(5000);
      }
    } finally {
      threads.shutdownNow();
    }
  }

  /** The source is a mount of this process, which answers no read until it is let. */
  @Test
  void read_thatWaitsForTheSource_isSaidByStatusAndLogUntilItIsAnswered() throws Exception {
    try (OwnMount source = new OwnMount(scratch, tree);
        Installation pmfs = new Installation();
        MountedPmfs mount = pmfs.mount(source.mountpoint(), "--slow-requests", "1s")) {
      Hold reads = source.source().on(READ).hold();
      try {
        assertThat(mount.status().number("waiting.count")).isZero();
        Process reader =
            new ProcessBuilder("cat", mount.path("file7"))
                .redirectOutput(scratch.root().resolve("read").toFile())
                .start();
        Path log = Path.of(mount.status().text("logFile"));
        String call = "pid:" + reader.pid() + "] read (\"/file7\",";
        Await.until(
            "a line of the read",
            Duration.ofSeconds(30),
            () -> lines(log).anyMatch(line -> isAbout(line, call, "and has no answer")));

        Status waiting = mount.status();
        assertThat(waiting.number("waiting.count")).isEqualTo(1);
        assertThat(waiting.number("waiting.longestSeconds")).isBetween(1L, 60L);
        assertThat(waiting.text("waiting.operation")).isEqualTo("read");
        assertThat(waiting.text("waiting.path")).isEqualTo("file7");
        assertThat(waiting.number("waiting.pid")).isEqualTo(reader.pid());
        assertThat(pmfs.run("status", mount.mountpoint().toString()).out())
            .containsPattern(
                "waiting +1 request, for \\d+s: read of file7 by pid " + reader.pid() + "\n");

        reads.release();
        assertThat(reader.waitFor()).isZero();
        Await.until(
            "a line of the answer",
            Duration.ofSeconds(30),
            () -> lines(log).anyMatch(line -> isAbout(line, call, "s: OK")));
        assertThat(Files.size(scratch.root().resolve("read"))).isEqualTo(5000);
        assertThat(mount.status().number("waiting.count")).isZero();
        assertThat(lines(log).filter(line -> isAbout(line, call, "and has no answer"))).hasSize(1);
      } finally {
        reads.release();
      }
    }
  }

  /** The kernel itself would keep it: see KilledPrograms. */
  @ParameterizedTest
  @ValueSource(strings = {"ls", "cat"})
  void program_thatWaitsForTheSource_canBeKilled(String command) throws Exception {
    try (Installation slow = new Installation().environment("PMFS_WATCHDOG", "1000");
        MountedPmfs source = slow.mount(tree);
        Installation pmfs = new Installation();
        MountedPmfs mount = pmfs.mount(source.mountpoint())) {
      Command.run("ls", "-l", mount.path("")).expect(0);
      String stopped = Long.toString(source.daemon());
      Command.run("kill", "-STOP", stopped).expect(0);
      try {
        killWaiting(command, mount);
      } finally {
        Command.run("kill", "-CONT", stopped).expect(0);
      }
      Command.run("cmp", mount.path("d7/file"), tree.resolve("d7/file").toString()).expect(0);
      Command.run("cmp", mount.path("file7"), tree.resolve("file7").toString()).expect(0);
      assertThat(mount.status().number("failures.total")).isZero();
    }
  }

  /** Kills a program that waits for the source, and awaits its end. */
  private static void killWaiting(String command, MountedPmfs mount) throws Exception {
    Process program =
        new ProcessBuilder(command, mount.path(command.equals("ls") ? "d7" : "file7")).start();
    Await.until(
        "it waits", Duration.ofSeconds(30), () -> mount.status().number("waiting.count") == 1);
    program.destroyForcibly();
    assertThat(program.waitFor(30, TimeUnit.SECONDS)).isTrue();
  }

  /** Its worker still waits. */
  @ParameterizedTest
  @ValueSource(strings = {"ls", "cat"})
  void umount_afterAProgramThatWaitedWasKilled_endsTheDaemon(String command) throws Exception {
    try (Installation slow = new Installation().environment("PMFS_WATCHDOG", "1000");
        MountedPmfs source = slow.mount(tree);
        Installation pmfs = new Installation();
        MountedPmfs mount = pmfs.mount(source.mountpoint())) {
      Command.run("ls", "-l", mount.path("")).expect(0);
      long daemon = mount.daemon();
      String stopped = Long.toString(source.daemon());
      Command.run("kill", "-STOP", stopped).expect(0);
      try {
        killWaiting(command, mount);
        pmfs.run("umount", mount.mountpoint().toString()).expect(0);
        mount.ended();
        assertThat(MountedPmfs.runs(daemon)).isFalse();
      } finally {
        Command.run("kill", "-CONT", stopped).expect(0);
      }
      pmfs.mount(tree).close();
    }
  }

  /**
   * Unlike one whose workers hang in itself: SupervisorIT#lockUp. The kernel leaves some workers to
   * others than reads, and those wait for directories here.
   */
  @Test
  @OnRequest(value = "large", what = "waits for the watchdog")
  void workers_thatAllWaitForTheSource_longerThanTheWatchdogAllows_keepTheDaemon()
      throws Exception {
    try (Installation slow = new Installation().environment("PMFS_WATCHDOG", "1000");
        MountedPmfs source = slow.mount(tree);
        Installation pmfs = new Installation().environment("PMFS_WATCHDOG", "3");
        MountedPmfs mount = pmfs.mount(source.mountpoint())) {
      long daemon = mount.daemon();
      Path differences = scratch.root().resolve("differences");
      String stopped = Long.toString(source.daemon());
      Command.run("kill", "-STOP", stopped).expect(0);
      Process readers;
      try {
        readers =
            new ProcessBuilder("sh", "-c", COMPARE_ALL, "-", mount.path(""), tree.toString())
                .redirectErrorStream(true)
                .redirectOutput(differences.toFile())
                .start();
        Await.until(
            "no worker is idle",
            Duration.ofSeconds(30),
            () -> mount.status().number("waiting.count") == DAEMON_WORKERS);
        long end = System.nanoTime() + Duration.ofSeconds(12).toNanos();
        while (System.nanoTime() < end) {
          assertThat(mount.daemon()).isEqualTo(daemon);
          Thread.sleep(200);
        }
        assertThat(mount.status().number("waiting.count")).isEqualTo(DAEMON_WORKERS);
      } finally {
        Command.run("kill", "-CONT", stopped).expect(0);
      }
      assertThat(readers.waitFor(30, TimeUnit.SECONDS)).isTrue();
      assertThat(differences).isEmptyFile();
      assertThat(mount.daemon()).isEqualTo(daemon);
      assertThat(lines(Path.of(mount.status().text("logFile"))))
          .noneMatch(line -> line.contains("does not answer"));
    }
  }

  private static Stream<String> lines(Path log) {
    try {
      return Files.readAllLines(log).stream();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static boolean isAbout(String line, String call, String outcome) {
    return line.contains("slow request: ") && line.contains(call) && line.contains(outcome);
  }

  private static byte[] read(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
