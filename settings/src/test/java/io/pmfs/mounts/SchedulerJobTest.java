package io.pmfs.mounts;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class SchedulerJobTest {
  @TempDir private Path root;

  private Surroundings surroundings(Map<String, String> environment) {
    return new Surroundings(environment, root, 0, "root", root);
  }

  @Test
  void own_inAJobOfAnyScheduler_isItsNumber() {
    assertThat(SchedulerJob.own(surroundings(Map.of()))).isNull();
    assertThat(SchedulerJob.own(surroundings(Map.of("SLURM_JOB_ID", "42")))).isEqualTo("42");
    assertThat(SchedulerJob.own(surroundings(Map.of("PBS_JOBID", "7.host")))).isEqualTo("7.host");
    assertThat(SchedulerJob.own(surroundings(Map.of("PMFS_SERVED_JOB", "42")))).isNull();
  }

  private boolean endsBefore(String environment, Map<String, String> own) throws IOException {
    Path process = Files.createDirectories(root.resolve("proc/17"));
    Files.writeString(process.resolve("environ"), environment.replace(' ', '\0'));
    return SchedulerJob.endsBefore(17, surroundings(own));
  }

  @Test
  void process_ofAnotherJob_endsBefore() throws IOException {
    String other = "A=SLURM_JOB_ID=1 SLURM_JOB_ID=42 B=2 ";

    assertThat(endsBefore(other, Map.of())).isTrue();
    assertThat(endsBefore(other, Map.of("SLURM_JOB_ID", "43"))).isTrue();
    assertThat(endsBefore(other, Map.of("SLURM_JOB_ID", "42"))).isFalse();
    assertThat(endsBefore("A=1 ", Map.of("SLURM_JOB_ID", "42"))).isFalse();
    assertThat(SchedulerJob.endsBefore(18, surroundings(Map.of()))).isFalse();
  }

  @Test
  void process_ofAnotherStep_endsBefore() throws IOException {
    String step0 = "SLURM_JOB_ID=42 SLURM_STEP_ID=0 ";
    Map<String, String> script = Map.of("SLURM_JOB_ID", "42");
    Map<String, String> step1 = Map.of("SLURM_JOB_ID", "42", "SLURM_STEP_ID", "1");

    assertThat(endsBefore(step0, script)).isTrue();
    assertThat(endsBefore(step0, step1)).isTrue();
    assertThat(endsBefore("SLURM_JOB_ID=42 SLURM_STEP_ID=1 ", step1)).isFalse();
    assertThat(endsBefore("SLURM_JOB_ID=42 ", step1)).as("of the script").isFalse();
    assertThat(endsBefore("SLURM_JOB_ID=42 SLURM_STEP_ID=4294967291 ", step1)).isFalse();
  }

  @Test
  void holder_ofAProloguesMount_isTheJobThatItServes() {
    Map<String, String> environment = Map.of("PMFS_SERVED_JOB", "42", "PMFS_CALLER", "17");
    MountOwner holder =
        MountOwner.calling(root, "0:30", Instant.ofEpochSecond(0), surroundings(environment));

    assertThat(holder)
        .isEqualTo(
            new MountOwner(root.toString(), "0:30", "root", 17, "42", "1970-01-01T00:00:00Z"));
  }
}
