package io.pmfs.stage;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class PaceTest {
  private static final long SECOND = 1_000_000_000L;
  private final AtomicLong now = new AtomicLong(12345);

  @Test
  void reserve_ofBytes_isSpacedByTheirTime() {
    Pace pace = new Pace(1000, 0, now::get);

    assertThat(pace.reserve(1, 500)).isZero();
    assertThat(pace.reserve(1, 250)).isEqualTo(SECOND / 2);
    assertThat(pace.reserve(9, 1)).isEqualTo(SECOND / 4 * 3);
    now.addAndGet(SECOND / 4 * 3);
    assertThat(pace.reserve(1, 1)).isEqualTo(SECOND / 1000);
  }

  @Test
  void reserve_afterAPause_savesNothingUp() {
    Pace pace = new Pace(0, 10, now::get);
    pace.reserve(1, 1 << 30);
    now.addAndGet(100 * SECOND);

    assertThat(pace.reserve(1, 0)).isZero();
    assertThat(pace.reserve(1, 0)).isEqualTo(SECOND / 10);
  }

  @Test
  void reserve_ofBoth_waitsForTheSlower() {
    Pace pace = new Pace(100, 10, now::get);
    pace.reserve(1, 100);

    assertThat(pace.reserve(1, 1)).isEqualTo(SECOND);
  }

  @Test
  void await_inAHurry_doesNotWait() {
    Pace pace = new Pace(1, 0, now::get);
    pace.await(1, 1 << 30, () -> false);
    pace.await(1, 1, () -> true);

    assertThat(pace.reserve(0, 0)).isGreaterThan(SECOND);
  }

  @Test
  void await_ofWhatIsDue_waitsForIt() {
    Pace pace = new Pace(0, 100, now::get);
    long start = System.nanoTime();
    pace.await(2, 0, () -> false);
    pace.await(1, 0, () -> false);

    assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(SECOND / 50);
  }
}
