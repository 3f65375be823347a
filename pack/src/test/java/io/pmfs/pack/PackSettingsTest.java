package io.pmfs.pack;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class PackSettingsTest {
  @ParameterizedTest
  @CsvSource({"1, 32", "32, 32", "33, 33", "2000, 1024"})
  void defaultJobs_keepASourceWithLatencyBusy_andStayWithinWhatMayBeAskedFor(int cores, int jobs) {
    assertThat(PackSettings.defaultJobs(cores)).isEqualTo(jobs);
  }
}
