package io.pmfs.daemon.dataset;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.settings.MetricsAddress;
import java.io.IOException;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ObservationTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "Permission denied              | a port above 1023",
        "bind(..) failed with error(-13): Permission denied | a port above 1023",
        "Address already in use         | choose another port, or 0 for any free port",
        "Cannot assign requested address| give one of this machine's addresses",
        "something else                 | choose another port, or 0 for any free port"
      })
  void failure_ofEachReason_hasARemedy(String reason, String remedy) {
    MetricsAddress address = new MetricsAddress("127.0.0.1", 80);

    assertThat(Observation.failure(address, new IOException(reason)).line())
        .startsWith("--metrics 127.0.0.1:80: " + reason + "; ")
        .contains(remedy);
  }
}
