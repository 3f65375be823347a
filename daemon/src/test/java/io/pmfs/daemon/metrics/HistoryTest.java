package io.pmfs.daemon.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Requested;
import java.nio.file.Path;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class HistoryTest {
  @TempDir private Path directory;
  private Instant now = Instant.EPOCH;

  @Test
  void hour_ofSeveral_isTheLastOne() throws Exception {
    try (MeasuredDataset dataset = new MeasuredDataset(directory)) {
      History history = new History(() -> dataset.status(true), () -> now);
      for (int i = 0; i < Requested.count("large", 24, 3) * 720; i++) {
        now = now.plus(History.INTERVAL);
        history.sample();
      }
      History.Hour hour = history.hour();

      assertThat(hour.samples()).hasSize(722);
      assertThat(hour.samples().get(721).timeMillis() - hour.samples().get(0).timeMillis())
          .isEqualTo(3_600_000);
    }
  }

  @Test
  void hour_justBegun_endsWithThePresent() throws Exception {
    try (MeasuredDataset dataset = new MeasuredDataset(directory)) {
      History history = new History(() -> dataset.status(false), () -> now);
      history.sample();
      dataset.read(MeasuredDataset.SIZE);
      dataset.read(10);

      History.Hour hour = history.hour();

      assertThat(hour.tiers()).containsExactly("pm:/pm", "ssd:/ssd");
      assertThat(hour.samples()).hasSize(2);
      assertThat(hour.samples().get(0).missed()).isZero();
      assertThat(hour.samples().get(1).missed()).isEqualTo(5000);
      assertThat(hour.samples().get(1).tiers()).containsExactly(10L, 0L);
      assertThat(hour.samples().get(1).requests()).isEqualTo(2);
    }
  }
}
