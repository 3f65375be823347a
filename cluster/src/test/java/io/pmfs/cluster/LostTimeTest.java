package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

final class LostTimeTest {
  private static final Duration MOST = Duration.ofSeconds(4);

  private final AtomicLong nanos = new AtomicLong();
  private final LostTime lostTime = new LostTime(MOST, nanos::get);

  private void lose(String path, int millis) {
    try (LostTime.Question asked = lostTime.ask(FileName.of(path))) {
      lose(asked, millis);
    }
  }

  private static void lose(LostTime.Question asked, int millis) {
    long time = Duration.ofMillis(millis).toNanos();
    asked.patience().use(time);
    asked.patience().lost(time);
  }

  private long leftMillis(String path) {
    try (LostTime.Question asked = lostTime.ask(FileName.of(path))) {
      return asked.patience().leftNanos() / 1_000_000;
    }
  }

  @Test
  void patience_forAPath_isLessByWhatWasLostForItAndTheDirectoriesAbove() {
    lose("", 500);
    lose("a", 2_000);
    lose("a/f", 1_000);
    assertThat(leftMillis("a/f")).isEqualTo(500);
    assertThat(leftMillis("a/g")).isEqualTo(1_500);
    assertThat(leftMillis("b/f")).isEqualTo(3_500);
    lose("a/f", 500);
    try (LostTime.Question asked = lostTime.ask(FileName.of("a/f"))) {
      assertThat(asked.patience().isOver()).isTrue();
    }
  }

  @Test
  void loss_isForgottenSoon() {
    lose("f", 3_000);
    nanos.addAndGet(LostTime.MEMORY.toNanos());
    assertThat(leftMillis("f")).isEqualTo(MOST.toMillis());
  }

  @Test
  void loss_ofSeveralAtTheSameTime_countsOnce() {
    try (LostTime.Question one = lostTime.ask(FileName.of("f"));
        LostTime.Question other = lostTime.ask(FileName.of("f"))) {
      lose(one, 3_000);
      lose(other, 2_900);
    }
    assertThat(leftMillis("f")).isEqualTo(1_000);
  }

  /** A peer answered in the end: the read lost the time of one question only. */
  @Test
  void time_thatWasUsedAndNotLost_isNotRemembered() {
    try (LostTime.Question asked = lostTime.ask(FileName.of("f"))) {
      asked.patience().use(Duration.ofSeconds(3).toNanos());
      assertThat(asked.patience().leftNanos()).isEqualTo(Duration.ofSeconds(1).toNanos());
    }
    assertThat(leftMillis("f")).isEqualTo(MOST.toMillis());
  }
}
