package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class DirectWritesTest {
  @ParameterizedTest
  @CsvSource({
    "6.18.44-fc-v595, true",
    "6.18.0, true",
    "7.0.0-rc1, true",
    "6.17.9-arch1-1, false",
    "6.8.0-31-generic, false",
    "5.14.0-427.el9.x86_64, false",
    "what, false",
  })
  void arePossible_dependsOnTheKernel(String release, boolean expected) {
    assertThat(DirectWrites.arePossible(release + "\n")).isEqualTo(expected);
  }
}
