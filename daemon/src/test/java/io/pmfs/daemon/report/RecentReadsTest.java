package io.pmfs.daemon.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.daemon.report.RecentReads.Counts;
import org.junit.jupiter.api.Test;

final class RecentReadsTest {
  /** The number of samples that are kept. */
  private static final int SAMPLES = 60;

  private Counts present = Counts.NONE;
  private final RecentReads reads = new RecentReads(() -> present);

  private void become(long bytes, long sourceBytes) {
    present = new Counts(bytes, sourceBytes, 0, 0, 0);
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

    assertThat(reads.counts()).isEqualTo(new Counts(10L * SAMPLES, 0, 0, 0, 0));
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
    assertThat(new Counts(54, 57, 0, 0, 0).isSourceSpared()).isFalse();
    assertThat(new Counts(100, 91, 0, 0, 0).isSourceSpared()).isFalse();
    assertThat(new Counts(100, 90, 0, 0, 0).isSourceSpared()).isTrue();
    assertThat(new Counts(1, 1, 0, 0, 0).isSourceSpared()).isFalse();
    assertThat(new Counts(1, 0, 0, 0, 0).isSourceSpared()).isTrue();
    assertThat(Counts.NONE.isSourceSpared()).isFalse();
  }
}
