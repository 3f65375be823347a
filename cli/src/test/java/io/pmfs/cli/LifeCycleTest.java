package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.daemon.control.ControlServer;
import io.pmfs.daemon.dataset.FakeDataset;
import io.pmfs.daemon.dataset.MountedOutputs;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.daemon.report.MissingNode;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.posix.Await;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The commands against a daemon in this process, which mounts a {@link FakeDataset}. */
@Timeout(120)
final class LifeCycleTest {
  @TempDir private Path temporary;
  private TestWorld world;
  private TestWorld daemonWorld;
  private final List<FakeDataset> datasets = new ArrayList<>();
  private final List<CompletableFuture<Integer>> daemons = new ArrayList<>();

  @BeforeEach
  void makeWorld() {
    world = new TestWorld(temporary);
    daemonWorld = new TestWorld(temporary);
    daemonWorld.opener =
        (settings, session) -> {
          FakeDataset dataset = new FakeDataset(settings, world);
          datasets.add(dataset);
          return dataset;
        };
    world.makeDirectory("src");
    world.makeDirectory("mnt");
  }

  @AfterEach
  void endDaemons() throws Exception {
    datasets.forEach(FakeDataset::close);
    for (CompletableFuture<Integer> daemon : daemons) {
      daemon.get(30, TimeUnit.SECONDS);
    }
  }

  @Test
  void mount_ready_saysSoAndServes() throws Exception {
    mount();

    assertThat(daemonWorld.output())
        .isEqualTo(
            "pmfs: %s mounted on %s (pid %d, log %s)\n"
                .formatted(path("src"), path("mnt"), ProcessHandle.current().pid(), onlyLogFile()));
    assertThat(world.execute("status", "mnt")).isEqualTo(ExitStatus.DONE);
    assertThat(world.output()).startsWith(path("src") + " on " + path("mnt") + "\n");
  }

  @Test
  void status_ofAPathInTheMount_isThatOfTheMount() throws Exception {
    mount();

    for (String path : List.of("mnt/train/x.jpg", "src/train")) {
      assertThat(world.execute("status", path)).isEqualTo(ExitStatus.DONE);
      assertThat(world.output()).startsWith(path("src") + " on " + path("mnt") + "\n  working: ");
    }
    assertThat(world.execute("status", "elsewhere")).isEqualTo(ExitStatus.NOT_MOUNTED);
    assertThat(world.errors()).contains("pmfs status lists the mounts");
  }

  @Test
  void status_json_isOneObjectOrAnArray() throws Exception {
    mount();

    assertThat(world.execute("status", path("mnt").toString(), "--json")).isZero();
    JsonObject one = JsonParser.parseString(world.output()).getAsJsonObject();
    assertThat(one.get("mountpoint").getAsString()).isEqualTo(path("mnt").toString());
    assertThat(one.get("pid").getAsLong()).isEqualTo(ProcessHandle.current().pid());
    assertThat(one.get("logFile").getAsString()).isEqualTo(onlyLogFile().toString());

    assertThat(world.execute("status", "--json")).isZero();
    JsonArray all = JsonParser.parseString(world.output()).getAsJsonArray();
    assertThat(all).hasSize(1);
  }

  @Test
  void status_whileAThreadOfTheDaemonFails_saysSoAndEndsWith4() throws Exception {
    mount();
    datasets.get(0).threadFailure = "thread pmfs-slow-peers: java.lang.StackOverflowError";
    assertThat(world.execute("status", "mnt")).isEqualTo(ExitStatus.PARTLY);
    assertThat(world.errors())
        .isEqualTo(
            "pmfs: "
                + path("mnt")
                + ": a thread of its daemon fails: thread pmfs-slow-peers:"
                + " java.lang.StackOverflowError\n");
    datasets.get(0).threadFailure = null;
    assertThat(world.execute("status", "mnt")).isZero();
  }

  @Test
  void status_ofAllNodes_namesTheSilentOnesAndFails() throws Exception {
    mount();
    assertThat(world.execute("status", "--all-nodes", "mnt")).isEqualTo(ExitStatus.FAILED);
    assertThat(world.errors())
        .isEqualTo("pmfs: " + path("mnt") + ": " + ControlServer.NO_CLUSTER + "\n");
    assertThat(world.execute("status", "--all-nodes")).isZero();
    assertThat(world.output()).isEqualTo("No mount is in a cluster.\n");

    NodesReport.Counts counts = new NodesReport.Counts(0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    NodesReport.NodeReport one =
        new NodesReport.NodeReport("n1", "10.0.0.1", null, counts, false, null);
    datasets.get(0).nodes =
        new NodesReport("/mnt/x", "train", List.of(one), counts, 1, List.of(), null);
    assertThat(world.execute("status", "--all-nodes", "mnt")).isZero();
    assertThat(world.output()).startsWith("/mnt/x, cluster train\n").contains("n1 10.0.0.1");

    MissingNode missing = new MissingNode("n2", null, "2026-11-26T18:03:12Z", false);
    datasets.get(0).nodes =
        new NodesReport("/mnt/x", "train", List.of(one), counts, 2, List.of(missing), null);
    assertThat(world.execute("status", "--all-nodes", "mnt", "--json"))
        .isEqualTo(ExitStatus.PARTLY);
    assertThat(world.errors()).startsWith("pmfs: /mnt/x: 1 of 2 expected nodes, missing: n2 ");
    assertThat(world.execute("status", "--all-nodes", "mnt")).isEqualTo(ExitStatus.PARTLY);
    assertThat(world.output())
        .containsPattern("n2 +missing since 2026.*\\n +sum .*\\n  1 of 2 expected nodes");

    datasets.get(0).nodes =
        new NodesReport(
            "/mnt/x",
            "train",
            List.of(
                one, new NodesReport.NodeReport("n2", "10.0.0.2", "is silent", null, false, null)),
            counts,
            2,
            List.of(),
            null);
    assertThat(world.execute("status", "--all-nodes", "mnt", "--json"))
        .isEqualTo(ExitStatus.FAILED);
    assertThat(world.output()).contains("\"error\": \"is silent\"");
    assertThat(world.errors()).isEqualTo("pmfs: not all nodes answered; see the lines above\n");
  }

  @Test
  void umount_running_endsTheDaemonWithZero() throws Exception {
    mount();

    assertThat(world.execute("umount", "mnt")).isEqualTo(ExitStatus.DONE);

    assertThat(awaitEnd()).isZero();
    assertThat(datasets.get(0).closed.getCount()).isZero();
    assertThat(datasets.get(0).purged).isFalse();
    assertThat(world.registry().running()).isEmpty();
    assertThat(Files.readString(onlyLogFile())).contains("mounted on", "unmounted and stopped");
    assertThat(world.execute("umount", "mnt")).isEqualTo(ExitStatus.NOT_MOUNTED);
  }

  @Test
  void umount_purge_isAskedForBeforeClosing() throws Exception {
    mount();

    ControlClient.Answer answer =
        ControlClient.ask(
            Path.of(world.registry().running().get(0).socket()),
            HttpMethod.POST,
            "/umount?purge=true",
            Duration.ofSeconds(30));

    assertThat(answer.status()).isEqualTo(200);
    assertThat(awaitEnd()).isZero();
    assertThat(datasets.get(0).purged).isTrue();
  }

  @Test
  void umount_thatIsRefusedAsBusy_leavesTheWaitForTheSource() throws Exception {
    List<Boolean> waits = new CopyOnWriteArrayList<>();
    daemonWorld.opener =
        (settings, session) -> {
          FakeDataset dataset = new FakeDataset(settings, world);
          datasets.add(dataset);
          return outputs(dataset, waits);
        };
    mount();
    datasets.get(0).busy = true;
    String socket = world.registry().running().get(0).socket();

    ControlClient.Answer busy =
        ControlClient.ask(
            Path.of(socket), HttpMethod.POST, "/umount?abandon=true", Duration.ofSeconds(30));

    assertThat(busy.status()).isEqualTo(409);
    assertThat(waits).isEmpty();
    datasets.get(0).busy = false;
    ControlClient.ask(
        Path.of(socket), HttpMethod.POST, "/umount?abandon=true", Duration.ofSeconds(30));
    assertThat(waits).containsExactly(false);
    assertThat(awaitEnd()).isZero();
  }

  private static MountedOutputs outputs(FakeDataset dataset, List<Boolean> waits) {
    return (MountedOutputs)
        Proxy.newProxyInstance(
            MountedOutputs.class.getClassLoader(),
            new Class<?>[] {MountedOutputs.class},
            (self, method, arguments) -> {
              if (method.getName().equals("waitForSource")) {
                waits.add((Boolean) arguments[0]);
              }
              if (method.getDeclaringClass() == MountedOutputs.class) {
                return false;
              }
              try {
                return method.invoke(dataset, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  @Test
  void umount_busy_namesHoldersAndGoesOn() throws Exception {
    mount();
    datasets.get(0).busy = true;
    Path process = world.root.resolve("proc/123");
    world.write("proc/123/comm", "python3\n");
    Files.createDirectories(process.resolve("fd"));
    Files.createSymbolicLink(process.resolve("fd/7"), path("mnt").resolve("x/y.jpg"));

    assertThat(world.execute("umount", "mnt")).isEqualTo(ExitStatus.FAILED);

    assertThat(world.errors())
        .isEqualTo(
            "pmfs: %s: busy: pid 123 (python3) has %s open; end them first, or detach with --lazy\n"
                .formatted(path("mnt"), path("mnt/x/y.jpg")));
    assertThat(world.execute("status", "mnt")).isZero();
  }

  @Test
  void umount_busyButLazy_detaches() throws Exception {
    mount();
    datasets.get(0).busy = true;

    assertThat(world.execute("umount", "--lazy", "mnt")).isZero();

    assertThat(awaitEnd()).isZero();
    assertThat(datasets.get(0).lazily).isTrue();
  }

  @Test
  void unmountedByOthers_daemon_endsWithZero() throws Exception {
    mount();

    datasets.get(0).unmountedByOthers();

    assertThat(awaitEnd()).isZero();
    assertThat(world.execute("status")).isZero();
    assertThat(world.output()).isEqualTo("No mounts.\n");
  }

  @Test
  void signal_busy_unmountsLazilyAndEnds() throws Exception {
    mount();
    datasets.get(0).busy = true;

    assertThat(stop()).isTrue();

    assertThat(awaitEnd()).isZero();
    assertThat(datasets.get(0).lazily).isTrue();
    assertThat(stop()).as("a second signal").isTrue();
  }

  @Test
  void signal_fileHeldOpenForEver_stillEnds() throws Exception {
    mount();
    datasets.get(0).heldOpen = true;

    assertThat(stop()).isTrue();

    assertThat(awaitEnd()).isZero();
    assertThat(datasets.get(0).closed.getCount()).isZero();
  }

  @Test
  void mount_sameSourceAgain_isRefused() throws Exception {
    mount();

    assertThat(world.execute("mount", "src", "mnt")).isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors()).contains("already mounted: pid ", "pmfs umount ");
  }

  @Test
  void mount_otherSourceOnSameMountpoint_isRefused() throws Exception {
    mount();
    world.makeDirectory("other");

    assertThat(world.execute("mount", "other", "mnt")).isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors())
        .startsWith("pmfs: %s: already mounted: pid ".formatted(path("mnt")))
        .contains(" serves " + path("src") + " there");
  }

  @Test
  void mount_pmfsOfAnotherUser_isRefused() {
    world.mountinfo(TestWorld.line(path("mnt"), "fuse.pmfs", "/theirs"));

    assertThat(world.execute("mount", "src", "mnt")).isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors()).contains("another user or runtime directory (source /theirs)");
  }

  @Test
  void mount_startFails_hasItsStatusAndLeavesNothing() throws Exception {
    daemonWorld.opener =
        (settings, session) -> {
          FakeDataset dataset = new FakeDataset(settings, world);
          dataset.startFailure = new MountFailure(ExitStatus.CANNOT, "fusermount: not permitted");
          datasets.add(dataset);
          return dataset;
        };

    assertThat(daemonWorld.execute("mount", "src", "mnt")).isEqualTo(ExitStatus.CANNOT);

    assertThat(daemonWorld.errors()).isEqualTo("pmfs: fusermount: not permitted\n");
    assertThat(datasets.get(0).closed.getCount()).isZero();
    assertThat(world.registry().isRunning(path("mnt"))).isFalse();
    assertThat(stop()).as("a signal after the end").isTrue();
  }

  /** Readers still use the mount, and another daemon may continue it. */
  @Test
  void takeover_thatFails_leavesTheSessionToAnother() throws Exception {
    Path session = temporary.resolve("session");
    Files.writeString(session, "page-cache\n/log\n" + path("mnt") + "\n");
    daemonWorld.environment.put(Supervision.DESCRIPTOR, "3");
    daemonWorld.environment.put(Supervision.FILE, session.toString());
    daemonWorld.supervision = Supervision.of(daemonWorld.surroundings());
    failToStart();

    daemonWorld.execute("mount", "src", "mnt");

    assertThat(daemonWorld.halts).containsExactly(ExitStatus.UNAVAILABLE);
    assertThat(session).isNotEmptyFile();
  }

  @Test
  void upgrade_ofAMountWhoseSupervisorWasKilled_isRefused() throws Exception {
    Path session = Files.createFile(temporary.resolve("session"));
    daemonWorld.environment.put(Supervision.DESCRIPTOR, "3");
    daemonWorld.environment.put(Supervision.FILE, session.toString());
    daemonWorld.write("proc/self/stat", "8 (a) b) S 7 8 8 0 -1\n");
    daemonWorld.supervision = Supervision.of(daemonWorld.surroundings());
    daemonWorld.opener =
        (settings, origin) -> {
          FakeDataset dataset = new FakeDataset(settings, world);
          dataset.isHeld = true;
          datasets.add(dataset);
          return dataset;
        };
    mount();
    daemonWorld.write("proc/self/stat", "8 (a) b) S 1 8 8 0 -1\n");

    assertThat(world.execute("upgrade", "mnt")).isEqualTo(ExitStatus.FAILED);

    assertThat(world.errors()).contains("mnt: cannot be upgraded while mounted: no supervisor");
    assertThat(daemonWorld.halts).isEmpty();
    daemonWorld.write("proc/self/stat", "8 (a) b) S 7 8 8 0 -1\n");
    Path socket = Path.of(world.registry().running().get(0).socket());
    ControlClient.ask(socket, HttpMethod.POST, "/upgrade", Duration.ofSeconds(20));
    Await.until("handed over", () -> !daemonWorld.halts.isEmpty());
    assertThat(daemonWorld.halts).containsExactly(ExitStatus.HANDED_OVER);
  }

  @Test
  void mount_startFailsUnderASupervisor_endsTheSession() throws Exception {
    Path session = Files.createFile(temporary.resolve("session"));
    daemonWorld.environment.put(Supervision.DESCRIPTOR, "3");
    daemonWorld.environment.put(Supervision.FILE, session.toString());
    daemonWorld.supervision = Supervision.of(daemonWorld.surroundings());
    failToStart();

    assertThat(daemonWorld.execute("mount", "src", "mnt")).isEqualTo(ExitStatus.CANNOT);

    assertThat(daemonWorld.halts).isEmpty();
  }

  private void failToStart() {
    daemonWorld.opener =
        (settings, session) -> {
          FakeDataset dataset = new FakeDataset(settings, world);
          dataset.isHeld = true;
          dataset.startFailure = new MountFailure(ExitStatus.CANNOT, "not permitted");
          datasets.add(dataset);
          return dataset;
        };
  }

  @Test
  void mount_openerFails_leavesTheMountpointFree() throws Exception {
    daemonWorld.opener =
        (settings, session) -> {
          throw new MountFailure(ExitStatus.FAILED, "state: locked");
        };

    assertThat(daemonWorld.execute("mount", "src", "mnt")).isEqualTo(ExitStatus.FAILED);
    assertThat(world.registry().isRunning(path("mnt"))).isFalse();
  }

  /** Runs a daemon in a thread; returns once commands can find it. */
  private void mount(String... options) throws Exception {
    List<String> arguments = new ArrayList<>(List.of("mount"));
    arguments.addAll(Arrays.asList(options));
    arguments.addAll(List.of("src", "mnt"));
    CompletableFuture<Integer> daemon =
        CompletableFuture.supplyAsync(
            () -> daemonWorld.execute(arguments.toArray(String[]::new)),
            task -> new Thread(task, "daemon").start());
    daemons.add(daemon);
    Await.until("mounted", () -> daemon.isDone() || daemonWorld.output().contains("mounted on"));
    assertThat(daemon).as(daemonWorld.errors()).isNotDone();
  }

  private int awaitEnd() throws Exception {
    return daemons.get(0).get(20, TimeUnit.SECONDS);
  }

  private boolean stop() {
    return daemonWorld.stops.get(0).getAsBoolean();
  }

  private Path path(String name) {
    return world.directory.resolve(name);
  }

  private Path onlyLogFile() throws Exception {
    try (var files = Files.list(path("run"))) {
      return files.filter(f -> f.toString().endsWith(".log")).findFirst().orElseThrow();
    }
  }
}
