package io.pmfs.daemon.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.daemon.report.RecentReads.Origins;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

final class RecentReportTest {
  private long requests;

  private static RecentReport of(Origins origins) {
    return RecentReport.of(List.of(), origins, 3, Duration.ofMillis(12_900));
  }

  @Test
  void of_aSingleNode_saysThatAllWaitedForTheSource() {
    RecentReport report = of(new Origins(List.of(), 5, 0, 20, 75, 0, 300));

    assertThat(report.bytes()).isEqualTo(100);
    assertThat(report.fromPeers()).isZero();
    assertThat(report.fromSource()).isEqualTo(75);
    assertThat(report.leftToKernel()).isEqualTo(5);
    assertThat(report.sourceIdleSeconds()).isEqualTo(12);
  }

  @Test
  void of_aClusterNode_dividesWhatWasWaitedForAsItArrived() {
    RecentReport report = of(new Origins(List.of(), 0, 0, 0, 80, 300, 100));

    assertThat(report.fromPeers()).isEqualTo(60);
    assertThat(report.fromSource()).isEqualTo(20);
  }

  @Test
  void of_noRequest_saysNothing() {
    RecentReport report = RecentReport.of(List.of(), Origins.NONE, 0, null);

    assertThat(report.bytes()).isZero();
    assertThat(report.sourceIdleSeconds()).isNull();
  }

  @Test
  void lastMinute_forgetsOlderRequests() {
    RecentRequests recent = new RecentRequests(() -> requests);
    requests = 10;
    assertThat(recent.lastMinute()).as("of a young daemon").isEqualTo(10);
    for (int i = 0; i < 6; i++) {
      recent.sample();
    }
    requests = 13;

    assertThat(recent.lastMinute()).isEqualTo(3);
  }
}
