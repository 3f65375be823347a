package io.pmfs.cli.tasks;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.pmfs.cli.TestWorld;
import io.pmfs.daemon.control.ControlRequests;
import io.pmfs.daemon.control.ControlServer;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.tasks.FakeTasks;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.daemon.tasks.TaskLists;
import io.pmfs.machine.ExitStatus;
import io.pmfs.metadata.FileName;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.Registration;
import io.pmfs.posix.Await;
import io.pmfs.tasks.ScratchFiles;
import io.pmfs.tasks.TaskFinding;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskProgress.State;
import io.pmfs.tasks.TaskRequest;
import io.pmfs.tasks.TaskRequest.Limits;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** stage, evict and verify with a real control socket and tasks under the control of a test. */
@Timeout(120)
final class TaskCommandTest {
  private static final Limits NO_LIMITS = new Limits(0, 0, 0);
  private static final List<FileName> ALL = List.of(FileName.of(""));

  @TempDir private Path temporary;
  private TestWorld world;
  private FakeTasks tasks;
  private KeptTasks kept;
  private Path lists;
  private Registration registration;
  private ControlServer server;
  private long pid = 1;

  @SuppressWarnings("NullAway.Init")
  TaskCommandTest() {}

  /** A daemon that only has tasks. */
  private record TasksOnly(KeptTasks tasks) implements ControlRequests {
    @Override
    public StatusReport status() {
      throw new IllegalStateException("not asked here");
    }

    @Override
    public @Nullable NodesReport nodes() {
      return null;
    }

    @Override
    public void upgrade() {}

    @Override
    public void unmount(boolean lazy, boolean purge, boolean abandon) {}
  }

  @BeforeEach
  void serve() throws Exception {
    world = new TestWorld(temporary);
    world.makeDirectory("src");
    tasks = new FakeTasks();
    lists = temporary.resolve("lists");
    serve(new KeptTasks(tasks, null, new TaskLists(lists, new ScratchFiles(List.of())), null));
    tasks.outcome = FakeTasks.progress(State.ENDED, 5, 0, 0, 0);
  }

  private void serve(KeptTasks kept) throws Exception {
    this.kept = kept;
    Path mountpoint = world.makeDirectory("mnt");
    world.mountinfo(
        TestWorld.line(mountpoint, "fuse.pmfs", world.directory.resolve("src").toString()));
    registration = Objects.requireNonNull(world.registry().register(mountpoint));
    server = ControlServer.start(registration.socket(), new TasksOnly(kept));
    registration.publish(
        DaemonRecord.of(
                mountpoint.toString(),
                world.directory.resolve("src").toString(),
                pid,
                registration.socket().toString(),
                "/log")
            .withDevice("0:30")); // as TestWorld.line has it
  }

  @AfterEach
  void stop() {
    server.close();
    registration.close();
  }

  private String mnt() {
    return world.directory.resolve("mnt").toString();
  }

  @Test
  void stage_mountpoint_asksForAllOfItAndSumsUp() {
    assertThat(world.execute("stage", "mnt")).isEqualTo(ExitStatus.DONE);

    assertThat(tasks.last().request())
        .isEqualTo(new TaskRequest.Stage(TaskPaths.of(ALL), NO_LIMITS, null, false, false, false));
    assertThat(world.output())
        .isEqualTo(
            "pmfs: %s: staged 5 files; 5 files of 5.0 KiB in 2.0s (2.5 KiB/s)\n".formatted(mnt()));
    assertThat(world.errors()).isEmpty();
  }

  @Test
  void stage_options_arriveAsTheyWereGiven() {
    world.execute(
        "stage",
        "--jobs=9",
        "--max-rate=2M",
        "--max-iops=7",
        "--tier=ssd:/x",
        "--pin",
        "src/a",
        "mnt/b/");

    assertThat(tasks.last().request())
        .isEqualTo(
            new TaskRequest.Stage(
                TaskPaths.of(List.of(FileName.of("a"), FileName.of("b"))),
                new Limits(9, 2 << 20, 7),
                "ssd:/x",
                true,
                false,
                false));
  }

  @Test
  void stage_metadataOnly_saysSo() {
    assertThat(world.execute("stage", "--metadata-only", "mnt")).isZero();

    assertThat(tasks.last().request())
        .isEqualTo(new TaskRequest.Stage(TaskPaths.of(ALL), NO_LIMITS, null, false, true, false));
    assertThat(world.output()).contains("imported names and attributes of 5 files; ");
  }

  @Test
  void stage_listFromStandardInput_keepsBytes() {
    world.in = new ByteArrayInputStream(new byte[] {'a', '\n', (byte) 0xff, '%', '\n'});

    assertThat(world.execute("stage", "--list", "-", "mnt")).isZero();

    assertThat(tasks.last().paths).containsExactly(FileName.of("a"), FileName.ofLatin1("\u00ff%"));
  }

  @Test
  void stage_listOfAMillionPaths_arrivesWhole() throws Exception {
    Path list = world.directory.resolve("list");
    Files.write(list, IntStream.range(0, 1_000_000).mapToObj(i -> "train/n01440764/" + i).toList());

    assertThat(world.execute("stage", "--list", "list", "mnt")).isZero();

    assertThat(tasks.last().paths)
        .hasSize(1_000_000)
        .endsWith(FileName.of("train/n01440764/999999"));
  }

  @Test
  void stage_listWithAWrongLine_startsNothingAndLeavesNoFile() throws Exception {
    Path list = world.directory.resolve("list");
    Files.write(
        list,
        IntStream.rangeClosed(1, 50_000).mapToObj(i -> i == 49_999 ? "/etc" : "f" + i).toList());

    assertThat(world.execute("stage", "--list", "list", "mnt")).isEqualTo(ExitStatus.USAGE);

    assertThat(world.errors()).contains("list:49999: /etc: outside of ");
    assertThat(tasks.started).isEmpty();
    Await.until("the list is removed", () -> isEmpty(lists));
  }

  @Test
  void stage_listWhileATaskRuns_isRefusedAtOnce() {
    tasks.outcome = null;
    world.execute("stage", "--background", "mnt");
    world.in =
        new InputStream() {
          @Override
          public int read() {
            return '\n'; // lines without end
          }
        };

    assertThat(world.execute("stage", "--list", "-", "mnt")).isEqualTo(ExitStatus.FAILED);

    assertThat(world.errors()).contains("staging is running; --wait waits for it");
    Await.until("the list is removed", () -> isEmpty(lists));
  }

  @Test
  void stage_list_isGoneWhenItsTaskHasEnded() throws Exception {
    tasks.outcome = null;
    world.in = new ByteArrayInputStream("a\nb\n".getBytes(UTF_8));
    assertThat(world.execute("stage", "--background", "--list", "-", "mnt")).isZero();
    assertThat(lists).isNotEmptyDirectory();

    tasks.last().is(FakeTasks.progress(State.ENDED, 2, 0, 0, 0));

    Await.until("the list is removed", () -> isEmpty(lists));
  }

  private static boolean isEmpty(Path directory) {
    String[] names = directory.toFile().list();
    return names == null || names.length == 0;
  }

  @Test
  void stage_emptyList_isDoneWithoutATask() {
    assertThat(world.execute("stage", "--list", "-", "mnt")).isZero();

    assertThat(tasks.started).isEmpty();
    assertThat(world.output()).contains("nothing to do");
  }

  @Test
  void stage_orderAndWindow_isAPrefetch() {
    world.in = new ByteArrayInputStream(new byte[] {'b', '\n', 'a'});

    assertThat(world.execute("stage", "--order=-", "--window=2G", "--jobs=3", "mnt")).isZero();

    assertThat(tasks.last().request().with(TaskPaths.of(tasks.last().paths)))
        .isEqualTo(
            new TaskRequest.Prefetch(
                TaskPaths.of(List.of(FileName.of("b"), FileName.of("a"))),
                new Limits(3, 0, 0),
                2L << 30,
                0));
  }

  @Test
  void evictAndVerify_paths_becomeTheirTasks() {
    assertThat(world.execute("evict", "mnt/a")).isZero();
    assertThat(tasks.last().request())
        .isEqualTo(new TaskRequest.Evict(TaskPaths.of(List.of(FileName.of("a")))));
    assertThat(world.output()).contains("dropped the copies of 5 files");

    assertThat(world.execute("verify", "--source", "--repair", "mnt")).isZero();
    assertThat(tasks.last().request())
        .isEqualTo(new TaskRequest.Verify(TaskPaths.of(ALL), true, true));
    assertThat(world.output()).contains("verified 5 files");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "stage",
        "stage --check --pin mnt",
        "stage --check --jobs 2 mnt",
        "stage --check --order x --window 1G mnt",
        "stage --wait --check mnt",
        "stage --wait --tier ssd mnt",
        "stage --wait --list x mnt",
        "stage --wait --background mnt",
        "stage --background --report x mnt",
        "stage --background --json mnt",
        "stage --metadata-only --pin mnt",
        "stage --order x mnt",
        "stage --window 1G mnt",
        "stage --order x --window 1G --list y mnt",
        "stage --order x --window 0 mnt",
        "stage --jobs 0 mnt",
        "stage --jobs 1025 mnt",
        "stage --jobs many mnt",
        "stage --max-rate 0 mnt",
        "stage --max-rate fast mnt",
        "stage --max-iops -1 mnt",
        "stage --list no-such-file mnt",
        "stage --list x mnt/a",
        "stage --list x mnt mnt",
        "stage --report /no/such/directory/x mnt",
        "verify --wait --repair mnt",
        "evict --pin mnt",
        "evict"
      })
  void options_thatMakeNoSense_areWrongUsageInOneLine(String line) throws Exception {
    Files.writeString(world.directory.resolve("x"), "a\n");

    assertThat(world.execute(line.split(" ", -1))).as(line).isEqualTo(ExitStatus.USAGE);

    assertThat(world.errors().lines()).as(world.errors()).hasSize(1);
    assertThat(tasks.started).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"stage", "evict", "verify"})
  void path_thatNobodyServes_isNotMounted(String command) {
    assertThat(world.execute(command, "elsewhere")).isEqualTo(ExitStatus.NOT_MOUNTED);
    assertThat(world.errors()).startsWith("pmfs: elsewhere: not in a dataset mounted by pmfs");
  }

  @Test
  void start_thatTheDatasetRefuses_isWrongUsage() {
    tasks.refusal = new IllegalArgumentException("no tier named x; the tiers are ssd:/y");

    assertThat(world.execute("stage", "--tier", "x", "mnt")).isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors()).isEqualTo("pmfs: no tier named x; the tiers are ssd:/y\n");
  }

  @Test
  void start_whileOneRuns_pointsToWait() {
    tasks.outcome = null;
    assertThat(world.execute("stage", "--background", "mnt")).isZero();

    assertThat(world.execute("evict", "mnt")).isEqualTo(ExitStatus.FAILED);
    assertThat(world.errors()).isEqualTo("pmfs: staging is running; --wait waits for it\n");
  }

  @ParameterizedTest
  @CsvSource({
    "ENDED, 3, 2, 0, 0, 0, 'staged 3 files, 2 files already there; 5 files of 5.0 KiB'",
    "ENDED, 0, 1, 0, 0, 0, '1 file already there; 1 file of 1.0 KiB in 2.0s'",
    "ENDED, 0, 0, 0, 0, 0, 'nothing was done; 0 files of 0 B in 2.0s'",
    "ENDED, 1, 0, 2, 0, 4, 'staged 1 file, 2 files without room; 3 files'",
    "ENDED, 1, 0, 0, 2, 4, 'staged 1 file, 2 files failed; 3 files'",
    "CANCELLED, 1, 0, 0, 0, 4, 'staging was cancelled: staged 1 file; 1 file'",
    "FAILED, 1, 0, 0, 0, 1, 'staging failed: the tiers are gone; staged 1 file; 1 file'"
  })
  void outcome_ofEachKind_hasItsStatusAndWords(
      State state, int done, int present, int noRoom, int failed, int status, String words) {
    tasks.outcome = FakeTasks.progress(state, done, present, noRoom, failed);

    assertThat(world.execute("stage", "mnt")).isEqualTo(status);
    assertThat(world.output()).contains(mnt() + ": " + words);
  }

  @Test
  void json_ofTheSummary_isOneObject() {
    tasks.outcome = FakeTasks.progress(State.ENDED, 1, 2, 3, 4);

    assertThat(world.execute("stage", "--json", "mnt")).isEqualTo(ExitStatus.PARTLY);

    JsonObject json = JsonParser.parseString(world.output()).getAsJsonObject();
    assertThat(json.get("task").getAsString()).isEqualTo("stage");
    assertThat(json.get("state").getAsString()).isEqualTo("ended");
    assertThat(json.get("complete").getAsBoolean()).isFalse();
    assertThat(json.get("done").getAsInt()).isEqualTo(1);
    assertThat(json.get("failed").getAsInt()).isEqualTo(4);
  }

  @Test
  void findings_many_areShownInPartAndReportedWhole() throws Exception {
    List<TaskFinding> findings = new ArrayList<>();
    findings.add(finding(FileName.ofLatin1("a\u00ff\"\n"), TaskFinding.Kind.NO_ROOM));
    for (int i = 0; i < 2500; i++) {
      findings.add(finding(FileName.of("f" + i), TaskFinding.Kind.NOT_FOUND));
    }
    tasks.findings = findings;
    tasks.outcome = FakeTasks.progress(State.ENDED, 0, 0, 1, 2500);

    assertThat(world.execute("stage", "--report", "r", "mnt")).isEqualTo(ExitStatus.PARTLY);

    assertThat(world.errors().lines())
        .hasSize(11)
        .startsWith("pmfs: a\ufffd\"%0A: why", "pmfs: f0: why")
        .endsWith("pmfs: and 2,491 more, all in the report");
    List<String> lines = Files.readAllLines(world.directory.resolve("r"));
    assertThat(lines).hasSize(2501);
    assertThat(lines.get(0))
        .isEqualTo(
            "{\"path\":\"a\ufffd\\\"\\n"
                + "\",\"escapedPath\":\"a%FF\\\"%0A\",\"outcome\":\"no-room\",\"reason\":\"why\"}");
    assertThat(lines.get(2500))
        .isEqualTo("{\"path\":\"f2499\",\"outcome\":\"not-found\",\"reason\":\"why\"}");
  }

  @Test
  void findings_withoutAReport_sayWhereTheRestWouldBe() {
    tasks.findings =
        IntStream.range(0, 12)
            .mapToObj(i -> finding(FileName.of("f" + i), TaskFinding.Kind.FAILED))
            .toList();
    tasks.outcome = FakeTasks.progress(State.ENDED, 0, 0, 0, 12);

    world.execute("stage", "mnt");

    assertThat(world.errors()).endsWith("pmfs: and 2 more; --report FILE lists them\n");
  }

  @Test
  void findings_ofATaskThatWasReplaced_areNotTakenForItsOwn() {
    tasks.findings = List.of(finding(FileName.of("f"), TaskFinding.Kind.FAILED));
    tasks.outcome = FakeTasks.progress(State.ENDED, 0, 0, 0, 1);
    tasks.whenFindingsAreRead =
        () -> {
          tasks.whenFindingsAreRead = () -> {};
          kept.start(new TaskRequest.Evict(TaskPaths.of(ALL)));
        };

    assertThat(world.execute("stage", "--report", "r", "mnt")).isEqualTo(ExitStatus.FAILED);

    assertThat(world.errors())
        .endsWith(": another task began before all that it found was read; run it again\n");
  }

  private static TaskFinding finding(FileName path, TaskFinding.Kind kind) {
    return new TaskFinding(path, kind, "why");
  }

  @Test
  void wait_nothingEver_isDone() {
    assertThat(world.execute("stage", "--wait", "mnt")).isZero();
    assertThat(world.output()).isEqualTo("pmfs: %s: nothing is running\n".formatted(mnt()));
  }

  @Test
  void wait_running_endsWithItsOutcome() throws Exception {
    tasks.outcome = null;
    assertThat(world.execute("verify", "--background", "mnt")).isZero();
    assertThat(world.output())
        .isEqualTo(
            "pmfs: %s: verifying in the background; pmfs verify --wait %1$s waits for it\n"
                .formatted(mnt()));

    CompletableFuture<Integer> waiting = inBackground("stage", "--wait", "mnt");
    tasks.last().is(FakeTasks.progress(State.ENDED, 1, 0, 0, 1));

    assertThat(waiting.get(60, TimeUnit.SECONDS)).isEqualTo(ExitStatus.PARTLY);
    assertThat(world.output()).contains("1 file bad");
  }

  @Test
  void wait_endedAlready_hasItsOutcomeStill() {
    tasks.outcome = FakeTasks.progress(State.ENDED, 0, 0, 0, 1);
    world.execute("stage", "--background", "mnt");

    assertThat(world.execute("stage", "--wait", "mnt")).isEqualTo(ExitStatus.PARTLY);
  }

  @Test
  void interrupt_running_cancelsAndSumsUp() throws Exception {
    tasks.outcome = null;
    CompletableFuture<Integer> command = inBackground("stage", "mnt");
    Await.until("the task begins", () -> !tasks.started.isEmpty());

    world.interrupts.get(0).accept(130);

    assertThat(command.get(60, TimeUnit.SECONDS)).isEqualTo(130);
    assertThat(tasks.last().progress().state()).isEqualTo(State.CANCELLED);
    assertThat(world.output()).contains("staging was cancelled: staged 3 files; ");
  }

  @Test
  void wait_interrupted_leavesTheTask() throws Exception {
    tasks.outcome = null;
    world.execute("stage", "--background", "mnt");
    CompletableFuture<Integer> waiting = inBackground("stage", "--wait", "mnt");

    assertThat(world.interrupts).isEmpty();

    tasks.last().is(FakeTasks.progress(State.ENDED, 1, 0, 0, 0));
    assertThat(waiting.get(60, TimeUnit.SECONDS)).isZero();
  }

  @Test
  void daemon_replaced_isWaitedFor() throws Exception {
    stop();
    Path file = world.directory.resolve("task.json");
    tasks.outcome = null;
    serve(new KeptTasks(tasks, file));
    CompletableFuture<Integer> command = inBackground("stage", "mnt");
    Await.until("the task begins", () -> Files.exists(file) && !tasks.started.isEmpty());
    server.close();
    registration.close();

    FakeTasks nextTasks = new FakeTasks();
    nextTasks.outcome = FakeTasks.progress(State.ENDED, 1, 4, 0, 0);
    KeptTasks next = new KeptTasks(nextTasks, file);
    next.resume();
    serve(next);

    assertThat(command.get(60, TimeUnit.SECONDS)).isZero();
    assertThat(world.output()).contains("staged 1 file, 4 files already there");
  }

  /** As after the daemon's death: its mount and files remain. */
  private void kill() throws Exception {
    Path entry = Path.of(registration.socket().toString().replace(".sock", ".json"));
    byte[] left = Files.readAllBytes(entry);
    stop();
    Files.write(entry, left);
  }

  @ParameterizedTest
  @ValueSource(strings = {"mnt", "mnt/a", "src/a"})
  void daemon_diedBeforeTheCommand_theNextIsWaitedFor(String place) throws Exception {
    kill();
    CompletableFuture<Integer> command = inBackground("stage", place);
    assertThat(command.copy().completeOnTimeout(null, 1, TimeUnit.SECONDS).get()).isNull();

    serve(new KeptTasks(tasks, null));

    assertThat(command.get(60, TimeUnit.SECONDS)).isZero();
  }

  /** The daemon has registered the mount point, but has not published its socket yet. */
  @Test
  void daemon_thatHasOnlyBegun_isWaitedFor() throws Exception {
    stop();
    CompletableFuture<Integer> command;
    try (Registration taken = Objects.requireNonNull(world.registry().register(Path.of(mnt())))) {
      assertThat(taken).isNotNull();
      command = inBackground("stage", "mnt");
      assertThat(command.copy().completeOnTimeout(null, 1, TimeUnit.SECONDS).get()).isNull();
    }
    serve(new KeptTasks(tasks, null));

    assertThat(command.get(60, TimeUnit.SECONDS)).isZero();
  }

  /** The dying daemon still holds the mount point, but has closed its socket. */
  @ParameterizedTest
  @ValueSource(strings = {"", "--list"})
  void daemon_diesAsTheCommandAsks_theNextIsAsked(String option) throws Exception {
    Path list = Files.writeString(world.directory.resolve("list"), "a\n");
    server.close();
    List<String> line = new ArrayList<>(List.of("stage", "mnt"));
    if (!option.isEmpty()) {
      line.addAll(List.of(option, list.toString()));
    }
    CompletableFuture<Integer> command = inBackground(line.toArray(String[]::new));
    assertThat(command.copy().completeOnTimeout(null, 1, TimeUnit.SECONDS).get()).isNull();
    registration.close();

    pid++;
    serve(new KeptTasks(tasks, null, new TaskLists(lists, new ScratchFiles(List.of())), null));

    assertThat(command.get(60, TimeUnit.SECONDS)).isZero();
  }

  @Test
  void daemon_ofAnotherMountDied_isNotWaitedFor() throws Exception {
    kill();
    world.mountinfo(TestWorld.line(Path.of(mnt()), "fuse.pmfs", "/theirs").replace("0:30", "0:31"));

    assertThat(world.execute("stage", "mnt")).isEqualTo(ExitStatus.NOT_MOUNTED);
    assertThat(world.errors()).contains("mounted by another user, or with another");
  }

  @Test
  void daemon_replacedByOneThatKnowsNothing_fails() throws Exception {
    tasks.outcome = null;
    CompletableFuture<Integer> command = inBackground("stage", "mnt");
    Await.until("the task begins", () -> !tasks.started.isEmpty());
    server.close();
    registration.close();
    serve(new KeptTasks(new FakeTasks(), null));

    assertThat(command.get(60, TimeUnit.SECONDS)).isEqualTo(ExitStatus.FAILED);
    assertThat(world.errors()).contains("staging: the next daemon did not continue it");
  }

  @Test
  void mount_thatEnds_endsTheWaiting() throws Exception {
    tasks.outcome = null;
    CompletableFuture<Integer> command = inBackground("stage", "mnt");
    Await.until("the task begins", () -> !tasks.started.isEmpty());
    world.mountinfo();
    server.close();

    assertThat(command.get(60, TimeUnit.SECONDS)).isEqualTo(ExitStatus.FAILED);
    assertThat(world.errors())
        .isEqualTo("pmfs: %s: was unmounted before the task ended\n".formatted(mnt()));
  }

  /** The daemon then moves its socket, and the task goes on. */
  @Test
  void mountpoint_thatEndsWhileTheSessionHasAnother_doesNotEndTheWaiting() throws Exception {
    stop();
    tasks.outcome = null;
    KeptTasks kept = new KeptTasks(tasks, null);
    serve(kept);
    CompletableFuture<Integer> command = inBackground("stage", "mnt");
    Await.until("the task begins", () -> !tasks.started.isEmpty());
    String source = world.directory.resolve("src").toString();
    world.mountinfo(TestWorld.line(world.makeDirectory("second"), "fuse.pmfs", source));
    stop();
    registration =
        Objects.requireNonNull(world.registry().registerDetached(Path.of(mnt()), "0:30"));
    server = ControlServer.start(registration.socket(), new TasksOnly(kept));
    registration.publish(
        DaemonRecord.of(mnt(), source, pid, "", "/log")
            .withDevice("0:30")
            .withSocket(registration.socket(), true));
    tasks.last().is(FakeTasks.progress(State.ENDED, 1, 4, 0, 0));

    assertThat(command.get(60, TimeUnit.SECONDS)).as(world::errors).isZero();
    assertThat(world.output()).contains("staged 1 file, 4 files already there");
  }

  private CompletableFuture<Integer> inBackground(String... arguments) {
    return CompletableFuture.supplyAsync(
        () -> world.execute(arguments), task -> new Thread(task, "command").start());
  }
}
