package io.pmfs.daemon;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class KeptMountTest {
  private static final String DEVICE = "0:30";
  private static final String PLACE = "/run/pmfs/0123456789abcdef-0-30.kept";

  @TempDir private Path root;
  private final AtomicLong now = new AtomicLong();

  @BeforeEach
  void makeProc() throws IOException {
    Files.createDirectories(root.resolve("proc/self"));
  }

  private KeptMount kept(Duration time) {
    return new KeptMount(
        time, new Surroundings(Map.of(), root, 1, "ada", root), null, () -> now.get());
  }

  private void mounted(String... places) throws IOException {
    List<String> lines =
        List.of(places).stream()
            .map(place -> "30 22 " + DEVICE + " / " + place + " ro - fuse.pmfs /source ro")
            .toList();
    Files.write(root.resolve("proc/self/mountinfo"), lines);
  }

  private void pass(Duration time) {
    now.addAndGet(time.toNanos());
  }

  @Test
  void left_whileThereIsAMountPoint_isNothing() throws IOException {
    KeptMount kept = kept(Duration.ofMinutes(10));
    mounted("/mnt/a", PLACE);
    kept.look(DEVICE);
    assertThat(kept.left()).isNull();
  }

  @Test
  void left_afterTheLastMountPoint_counts() throws IOException {
    KeptMount kept = kept(Duration.ofMinutes(10));
    mounted(PLACE);
    kept.look(DEVICE);
    pass(Duration.ofMinutes(4));
    kept.look(DEVICE);
    assertThat(kept.left()).isEqualTo(Duration.ofMinutes(6));
    pass(Duration.ofMinutes(7));
    assertThat(kept.left()).isZero();
  }

  @Test
  void left_afterAnotherMount_beginsAgain() throws IOException {
    KeptMount kept = kept(Duration.ofMinutes(10));
    mounted(PLACE);
    kept.look(DEVICE);
    pass(Duration.ofMinutes(4));
    mounted("/mnt/b", PLACE);
    kept.look(DEVICE);
    assertThat(kept.left()).isNull();
    mounted(PLACE);
    kept.look(DEVICE);
    assertThat(kept.left()).isEqualTo(Duration.ofMinutes(10));
  }

  @Test
  void left_ofAMountPointWhoseNameEndsAlike_isNothing() throws IOException {
    KeptMount kept = kept(Duration.ofMinutes(10));
    mounted("/srv/x.kept", PLACE);
    kept.look(DEVICE);
    assertThat(kept.left()).isNull();
  }

  @Test
  void left_ofASessionThatASupervisorKeeps_counts() throws IOException {
    KeptMount kept = kept(Duration.ofMinutes(10));
    mounted("/run/pmfs/4711-aZ09aZ09aZ.kept");
    kept.look(DEVICE);
    assertThat(kept.left()).isEqualTo(Duration.ofMinutes(10));
  }

  @Test
  void look_withoutTheOption_keepsNothing() throws IOException {
    KeptMount kept = kept(Duration.ZERO);
    mounted(PLACE);
    kept.look(DEVICE);
    assertThat(kept.left()).isNull();
  }
}
