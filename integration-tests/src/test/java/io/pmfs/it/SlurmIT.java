package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Jobs of a real Slurm around which scripts/slurm mounts and unmounts. However a job ends, the node
 * takes the next one, and nothing of it is left.
 */
@OnRequest(value = "jobs", what = "jobs under Slurm")
final class SlurmIT {
  private static final Duration LONG = Duration.ofMinutes(3);
  private static final int TASKS = 10;
  private static final String MEM = "--mem=100M";

  private Scratch scratch;
  private Account user;
  private LocalSlurm slurm;
  private Dataset dataset;
  private Path base;
  private Path tier;

  @BeforeEach
  void start() throws IOException {
    Machine.requireFuse();
    Machine.requireRoot();
    Machine.requireCommand("useradd");
    // Not in /tmp, which jobs may have of their own.
    scratch = new Scratch(Path.of("/var/tmp"));
    Path home = scratch.directory("home");
    user = new Account(home.toString());
    user.own(home.toString());
    dataset = Dataset.create(scratch.directory("source"), Dataset.sizes(20, 10_000));
    base = scratch.root().resolve("base");
    tier = scratch.root().resolve("tier");
    Path launcher = Installation.launcherForAll(scratch);
    Command.run(
            "cp",
            "-r",
            Installation.launcherOfCheckout().resolveSibling("slurm").toString(),
            launcher.resolveSibling("slurm").toString())
        .expect(0);
    configure("STRICT=no", "TIERS=(ssd:" + tier + ":80%)");
    startSlurm(LocalSlurm.Kind.PLAIN);
  }

  /** In the place of the one that runs. */
  private void startSlurm(LocalSlurm.Kind kind) throws IOException {
    if (slurm != null) {
      slurm.close();
    }
    slurm =
        new LocalSlurm(
            kind,
            scratch.directory("slurm-" + kind),
            around("prolog.d/50-pmfs"),
            around("epilog.d/50-pmfs"),
            around("task_prolog"));
  }

  /** Slurm gives these programs no variable of ours. */
  private Path around(String script) throws IOException {
    Path program = scratch.root().resolve("scripts/slurm").resolve(script);
    Path wrapper = scratch.root().resolve(script.replace('/', '-'));
    Files.writeString(
        wrapper,
        """
        #!/bin/bash
        export PMFS_JOB_CONF=%s
        [ ! -e $PMFS_JOB_CONF.$SLURMD_NODENAME ] || PMFS_JOB_CONF+=.$SLURMD_NODENAME
        exec %s
        """
            .formatted(scratch.root().resolve("job.conf"), program));
    Files.setPosixFilePermissions(wrapper, PosixFilePermissions.fromString("rwxr-xr-x"));
    return wrapper;
  }

  private void configure(String... lines) throws IOException {
    List<String> all = new ArrayList<>(List.of(lines));
    all.add("BASE=" + base);
    all.add("RUNTIME=" + scratch.root().resolve("run"));
    all.add("PMFS=" + scratch.root().resolve("scripts/pmfs"));
    all.add("OPTIONS=(--keep-free 0)");
    all.add("MOUNT_LIMIT=110");
    all.add("LIMIT=200");
    Files.write(scratch.root().resolve("job.conf"), all);
  }

  @AfterEach
  void stop() {
    try {
      if (slurm != null) {
        slurm.close();
      }
    } finally {
      if (user != null) {
        Command.run("pkill", "-KILL", "-u", user.name());
        user.close();
      }
      if (scratch != null) {
        String settings = "rm -f /run/pmfs-job-$(printf %s \"$1\" | sha256sum | cut -c 1-16)";
        for (String name : names(scratch.root())) {
          if (name.startsWith("job.conf")) {
            Command.run("sh", "-c", settings, "-", scratch.root().resolve(name).toString());
          }
        }
        scratch.close();
      }
    }
  }

  /** Submits a script as the user; answers the job's number. */
  private String submit(String comment, String script, String... options) {
    List<String> line =
        new ArrayList<>(List.of("sbatch", "--parsable", "-n1", "--chdir", home().toString()));
    line.addAll(List.of("--comment", comment, "--output", home() + "/%j.out"));
    line.addAll(List.of(options));
    line.addAll(List.of("--wrap", script));
    return user.run(slurm.environment(), line.toArray(String[]::new)).expect(0).out().strip();
  }

  private String asked(String further) {
    return "pmfs:source=" + dataset.root() + further;
  }

  private Path home() {
    return scratch.root().resolve("home");
  }

  private String output(String job) {
    try {
      return Files.readString(home().resolve(job + ".out"));
    } catch (IOException e) {
      return "";
    }
  }

  private void awaitOutput(String job, String text) {
    Await.until(
        () -> text + " from " + job + ": " + output(job) + slurm.log(),
        LONG,
        () -> output(job).contains(text));
  }

  private String awaitEnd(String job) {
    Await.until(
        () -> "the end of " + job + ": " + slurm.jobState(job) + slurm.log(),
        LONG,
        () ->
            !List.of("", "PENDING", "RUNNING", "COMPLETING", "CONFIGURING")
                .contains(slurm.jobState(job)));
    return slurm.jobState(job);
  }

  /** Two nodes, each with places of its own on the disk that they share here. */
  private void startTwoNodes() throws IOException {
    startSlurm(LocalSlurm.Kind.TWO_NODES);
    Path common = scratch.root().resolve("job.conf");
    for (String node : slurm.nodes()) {
      List<String> lines = new ArrayList<>(Files.readAllLines(common));
      lines.add("BASE=" + base + "/" + node);
      lines.add("RUNTIME=" + scratch.root().resolve("run-" + node));
      lines.add("TIERS=(ssd:" + tier + "-" + node + ":80%)");
      Files.write(Path.of(common + "." + node), lines);
    }
  }

  private void assertNothingLeft() {
    Await.until(
        () -> "the node idle: " + slurm.nodeState() + " " + slurm.nodeReason() + slurm.log(),
        LONG,
        () -> slurm.nodeState().equals("idle"));
    assertThat(slurm.nodeReason()).isEmpty();
    assertThat(Mounts.below(base)).isEmpty();
    assertThat(processes()).isEmpty();
    for (String node : Stream.concat(Stream.of(""), slurm.nodes().stream()).toList()) {
      for (String name : List.of("jobs", "keys", "mnt", "locks")) {
        assertThat(names(base.resolve(node).resolve(name))).as(node + " " + name).isEmpty();
      }
      String run = node.isEmpty() ? "run" : "run-" + node;
      assertThat(names(scratch.root().resolve(run + "-" + user.uid()))).isEmpty();
      assertThat(scratch.root().resolve(run + "-" + user.uid())).doesNotExist();
      assertThat(names(scratch.root().resolve(run))).isEmpty();
    }
  }

  private void assertNoCopies() {
    assertThat(names(tier)).allMatch(name -> name.equals(".outputs-known"));
  }

  private List<String> processes() {
    return Command.run("ps", "-eo", "pid=,stat=,args=")
        .out()
        .lines()
        .filter(l -> l.contains(base + "/") && !l.contains("<defunct>"))
        .toList();
  }

  private long daemon() {
    return processes().stream()
        .filter(l -> l.contains("io.pmfs.cli.Main"))
        .map(l -> Long.parseLong(l.strip().split(" +", 2)[0]))
        .findFirst()
        .orElseThrow(() -> new AssertionError("no daemon: " + processes()));
  }

  private static List<String> names(Path directory) {
    if (!Files.isDirectory(directory)) {
      return List.of();
    }
    try (Stream<Path> list = Files.list(directory)) {
      return list.map(p -> p.getFileName().toString()).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void job_thatAsks_runsOnTheMount() {
    String job =
        submit(
            asked(",stage"),
            "echo $PMFS_MOUNT; grep -c \" $PMFS_MOUNT \" /proc/self/mountinfo; diff -r $PMFS_MOUNT "
                + dataset.root()
                + " && echo same; srun sh -c 'echo step $PMFS_MOUNT'");
    assertThat(awaitEnd(job)).isEqualTo("COMPLETED");
    assertThat(output(job)).startsWith(base + "/mnt/").contains("\n1\n", "same", "step " + base);
    assertNothingLeft();
    assertNoCopies();
  }

  @Test
  void job_thatDoesNotAsk_isLeftAlone() {
    String job = submit("a job of mine", "echo [$PMFS_MOUNT]");
    assertThat(awaitEnd(job)).isEqualTo("COMPLETED");
    assertThat(output(job)).contains("[]");
    assertNothingLeft();
  }

  @Test
  void job_withKeep_leavesCopiesForTheNext() {
    String first = submit(asked(",stage=wait,keep"), "cat $PMFS_MOUNT/*/* >/dev/null");
    assertThat(awaitEnd(first)).isEqualTo("COMPLETED");
    assertNothingLeft();
    assertThat(Installation.files(tier)).isNotEmpty();
    String script = scratch.root() + "/scripts/pmfs stage --check $PMFS_MOUNT";
    String run = "export PMFS_RUNTIME_DIR=" + scratch.root() + "/run-" + user.uid() + "; ";
    String second = submit(asked(",keep"), run + script);
    assertThat(awaitEnd(second)).as(output(second)).isEqualTo("COMPLETED");
    assertNothingLeft();
  }

  @Test
  void scancel_ofAJob_leavesNothing() {
    String job = submit(asked(",stage"), "cd $PMFS_MOUNT; echo runs; exec sleep 1000");
    awaitOutput(job, "runs");
    slurm.slurm("scancel", job).expect(0);
    assertThat(awaitEnd(job)).isEqualTo("CANCELLED");
    assertNothingLeft();
    assertNoCopies();
  }

  @Test
  void timeLimit_ofAJob_leavesNothing() {
    String job =
        submit(asked(""), "trap '' TERM; cd $PMFS_MOUNT; while :; do sleep 1; done", "--time=1");
    assertThat(awaitEnd(job)).isEqualTo("TIMEOUT");
    assertNothingLeft();
    assertNoCopies();
  }

  @Test
  void kill9_ofTheDaemon_jobGoesOn() throws IOException {
    Path go = home().resolve("go");
    String job =
        submit(
            asked(""),
            "echo runs; while [ ! -e %s ]; do sleep 0.2; done; diff -r $PMFS_MOUNT %s && echo same"
                .formatted(go, dataset.root()));
    awaitOutput(job, "runs");
    Command.run("kill", "-KILL", Long.toString(daemon())).expect(0);
    Files.createFile(go);
    assertThat(awaitEnd(job)).isEqualTo("COMPLETED");
    assertThat(output(job)).contains("same");
    assertNothingLeft();
    assertNoCopies();
  }

  @Test
  void kill9_ofAllOfPmfs_epilogueRemovesTheStaleMount() throws IOException {
    String job = submit(asked(",stage"), "echo runs; sleep 1000");
    awaitOutput(job, "runs");
    for (int i = 0; i < 2; i++) {
      for (String process : processes()) {
        Command.run("kill", "-KILL", process.strip().split(" +", 2)[0]);
      }
    }
    slurm.slurm("scancel", job).expect(0);
    awaitEnd(job);
    assertNothingLeft();
    assertNoCopies();
  }

  /** The first one's end leaves the second its mount, also while something of the first reads. */
  @Test
  void twoJobs_ofOneDataset_shareADaemonAndTheLastEndsIt() throws IOException {
    Path go = home().resolve("go");
    String wait = "while [ ! -e %s ]; do diff -r $PMFS_MOUNT %s || exit; done; ";
    String script = "echo $PMFS_MOUNT; " + wait.formatted(go, dataset.root());
    String first = submit(asked(""), "echo $PMFS_MOUNT; cd $PMFS_MOUNT; exec sleep 1000");
    awaitOutput(first, "." + first);
    String second = submit(asked(""), script);
    awaitOutput(second, "." + second);
    long daemon = daemon();
    Status status = status(firstLine(second));
    assertThat(status.text("holders.0.mountpoint")).isEqualTo(dataset(first).toString());
    assertThat(status.text("holders.1.job")).isEqualTo(first);
    assertThat(status.text("holders.2.job")).isEqualTo(second);
    assertThat(status.text("holders.2.user")).isEqualTo(user.name());

    slurm.slurm("scancel", first).expect(0);
    awaitEnd(first);
    awaitOnly(second);
    assertThat(Mounts.below(base))
        .containsExactlyInAnyOrder(dataset(second).toString(), firstLine(second));
    assertThat(daemon()).isEqualTo(daemon);
    Files.createFile(go);
    assertThat(awaitEnd(second)).as(output(second)).isEqualTo("COMPLETED");
    assertNothingLeft();
    assertNoCopies();
  }

  @Test
  void array_ofTenTasks_sharesADaemonAndReadsTheSourceOnce() throws IOException {
    Path go = home().resolve("go");
    String same = "diff -r $PMFS_MOUNT " + dataset.root() + " && echo same; ";
    String wait = "while [ ! -e " + go + " ]; do sleep 0.2; done; ";
    String array =
        submit(
            asked(""),
            "echo $PMFS_MOUNT; " + same + wait + same,
            "--array=1-" + TASKS,
            "--oversubscribe",
            "--output=" + home() + "/task%a.out");
    List<String> tasks = IntStream.rangeClosed(1, TASKS).mapToObj(i -> "task" + i).toList();
    tasks.forEach(task -> awaitOutput(task, "same"));
    List<String> places = tasks.stream().map(this::firstLine).toList();
    assertThat(places).doesNotHaveDuplicates();
    Status status = status(places.get(0));
    // The place that all share, and one for each task.
    assertThat(status.size("holders")).isEqualTo(TASKS + 1);
    assertThat(IntStream.rangeClosed(0, TASKS).mapToObj(i -> status.text(holder(i))))
        .containsAll(places);
    assertThat(status.number("sourceOperations.bytes")).isEqualTo(dataset.bytes());
    assertThat(processes().stream().filter(line -> line.contains("io.pmfs.cli.Main"))).hasSize(1);

    Files.createFile(go);
    for (int i = 1; i <= TASKS; i++) {
      assertThat(awaitEnd(array + "_" + i)).as(output("task" + i)).isEqualTo("COMPLETED");
      assertThat(output("task" + i).lines().filter("same"::equals)).hasSize(2);
    }
    assertNothingLeft();
    assertNoCopies();
  }

  @Test
  void jobs_withATmpOfTheirOwn_shareADaemonAndLeaveNothing() throws IOException {
    startSlurm(LocalSlurm.Kind.PRIVATE_TMP);
    Path go = home().resolve("go");
    Path own = Path.of("/tmp/" + scratch.root().getFileName() + "-own");
    String wait = "while [ ! -e %s ]; do diff -r $PMFS_MOUNT %s || exit; done; echo same";
    String first =
        submit(
            asked(""), "touch " + own + "; echo $PMFS_MOUNT; cd $PMFS_MOUNT; exec sleep 1000", MEM);
    awaitOutput(first, "." + first);
    String second =
        submit(asked(""), "echo $PMFS_MOUNT; " + wait.formatted(go, dataset.root()), MEM);
    awaitOutput(second, "." + second);
    assertThat(own).doesNotExist();
    long daemon = daemon();
    slurm.slurm("scancel", first).expect(0);
    awaitEnd(first);
    awaitOnly(second);
    assertThat(daemon()).isEqualTo(daemon);
    Files.createFile(go);
    assertThat(awaitEnd(second)).as(output(second)).isEqualTo("COMPLETED");
    assertThat(output(second)).contains("same");
    assertNothingLeft();
    assertNoCopies();
  }

  @Test
  void run_inAJobWithATmpOfItsOwn_leavesNothing() throws IOException {
    permitFuse();
    startSlurm(LocalSlurm.Kind.PRIVATE_TMP);
    String run =
        "PMFS_RUNTIME_DIR=/tmp/own %s/scripts/pmfs run --source %s --mountpoint /tmp/data --tier ssd:/tmp/t "
                .formatted(scratch.root(), dataset.root())
            + "--keep-free 0 -- diff -r %s /tmp/data && echo same; ls /tmp"
                .formatted(dataset.root());
    String job = submit("nothing", run, "--mem=900M");
    assertThat(awaitEnd(job)).as(output(job)).isEqualTo("COMPLETED");
    assertThat(output(job)).contains("same");
    assertNothingLeft();
  }

  private static String holder(int number) {
    return "holders." + number + ".mountpoint";
  }

  /** The epilogues of the other jobs are done. */
  private void awaitOnly(String job) {
    Await.until(
        () -> "no job but " + job + ": " + names(base.resolve("jobs")),
        LONG,
        () -> names(base.resolve("jobs")).equals(List.of(job)));
  }

  private String firstLine(String job) {
    return output(job).lines().findFirst().orElseThrow();
  }

  /** The mount point that the mounts of all jobs with that dataset share. */
  private Path dataset(String job) {
    assertThat(firstLine(job)).endsWith("." + job);
    return Path.of(firstLine(job).replaceFirst("\\.\\d+$", ""));
  }

  private Status status(String mountpoint) {
    Map<String, String> runtime = Map.of("PMFS_RUNTIME_DIR", scratch.root().resolve("run") + "");
    String pmfs = scratch.root().resolve("scripts/pmfs").toString();
    return Status.parse(
        Command.run(runtime, LONG, List.of(pmfs, "status", "--json", mountpoint)).expect(0).out());
  }

  @Test
  void prologue_thatCannotMount_jobRunsOnTheSource() throws IOException {
    configure("STRICT=no", "TIERS=(ssd:/dev/null/tier)");
    String job = submit(asked(""), "echo $PMFS_MOUNT; echo why: $PMFS_PROBLEM");
    assertThat(awaitEnd(job)).isEqualTo("COMPLETED");
    assertThat(output(job))
        .startsWith(dataset.root() + "\nwhy: cannot make the directory for copies");
    assertNothingLeft();
  }

  @Test
  void prologue_withASourceThatTheUserMayNotRead_mountsNothing() {
    Command.run("chmod", "700", dataset.root().toString()).expect(0);
    String job = submit(asked(""), "echo $PMFS_MOUNT; echo why: $PMFS_PROBLEM");
    assertThat(awaitEnd(job)).isEqualTo("COMPLETED");
    assertThat(output(job)).startsWith(dataset.root() + "\n").contains("permission denied");
    assertNothingLeft();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "pmfs:source=$(touch /tmp/pmfs-owned)",
        "pmfs:source=/x`touch /tmp/pmfs-owned`",
        "pmfs:source=/etc/../etc",
        "pmfs:source=relative",
        "pmfs:source=--tier",
        "pmfs:source=/x,--allow-other",
        "pmfs:source=/x,stage=$HOME",
        "pmfs:source=/x'\"|&<>*?",
        "pmfs:source=,stage",
        "pmfs:",
      })
  void prologue_ofAHostileComment_refusesItAndTheJobRuns(String comment) {
    String job = submit(comment, "echo [$PMFS_MOUNT]; echo why: $PMFS_PROBLEM");
    assertThat(awaitEnd(job)).isEqualTo("COMPLETED");
    assertThat(output(job)).contains("why: ").doesNotContain("[" + base);
    assertThat(Path.of("/tmp/pmfs-owned")).doesNotExist();
    assertNothingLeft();
    assertNoCopies();
  }

  @Test
  void leftovers_ofAJobWithoutEpilogue_areRemovedByTheNext() throws IOException {
    Path key = Files.createDirectories(base.resolve("keys/%d-00ff".formatted(user.uid())));
    Files.createDirectories(base.resolve("mnt/%d-00ff".formatted(user.uid())));
    Path copies = Files.createDirectories(tier.resolve("%d-00ee".formatted(user.uid())));
    Files.writeString(copies.resolve("copy"), "left");
    user.own(copies.toString());
    assertThat(key).exists();
    assertThat(awaitEnd(submit("nothing", "true"))).isEqualTo("COMPLETED");
    assertNothingLeft();
    assertNoCopies();
  }

  private void addToConfiguration(String line) throws IOException {
    Files.writeString(scratch.root().resolve("job.conf"), line + "\n", StandardOpenOption.APPEND);
  }

  /** What the configuration said before goes on; and where it said nothing yet, nothing happens. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "TIERS=(ssd:$NO_SUCH_VARIABLE:80%)",
        "exit 1",
        "if then",
        "LIMIT=soon",
        "sleep 99"
      })
  void configuration_withAMistake_jobsRunAndTheNodeIsNotDrained(String mistake) throws IOException {
    addToConfiguration(mistake);
    String first = submit(asked(""), "ls ${PMFS_MOUNT:-%s}".formatted(dataset.root()));
    assertThat(awaitEnd(first)).as(output(first)).isEqualTo("COMPLETED");
    assertNothingLeft();

    configure("STRICT=no", "TIERS=(ssd:" + tier + ":80%)");
    String good = submit(asked(""), "echo $PMFS_MOUNT");
    assertThat(awaitEnd(good)).isEqualTo("COMPLETED");
    addToConfiguration(mistake);
    String second = submit(asked(""), "echo $PMFS_MOUNT");
    assertThat(awaitEnd(second)).isEqualTo("COMPLETED");
    assertThat(dataset(second)).isEqualTo(dataset(good)).startsWithRaw(base.resolve("mnt"));
    assertNothingLeft();
    assertNoCopies();
  }

  @Test
  void strict_prologueThatCannotMount_drainsTheNodeAndQueuesTheJobAgain() throws IOException {
    configure("STRICT=yes", "TIERS=(ssd:/dev/null/tier)");
    String job = submit(asked(""), "echo ran");
    Await.until(
        () -> "the node is drained: " + slurm.nodeState() + slurm.log(),
        LONG,
        () -> slurm.nodeState().startsWith("drain"));
    Await.until(
        () -> "the job waits again: " + slurm.jobState(job),
        LONG,
        () -> slurm.jobState(job).equals("PENDING"));
    assertThat(output(job)).isEmpty();
    assertThat(Mounts.below(base)).isEmpty();

    configure("STRICT=yes", "TIERS=(ssd:" + tier + ":80%)");
    String node = slurm.slurm("sinfo", "-h", "-o", "%n").expect(0).out().strip();
    slurm.slurm("scontrol", "update", "nodename=" + node, "state=resume").expect(0);
    // Slurm lets a job that it queued again wait for two minutes and more.
    slurm.slurm("scontrol", "update", "jobid=" + job, "starttime=now");
    slurm.slurm("scontrol", "release", job);
    assertThat(awaitEnd(job)).isEqualTo("COMPLETED");
    assertThat(output(job)).contains("ran");
    assertNothingLeft();
  }

  /** However long ago it began, and although nothing of it runs: others' jobs do not end it. */
  @Test
  void mount_ofAJobWithoutProcesses_staysUntilItsEnd() throws IOException {
    Command granted =
        user.run(
            slurm.environment(),
            "salloc",
            "--no-shell",
            "-n1",
            "--chdir",
            home().toString(),
            "--comment",
            asked(""));
    String job = granted.expect(0).err().replaceAll("(?s).*allocation (\\d+).*", "$1");
    Await.until("the mount", LONG, () -> !Mounts.below(base).isEmpty());
    String key = names(base.resolve("keys")).get(0);
    Path record = base.resolve("keys").resolve(key).resolve(job);
    Files.setLastModifiedTime(record, FileTime.from(Instant.now().minus(Duration.ofDays(9))));

    String other = submit("nothing", "true");
    assertThat(awaitEnd(other)).isEqualTo("COMPLETED");
    Await.until(
        () -> "the epilogue of " + other + slurm.log(),
        LONG,
        () -> !slurm.slurm("squeue", "-h", "-o", "%i").out().contains(other));
    Path go = home().resolve("go");
    String third = submit(asked(""), "ls $PMFS_MOUNT >/dev/null && touch " + go);
    assertThat(awaitEnd(third)).isEqualTo("COMPLETED");
    assertThat(go).exists();
    Await.until(
        () -> "the mount of " + job + ": " + Mounts.below(base),
        LONG,
        () -> Mounts.below(base).size() == 2);
    assertThat(Mounts.below(base)).anyMatch(place -> place.endsWith("." + job));

    slurm.slurm("scancel", job).expect(0);
    assertNothingLeft();
    assertNoCopies();
  }

  /** Slurm knows that it has ended. */
  @Test
  void record_ofAJobThatEndedWithoutEpilogue_isRemovedByTheNext() throws IOException {
    String ended = submit("nothing", "true");
    assertThat(awaitEnd(ended)).isEqualTo("COMPLETED");
    assertNothingLeft();
    Path key = Files.createDirectories(base.resolve("keys/%d-00ff".formatted(user.uid())));
    Files.createDirectories(base.resolve("mnt/%d-00ff".formatted(user.uid())));
    Files.writeString(key.resolve(ended), "slurm " + ended + "\n");
    Files.writeString(key.resolve("99999"), "slurm 99999\n");
    Files.writeString(key.resolve("99998"), "pbs 99998.nobody-answers\n");

    assertThat(awaitEnd(submit("nothing", "true"))).isEqualTo("COMPLETED");

    Await.until(
        () -> "only what nobody knows of: " + names(key),
        LONG,
        () -> names(key).equals(List.of("99998")));
    Files.delete(key.resolve("99998"));
    assertThat(awaitEnd(submit("nothing", "true"))).isEqualTo("COMPLETED");
    assertNothingLeft();
  }

  /** Without any help of an administrator, and with what the script has trapped itself. */
  @ParameterizedTest
  @ValueSource(strings = {"end", "exit", "cancel"})
  void userBeginAndEnd_mountForSeveralSteps(String how) throws IOException {
    permitFuse();
    String begin = scratch.root().resolve("scripts/slurm/user/begin").toString();
    String steps =
        "export PMFS_RUNTIME_DIR=%s/own; ".formatted(home())
            + "trap 'echo mine $? >trapped' EXIT; "
            + ". %s %s --tier ssd:%s/own-tier --keep-free 0; "
                .formatted(begin, dataset.root(), home())
            + "echo at $PMFS_MOUNT; diff -r $PMFS_MOUNT %s && echo same; ".formatted(dataset.root())
            + "srun --overlap ls $PMFS_MOUNT >/dev/null && echo step; ";
    String end =
        switch (how) {
          case "end" -> ". " + begin.replaceAll("begin$", "end") + "; echo unmounted; exit 3";
          case "exit" -> "exit 3";
          default -> "echo waits; while :; do sleep 1; done";
        };
    Path script = Files.writeString(home().resolve("script"), steps + end + "\n");
    user.own(script.toString());
    String job = submit("nothing", "exec bash " + script);
    if (how.equals("cancel")) {
      awaitOutput(job, "waits");
      slurm.slurm("scancel", "--batch", "--signal=TERM", job).expect(0);
    }
    assertThat(awaitEnd(job)).as(output(job)).isIn("FAILED", "CANCELLED", "COMPLETED");
    assertThat(output(job)).contains("same", "step").doesNotContain("at " + dataset.root());
    Await.until(
        "the script's own trap",
        LONG,
        () -> Command.run("cat", home() + "/trapped").out().startsWith("mine "));
    if (!how.equals("cancel")) {
      assertThat(Command.run("cat", home() + "/trapped").out()).isEqualTo("mine 3\n");
    }
    Await.until(
        () -> "nothing is mounted: " + Mounts.below(Path.of("/tmp")),
        LONG,
        () ->
            Mounts.below(Path.of("/tmp")).stream()
                .noneMatch(m -> m.toString().endsWith("-" + job)));
    assertNothingLeft();
  }

  /** Slurm kills with a step what the step has started, and nothing that another step reads. */
  @Test
  void twoSteps_thatRunPmfsThemselves_doNotEndEachOthersMount() throws IOException {
    permitFuse();
    startSlurm(LocalSlurm.Kind.CGROUPS);
    Path go = home().resolve("go");
    String run =
        "srun --overlap -n1 --mem=0 %s/scripts/pmfs run --source %s --tier ssd:%s/t --keep-free 0 -- "
            .formatted(scratch.root(), dataset.root(), home());
    String wait = "while [ ! -e %s ]; do sleep 0.1; done; ".formatted(go);
    Path first = program("first", ": >" + home() + "/began1; " + wait.replace("/go ", "/go1 "));
    Path second =
        program(
            "second",
            ": >" + home() + "/began2; " + wait + "diff -r $PMFS_MOUNT " + dataset.root());
    String job =
        submit(
            "nothing",
            "export PMFS_RUNTIME_DIR=%s/own; ".formatted(home())
                + "(%s%s; echo first $?) & ".formatted(run, first)
                + "while [ ! -e %s/began1 ]; do sleep 0.1; done; ".formatted(home())
                + "%s%s; echo second $?; wait".formatted(run, second),
            "--mem=900M");
    Path began = home().resolve("began2");
    Await.until(() -> "both: " + output(job) + slurm.log(), LONG, () -> Files.exists(began));
    Files.createFile(home().resolve("go1"));
    awaitOutput(job, "first 0");
    Files.createFile(go);
    assertThat(awaitEnd(job)).as(output(job)).isEqualTo("COMPLETED");
    assertThat(output(job)).contains("second 0").doesNotContain("shares the daemon");
    assertNothingLeft();
  }

  /** The home directory names the tier that the prologue has used. */
  @Test
  void pmfsRun_afterAJobWithAPrologue_readsThatJobsCopies() throws IOException {
    permitFuse();
    String first = submit(asked(",stage=wait,keep"), "cat $PMFS_MOUNT/*/* >/dev/null");
    assertThat(awaitEnd(first)).isEqualTo("COMPLETED");
    assertNothingLeft();
    Path second =
        program(
            "second",
            "diff -r $PMFS_MOUNT %s && exec %s/scripts/pmfs status --json $PMFS_MOUNT"
                .formatted(dataset.root(), scratch.root()));
    String run =
        "export HOME=%s PMFS_RUNTIME_DIR=%s/own; exec %s/scripts/pmfs run --source %s --tier ssd:%s/t --keep-free 0 -- %s 2>/dev/null"
            .formatted(home(), home(), scratch.root(), dataset.root(), home(), second);
    String job = submit("nothing", run);
    assertThat(awaitEnd(job)).as(output(job)).isEqualTo("COMPLETED");
    assertThat(Status.parse(output(job)).number("sourceOperations.bytes")).isZero();
    assertNothingLeft();
  }

  private Path program(String name, String text) throws IOException {
    Path file = home().resolve(name);
    program(file, "#!/bin/bash\n" + text + "\n");
    return file;
  }

  /** Slurm counts and bounds what the job takes, and not what its mount takes. */
  @Test
  void memoryLimit_ofAJob_endsItAndNotTheMountThatOthersUse() throws IOException {
    startSlurm(LocalSlurm.Kind.CGROUPS);
    Path go = home().resolve("go");
    String other =
        submit(
            asked(""),
            "echo runs; while [ ! -e %s ]; do sleep 0.2; done; diff -r $PMFS_MOUNT %s && echo same"
                .formatted(go, dataset.root()),
            "--mem=100M");
    awaitOutput(other, "runs");
    String groups = Files.readString(Path.of("/proc/" + daemon() + "/cgroup"));
    assertThat(groups).doesNotContain("job_" + other);
    String job = submit(asked(""), "cat $PMFS_MOUNT/*/* >/dev/null; tail /dev/zero", "--mem=100M");
    assertThat(awaitEnd(job)).as(output(job)).isEqualTo("OUT_OF_MEMORY");
    Files.createFile(go);
    assertThat(awaitEnd(other)).as(output(other)).isEqualTo("COMPLETED");
    assertThat(output(other)).contains("same");
    assertNothingLeft();
    assertNoCopies();
  }

  /** What the daemon of pmfs run takes counts in the job; it is killed like everything in it. */
  @Test
  void memoryLimit_ofAJobThatRunsPmfsItself_leavesNothing() throws IOException {
    permitFuse();
    startSlurm(LocalSlurm.Kind.CGROUPS);
    Path mountpoint = home().resolve("data");
    String run =
        "PMFS_RUNTIME_DIR=%s/own %s/scripts/pmfs run --source %s --mountpoint %s --tier ssd:%s/t "
                .formatted(home(), scratch.root(), dataset.root(), mountpoint, home())
            + "--keep-free 0 -- ";
    String job = submit("nothing", run + "tail /dev/zero", "--mem=900M");
    assertThat(awaitEnd(job)).as(output(job)).isIn("OUT_OF_MEMORY", "FAILED");
    String again =
        submit(
            "nothing", run + "diff -r %s %s".formatted(dataset.root(), mountpoint), "--mem=900M");
    assertThat(awaitEnd(again)).as(output(again)).isEqualTo("COMPLETED");
    Await.until("it is unmounted", LONG, () -> Mounts.below(home()).isEmpty());
    assertNothingLeft();
  }

  @Test
  void cluster_isMountedByTheProloguesOfTheJobsNodes() throws IOException {
    startTwoNodes();
    String status =
        "PMFS_RUNTIME_DIR=%s/run-$SLURMD_NODENAME-%d %s/scripts/pmfs status $PMFS_MOUNT"
            .formatted(scratch.root(), user.uid(), scratch.root());
    String members =
        "for i in $(seq 30); do %s | grep -c \"^node \" | grep -qx 2 && break; sleep 1; done; %s; "
            .formatted(status, status);
    String step =
        "diff -r $PMFS_MOUNT %s && echo same on $SLURMD_NODENAME".formatted(dataset.root());
    String job =
        submit(
            asked(",cluster"),
            "srun sh -c '" + members + step + "'",
            "--nodes=2",
            "--ntasks=2",
            "--ntasks-per-node=1",
            "--time=3");
    assertThat(awaitEnd(job)).as(output(job)).isEqualTo("COMPLETED");
    for (String node : slurm.nodes()) {
      assertThat(output(job)).contains("same on " + node);
    }
    assertThat(home().resolve(".config/pmfs/job-secret")).isRegularFile();
    assertNothingLeft();
  }

  /**
   * By lines like those of docs/slurm.md, with programs that answer as the schedulers' own are
   * documented to: neither scheduler is here.
   */
  @ParameterizedTest
  @ValueSource(strings = {"pbs", "flux"})
  void otherSchedulers_areAskedWhetherAJobHasEnded(String scheduler) throws IOException {
    Path programs = scratch.directory("programs");
    Path ended = scratch.root().resolve("ended");
    program(
        programs.resolve("qstat"),
        "#!/bin/sh\n[ ! -e %s.${3##*.} ] || s=F; printf 'Job Id: %%s\\n    job_state = %%s\\n' \"$3\" ${s:-R}\n"
            .formatted(ended));
    program(
        programs.resolve("flux"),
        "#!/bin/sh\nfor id; do :; done; [ ! -e %s.${id##*.} ] || s=INACTIVE; echo ${s:-RUN}\n"
            .formatted(ended));
    addToConfiguration("PATH=%s:/usr/sbin:/usr/bin:/sbin:/bin".formatted(programs));
    Map<String, String> first = new HashMap<>();
    first.put("PMFS_SCHEDULER", scheduler);
    first.put("PMFS_SCHEDULER_JOB", "8012.one");
    first.put("SLURM_JOB_ID", "71");
    first.put("SLURM_JOB_UID", Long.toString(user.uid()));
    first.put("SLURM_JOB_COMMENT", asked(""));
    jobScript(first, "prolog");
    jobScript(first, "prolog");
    assertThat(Mounts.below(base)).hasSize(2);
    Map<String, String> second = new HashMap<>(first);
    second.put("PMFS_SCHEDULER_JOB", "8012.two");
    second.put("SLURM_JOB_ID", "72");
    jobScript(second, "prolog");
    assertThat(Mounts.below(base)).hasSize(3);
    String place =
        Mounts.below(base).stream()
            .filter(mount -> mount.endsWith(".72"))
            .findFirst()
            .orElseThrow();
    assertThat(status(place).text("holders.1.job")).isEqualTo("8012.one");

    Map<String, String> other = new HashMap<>(first);
    other.put("SLURM_JOB_ID", "73");
    other.put("SLURM_JOB_COMMENT", "");
    jobScript(other, "epilog");
    assertThat(Mounts.below(base)).as("both jobs run").hasSize(3);
    Files.createFile(Path.of(ended + ".one"));
    jobScript(other, "epilog");
    assertThat(Mounts.below(base)).as("the second job runs").hasSize(2).contains(place);
    Files.createFile(Path.of(ended + ".two"));
    jobScript(other, "epilog");
    assertNothingLeft();

    Files.delete(Path.of(ended + ".one"));
    jobScript(first, "prolog");
    assertThat(Mounts.below(base)).hasSize(2);
    jobScript(first, "epilog");
    assertNothingLeft();
    assertNoCopies();
  }

  private void jobScript(Map<String, String> environment, String when) {
    Map<String, String> all = new HashMap<>(environment);
    all.put("PMFS_JOB_CONF", scratch.root().resolve("job.conf").toString());
    String script = scratch.root().resolve("scripts/slurm/pmfs-job").toString();
    Command.run(all, LONG, List.of(script, when)).expect(0);
  }

  /** As they are, but for where the dataset is and how large the nodes are. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "pytorch, 1",
        "tensorflow, 1",
        "pytorch-prolog, 1",
        "cluster, 2",
        "cluster-prolog, 2",
        "several-steps, 2"
      })
  void example_trains(String nameAndNodes) throws IOException {
    String name = nameAndNodes.replaceFirst(",.*", "");
    int nodes = Integer.parseInt(nameAndNodes.replaceFirst(".*, ", ""));
    permitFuse();
    if (nodes > 1) {
      startTwoNodes();
    }
    Path programs = scratch.directory("home/bin");
    for (String program : List.of("python", "torchrun")) {
      program(
          programs.resolve(program),
          """
          #!/bin/sh
          for word; do
            case $before in --data | --data_dir) data=$word ;; esac
            before=$word
          done
          : "${data:=$before}"
          grep -q " $data " /proc/self/mountinfo && diff -r "$data" %s &&
            echo "trained on $SLURMD_NODENAME"
          """
              .formatted(dataset.root()));
    }
    program(
        programs.resolve("pmfs"),
        "#!/bin/sh\nexec env PMFS_RUNTIME_DIR=%s/own %s/scripts/pmfs \"$@\"\n"
            .formatted(home(), scratch.root()));
    Path example = scratch.root().resolve("scripts/slurm/examples/" + name + ".sbatch");
    String text =
        Files.readString(example)
            .replaceAll("/lustre/imagenet(-tfrecord)?", dataset.root().toString())
            .replace("/opt/pmfs/scripts", scratch.root().resolve("scripts").toString())
            .replace("/local/$USER", home().toString())
            .replace(":80%", ":1G")
            .replace("--nodes=4", "--nodes=" + nodes)
            .replaceAll("#SBATCH --(gpus|cpus)-per-.*", "");
    Path script = Files.writeString(home().resolve("script"), text);
    Map<String, String> environment = new HashMap<>(slurm.environment());
    environment.put("PATH", programs + ":" + System.getenv("PATH"));
    environment.put("HOME", home().toString());
    String job =
        user.run(
                environment,
                "sbatch",
                "--parsable",
                "--chdir",
                home().toString(),
                "--output",
                home() + "/%j.out",
                script.toString())
            .expect(0)
            .out()
            .strip();
    assertThat(awaitEnd(job)).as(output(job)).isEqualTo("COMPLETED");
    int steps = name.equals("several-steps") ? 2 : 1;
    assertThat(output(job).lines().filter(line -> line.startsWith("trained on")))
        .hasSize(nodes * steps);
    Await.until("it is unmounted", LONG, () -> Mounts.below(home()).isEmpty());
    assertNothingLeft();
  }

  private static void program(Path file, String text) throws IOException {
    Files.writeString(file, text);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  private void permitFuse() {
    Machine.requireCommand("fusermount3");
    user.openFuse();
  }

  @Test
  void hundredJobs_killedAtRandomMoments_leaveNothing() throws Exception {
    long seed = System.nanoTime();
    Random random = new Random(seed);
    for (int i = 0; i < 100; i += 2) {
      List<String> jobs = new ArrayList<>();
      for (int j = 0; j < 2; j++) {
        String how = random.nextBoolean() ? ",stage" : ",stage=wait,keep";
        jobs.add(submit(asked(how), "cat $PMFS_MOUNT/*/* >/dev/null; cd $PMFS_MOUNT; sleep 60"));
      }
      for (String job : jobs) {
        Thread.sleep(random.nextInt(3000));
        switch (random.nextInt(3)) {
          case 0 -> slurm.slurm("scancel", job).expect(0);
          case 1 -> slurm.slurm("scancel", "--signal=KILL", job);
          default -> {
            for (String process : processes()) {
              Command.run("kill", "-KILL", process.strip().split(" +", 2)[0]);
            }
            slurm.slurm("scancel", job).expect(0);
          }
        }
      }
      for (String job : jobs) {
        slurm.slurm("scancel", job);
        assertThat(awaitEnd(job)).as("seed %s: %s", seed, output(job)).isNotEqualTo("RUNNING");
      }
    }
    assertNothingLeft();
  }
}
