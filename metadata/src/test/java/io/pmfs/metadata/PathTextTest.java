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

  /** Names that forge lines, control terminals or reorder what is beside them. */
  @ParameterizedTest
  @CsvSource({
    "97 10 98, a%0Ab",
    "13 9 0, %0D%09%00",
    "27 91 50 74, %1B[2J",
    "127 155 49, %7F%C2%9B1",
    "8238 97, %E2%80%AEa",
    "8294 97 8297, %E2%81%A6a%E2%81%A9",
    "97 8203 98, a%E2%80%8Bb",
    "65279 97, %EF%BB%BFa",
    "8232 8233, %E2%80%A8%E2%80%A9",
    "917569 97, %F3%A0%81%81a",
    "55296 97, %ED%A0%80a",
    "56575 97, %FFa",
    "228 26085 128512 37, ä日😀%",
  })
  void printable_text_isOneLineWithoutControl(String characters, String shown) {
    StringBuilder text = new StringBuilder();
    for (String number : characters.split(" ", -1)) {
      text.appendCodePoint(Integer.parseInt(number));
    }
    assertThat(PathText.printable(text.toString())).isEqualTo(shown);
    assertThat(PathText.printable(shown)).isEqualTo(shown);
  }

  @Test
  void printableLinesAndJson_keepLinesAndValues() {
    assertThat(PathText.printableLines("a\nb\u001b\u202ec")).isEqualTo("a\nb%1B%E2%80%AEc");
    assertThat(PathText.printableJson("{\n\"a\u202e\u009b\": \"\udb40\udc41\"}"))
        .isEqualTo("{\n\"a\\u202e\\u009b\": \"\\udb40\\udc41\"}");
  }

  @Test
  void encode_formatCharacters_areEscapedAndSurvive() {
    FileName path = FileName.of("a\u202eb\u2066\u200b\ufeff\u2028");

    assertThat(PathText.encode(path)).isEqualTo("a%E2%80%AEb%E2%81%A6%E2%80%8B%EF%BB%BF%E2%80%A8");
    assertThat(PathText.decode(PathText.encode(path))).isEqualTo(path);
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
