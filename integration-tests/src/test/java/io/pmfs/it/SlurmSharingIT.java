package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * Several jobs and steps on one dataset, under Slurm: they share a daemon, and none ends the mount
 * of another.
 */
@OnRequest(value = "jobs", what = "jobs under Slurm")
final class SlurmSharingIT extends SlurmJobs {
  private static final int TASKS = 10;

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

  @Test
  void cluster_isMountedByTheProloguesOfTheJobsNodes() throws IOException {
    startTwoNodes();
    String status =
        "PMFS_RUNTIME_DIR=%s/run-$SLURMD_NODENAME-%d %s/scripts/pmfs status $PMFS_MOUNT"
            .formatted(scratch.root(), user.uid(), scratch.root());
    String members =
        "for i in $(seq 30); do %s | grep -c \"^  node \" | grep -qx 2 && break; sleep 1; done; %s; "
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
    assertThat(output(job).lines().filter(line -> line.startsWith("  node ")))
        .as("each of the two nodes lists both: %s", output(job))
        .hasSize(4);
    assertThat(home().resolve(".config/pmfs/job-secret")).isRegularFile();
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
}
