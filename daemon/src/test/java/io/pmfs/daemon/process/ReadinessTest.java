package io.pmfs.daemon.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

final class ReadinessTest {
  private final AtomicLong nanos = new AtomicLong(-5);

  private Readiness of(Duration limit) {
    return new Readiness(limit, nanos::get);
  }

  private void pass(Duration time) {
    nanos.addAndGet(time.toNanos());
  }

  @Test
  void left_partsThatTakeTime_shareTheLimit() {
    Readiness readiness = of(Duration.ofMinutes(1));
    assertThat(readiness.left()).isEqualTo(Duration.ofMinutes(1));
    pass(Duration.ofMillis(20_300));
    assertThat(readiness.left()).isEqualTo(Duration.ofSeconds(40));
    pass(Duration.ofSeconds(40));
    assertThat(readiness.left()).isEqualTo(Duration.ZERO);
  }

  @Test
  void left_ofPartsOfASecond_isNotMoreThanTheLimit() {
    assertThat(of(Duration.ofMillis(1_500)).left()).isEqualTo(Duration.ofMillis(1_500));
  }

  @Test
  void leftForMount_afterAllIsUsedUp_isEnoughForALook() {
    Readiness readiness = of(Duration.ofSeconds(30));
    assertThat(readiness.leftForMount()).isEqualTo(Duration.ofSeconds(30));
    pass(Duration.ofSeconds(29));
    assertThat(readiness.leftForMount()).isEqualTo(Duration.ofSeconds(5));
    assertThat(of(Duration.ofSeconds(2)).leftForMount()).isEqualTo(Duration.ofSeconds(2));
  }

  @Test
  void leftForOptional_ofALongLimit_isShort() {
    Readiness readiness = of(Duration.ofMinutes(5));
    assertThat(readiness.leftForOptional()).isEqualTo(Duration.ofSeconds(10));
    pass(Duration.ofSeconds(298));
    assertThat(readiness.leftForOptional()).isEqualTo(Duration.ofSeconds(2));
  }
}
