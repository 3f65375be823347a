package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Jobs under Slurm that end in any way, prologues that fail and daemons that are killed: the node
 * takes the next job, and nothing is left.
 */
@OnRequest(value = "jobs", what = "jobs under Slurm")
final class SlurmFailureIT extends SlurmJobs {
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
