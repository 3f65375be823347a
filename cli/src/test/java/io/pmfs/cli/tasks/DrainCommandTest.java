package io.pmfs.cli.tasks;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.handler.codec.http.QueryStringDecoder;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PathText;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class DrainCommandTest {
  /** As the daemon reads it. */
  @ParameterizedTest
  @ValueSource(strings = {"x%41", "100%.csv", "M\u00fcller", ""})
  void request_namesTheBytesOfThePath(String path) {
    FileName name = FileName.ofLatin1(path);
    List<String> decoded =
        new QueryStringDecoder(DrainWait.request("drop", name)).parameters().get("path");
    assertThat(decoded).map(PathText::decode).containsExactly(name);
  }
}
