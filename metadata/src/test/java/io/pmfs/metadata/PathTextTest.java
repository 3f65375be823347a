package io.pmfs.metadata;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class PathTextTest {
  @ParameterizedTest
  @CsvSource({
    "a/b.jpg, a/b.jpg",
    "ä/日本 😀, ä/日本 😀",
    "50%.jpg, 50%25.jpg",
    "a\tb, a%09b",
  })
  void encode_text_escapesOnlyWhatHasToBe(String path, String text) {
    assertThat(PathText.encode(FileName.of(path))).isEqualTo(text);
    assertThat(PathText.decode(text)).isEqualTo(FileName.of(path));
  }

  @Test
  void encode_bytesThatAreNoUtf8_escapesThem() {
    FileName path = FileName.ofLatin1("a\u00ff/\u00c3\u00a4\u00e6\u0097");

    assertThat(PathText.encode(path)).isEqualTo("a%FF/ä%E6%97");
    assertThat(PathText.decode("a%ff/ä%E6%97")).isEqualTo(path);
  }

  @Test
  void decode_ofEncoded_isTheSameForRandomBytes() {
    long seed = new Random().nextLong();
    Random random = new Random(seed);
    for (int i = 0; i < 2000; i++) {
      byte[] bytes = new byte[random.nextInt(12)];
      random.nextBytes(bytes);
      FileName path = FileName.of(bytes);
      assertThat(PathText.decode(PathText.encode(path))).as("seed %d", seed).isEqualTo(path);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"%", "a%2", "%zz", "%-1", "\udc80", "a\ud83d"})
  void decode_wrongText_isRefused(String text) {
    assertThatThrownBy(() -> PathText.decode(text)).isInstanceOf(IllegalArgumentException.class);
  }
}
