package io.pmfs.stage.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class CompressionTest {
  @Test
  void parse_withAndWithoutLevel_isWhatItSays() {
    assertThat(Compression.parse("none")).isEqualTo(Compression.NONE);
    assertThat(Compression.parse("zstd")).isEqualTo(new Compression(Compression.Mode.ZSTD, 3));
    assertThat(Compression.parse("auto:19")).isEqualTo(new Compression(Compression.Mode.AUTO, 19));
  }

  @ParameterizedTest
  @ValueSource(strings = {"none", "zstd:1", "auto:19"})
  void toString_parsed_isTheSame(String text) {
    assertThat(Compression.parse(text)).hasToString(text);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", "zst", "ZSTD", "zstd:", "zstd:0", "zstd:20", "zstd:-1", "none:1", "auto:1:2"})
  void parse_anythingElse_isRefused(String text) {
    assertThatThrownBy(() -> Compression.parse(text)).isInstanceOf(IllegalArgumentException.class);
  }
}
