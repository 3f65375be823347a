package io.pmfs.cli.tasks;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class DrainCommandTest {
  @ParameterizedTest
  @CsvSource({".,''", "./d/,d", "d/f,d/f"})
  void inside_isAPathAsTheMountHasIt(String given, String inside) {
    assertThat(DrainCommand.inside(given)).hasToString(inside);
  }
}
