package io.pmfs.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.machine.ExitStatus;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

final class VerdictTest {
  private static final Finding FINE = new Finding(Finding.Grade.OK, "java", "17");
  private static final Finding WARNING = new Finding(Finding.Grade.WARN, "clock", "none found");
  private static final Finding BAD = new Finding(Finding.Grade.FAIL, "source", "/s: gone");
  private static final Finding WORSE = new Finding(Finding.Grade.FAIL, "tier", "/t: gone");
  private static final Path PLACE = Path.of("/mnt/d");

  @Test
  void machine_withoutProblems_canMount() {
    assertThat(Verdict.ofMachine(List.of(FINE)))
        .isEqualTo(new Verdict(ExitStatus.DONE, "pmfs can mount here."));
    assertThat(Verdict.ofMachine(List.of(WARNING, FINE)).sentence())
        .isEqualTo("pmfs can mount here, with 1 warning.");
  }

  @Test
  void machine_withProblems_namesTheFirst() {
    assertThat(Verdict.ofMachine(List.of(WARNING, BAD, WORSE)))
        .isEqualTo(
            new Verdict(
                ExitStatus.CANNOT,
                "pmfs cannot mount here: 2 problems; first fix source: /s: gone"));
  }

  @Test
  void mount_withMissingNodes_isNotHealthy() {
    Finding missing = new Finding(Finding.Grade.PART, "cluster", "3 of 4 expected nodes");
    assertThat(Verdict.ofMount(PLACE, true, List.of(WARNING, missing)))
        .isEqualTo(
            new Verdict(
                ExitStatus.PARTLY,
                "/mnt/d is not healthy: it works in part: cluster: 3 of 4 expected nodes"));
    assertThat(Verdict.ofMount(PLACE, true, List.of(missing, BAD)).exitStatus())
        .isEqualTo(ExitStatus.CANNOT);
  }

  @Test
  void mount_servedOrNot_saysWhich() {
    assertThat(Verdict.ofMount(PLACE, true, List.of(FINE)).sentence())
        .isEqualTo("/mnt/d is healthy.");
    assertThat(Verdict.ofMount(PLACE, true, List.of(BAD)).sentence())
        .isEqualTo("/mnt/d is not healthy: 1 problem; first fix source: /s: gone");
    assertThat(Verdict.ofMount(PLACE, false, List.of(FINE)).sentence())
        .isEqualTo("pmfs can mount /mnt/d.");
  }
}
