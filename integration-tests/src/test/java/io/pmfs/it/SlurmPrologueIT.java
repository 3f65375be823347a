package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Jobs that ask for a mount, under Slurm: the prologue makes it, and the epilogue ends it. */
@OnRequest(value = "jobs", what = "jobs under Slurm")
final class SlurmPrologueIT extends SlurmJobs {
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
                .noneMatch(m -> m.startsWith("/tmp/pmfs-" + job + ".")));
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
            .replace("/usr/lib/pmfs/slurm", scratch.root().resolve("scripts/slurm").toString())
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

  private void jobScript(Map<String, String> environment, String when) {
    Map<String, String> all = new HashMap<>(environment);
    all.put("PMFS_JOB_CONF", scratch.root().resolve("job.conf").toString());
    String script = scratch.root().resolve("scripts/slurm/pmfs-job").toString();
    Command.run(all, LONG, List.of(script, when)).expect(0);
  }
}
