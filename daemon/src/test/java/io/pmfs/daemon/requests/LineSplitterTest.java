package io.pmfs.daemon.requests;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class LineSplitterTest {
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 7, 1000})
  void accept_piecesOfAnySize_areTheSameLines(int piece) {
    List<String> lines = new ArrayList<>();
    LineSplitter splitter = new LineSplitter(lines::add);
    byte[] bytes = "äb\n\nccc\nlast".getBytes(UTF_8);
    for (int i = 0; i < bytes.length; i += piece) {
      splitter.accept(bytes, i, Math.min(piece, bytes.length - i));
    }
    splitter.end();

    assertThat(lines).containsExactly("äb", "", "ccc", "last");
  }

  @ParameterizedTest
  @ValueSource(ints = {1000, 1 << 20})
  void accept_lineWithoutEnd_isCut(int piece) {
    List<String> lines = new ArrayList<>();
    LineSplitter splitter = new LineSplitter(lines::add);
    byte[] bytes = "x".repeat(piece).getBytes(UTF_8);
    for (int i = 0; i < 200; i++) {
      splitter.accept(bytes, 0, bytes.length);
    }
    splitter.accept("\nnext\n".getBytes(UTF_8), 0, 6);

    assertThat(lines).hasSize(2);
    assertThat(lines.get(0)).hasSize(LineSplitter.LONGEST);
    assertThat(lines.get(1)).isEqualTo("next");
  }
}
