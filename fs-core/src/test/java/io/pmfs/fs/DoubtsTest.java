package io.pmfs.fs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DoubtsTest {
  private final Doubts doubts = new Doubts();

  @ParameterizedTest
  @CsvSource({"10, 1000", "6000, 6000", "20000, 10000"})
  void opens_needNotBeReported_onceEachProvedFileWasOpenedAgain(int files, int opens) {
    openFrom(0, files);
    for (int i = 1; i < opens; i++) {
      open(i % files);
      assertThat(doubts.isSettled()).as("after %d opens", i).isFalse();
    }

    open(0);

    assertThat(doubts.isSettled()).isTrue();
  }

  @Test
  void opens_areReported_whileFilesAreOpenedForTheFirstTime() {
    openFrom(0, 2000);
    for (int round = 0; round < 3; round++) {
      openFrom(0, 1999);
      open(2000 + round);
    }

    assertThat(doubts.isSettled()).isFalse();
  }

  private void openFrom(int first, int count) {
    for (int i = first; i < first + count; i++) {
      open(i);
    }
  }

  private void open(int file) {
    long number = 1L + file;
    if (doubts.isDoubtedAtOpen(number)) {
      doubts.prove(number);
    }
  }
}
