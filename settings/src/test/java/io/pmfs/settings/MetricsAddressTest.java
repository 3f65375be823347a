package io.pmfs.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class MetricsAddressTest {
  @ParameterizedTest
  @CsvSource({
    "9464, 127.0.0.1, 9464, 127.0.0.1:9464",
    "0, 127.0.0.1, 0, 127.0.0.1:0",
    "0.0.0.0:65535, 0.0.0.0, 65535, 0.0.0.0:65535",
    "[::1]:80, ::1, 80, [::1]:80",
    "node-01.example.org:1, node-01.example.org, 1, node-01.example.org:1"
  })
  void parse_forms_areUnderstood(String text, String host, int port, String again) {
    assertThat(MetricsAddress.parse(text)).isEqualTo(new MetricsAddress(host, port));
    assertThat(MetricsAddress.parse(text)).hasToString(again);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        ":",
        "a",
        "a:",
        ":1",
        "1:",
        "::1:1",
        "[::1]",
        "-1",
        "65536",
        "123456",
        "a b:1",
        "a:1 ",
        "a:1\n",
        "http://a:1",
        "[a]x:1",
        "-a:1",
        "1.2.3.4:+1"
      })
  void parse_others_areRefused(String text) {
    assertThatThrownBy(() -> MetricsAddress.parse(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("write it as 9464");
  }
}
