package io.pmfs.settings;

import static org.assertj.core.api.Assertions.assertThat;

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

  @Test
  void of_anotherProcess_isInItsEnvironment() throws IOException {
    Path process = Files.createDirectories(root.resolve("proc/17"));
    Files.writeString(process.resolve("environ"), "A=SLURM_JOB_ID=1\0SLURM_JOB_ID=42\0B=2\0");

    assertThat(SchedulerJob.of(17, surroundings(Map.of()))).isEqualTo("42");
    assertThat(SchedulerJob.of(18, surroundings(Map.of()))).isNull();
  }

  @Test
  void holder_ofAProloguesMount_isTheJobThatItServes() {
    Map<String, String> environment = Map.of("PMFS_SERVED_JOB", "42", "PMFS_CALLER", "17");
    Holder holder =
        Holder.calling(root, "0:30", Instant.ofEpochSecond(0), surroundings(environment));

    assertThat(holder)
        .isEqualTo(new Holder(root.toString(), "0:30", "root", 17, "42", "1970-01-01T00:00:00Z"));
  }
}
