package io.pmfs.daemon.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.daemon.report.RecentReads.Counts;
import io.pmfs.daemon.report.RecentReads.Origins;
import java.util.List;
import org.junit.jupiter.api.Test;

final class RecentReadsTest {
  /** The number of samples that are kept. */
  private static final int SAMPLES = 60;

  private long requests;
  private Counts present = Counts.NONE;
  private final RecentReads reads =
      new RecentReads(() -> present, new RecentRequests(() -> requests));

  private static Counts counts(
      long bytes, long sourceBytes, long copied, long copiedAgain, long evicted) {
    return new Counts(bytes, sourceBytes, copied, copiedAgain, evicted, Origins.NONE);
  }

  private void become(long bytes, long sourceBytes) {
    present = counts(bytes, sourceBytes, 0, 0, 0);
  }

  @Test
  void counts_ofAYoungDaemon_areAllSinceItsStart() {
    assertThat(reads.counts()).isEqualTo(Counts.NONE);
    become(18, 18);
    assertThat(reads.counts()).isEqualTo(present);
    reads.sample();
    become(36, 18);
    assertThat(reads.counts()).isEqualTo(present);
    assertThat(reads.counts().isSourceSpared()).isTrue();
  }

  @Test
  void counts_afterALongTime_areThoseOfTheLastSamples() {
    for (int i = 1; i <= SAMPLES; i++) {
      become(10L * i, 10L * i);
      reads.sample();
    }
    long before = present.bytes();
    for (int i = 1; i <= SAMPLES; i++) {
      become(before + 10L * i, before);
      reads.sample();
    }

    assertThat(reads.counts()).isEqualTo(counts(10L * SAMPLES, 0, 0, 0, 0));
    assertThat(reads.counts().isSourceSpared()).isTrue();
  }

  @Test
  void sample_whileNothingIsRead_forgetsNothing() {
    become(18, 18);
    for (int i = 0; i < 3 * SAMPLES; i++) {
      reads.sample();
    }

    assertThat(reads.counts()).isEqualTo(present);
  }

  @Test
  void isSourceSpared_byATenthOrMore() {
    assertThat(counts(54, 57, 0, 0, 0).isSourceSpared()).isFalse();
    assertThat(counts(100, 91, 0, 0, 0).isSourceSpared()).isFalse();
    assertThat(counts(100, 90, 0, 0, 0).isSourceSpared()).isTrue();
    assertThat(counts(1, 1, 0, 0, 0).isSourceSpared()).isFalse();
    assertThat(counts(1, 0, 0, 0, 0).isSourceSpared()).isTrue();
    assertThat(Counts.NONE.isSourceSpared()).isFalse();
  }

  @Test
  void minus_ofOrigins_countsATierThatWasNotThereFromZero() {
    Origins earlier = new Origins(List.of(5L), 1, 6, 2, 3, 4, 5);
    Origins now = new Origins(List.of(15L, 7L), 11, 66, 22, 33, 44, 55);

    assertThat(now.minus(earlier)).isEqualTo(new Origins(List.of(10L, 7L), 10, 60, 20, 30, 40, 50));
    assertThat(now.minus(Origins.NONE)).isEqualTo(now);
    assertThat(now.bytes()).isEqualTo(15 + 7 + 11 + 66 + 22 + 33);
  }
}
