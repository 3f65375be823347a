package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ReadModeChoiceTest {
  private static final long MIB = 1 << 20;

  @ParameterizedTest
  @CsvSource({
    "20000, 1000, 0, 8000, PAGE_CACHE", // small files in bundles that fit
    "25000, 90000, 0, 8000, PAGE_CACHE", // and that do not
    "25000, 12000, 491, 8000, PAGE_CACHE", // separate files of which two thirds fit
    "25000, 12003, 491, 8000, PASSTHROUGH",
    "25000, 12003, 64, 8000, PASSTHROUGH", // mostly in bundles
    "25000, 12003, 63, 8000, PAGE_CACHE",
    "2000, 1000, 512, 8000, PASSTHROUGH",
    "2001, 1000, 511, 8000, PAGE_CACHE",
    "1, 0, 0, 0, PAGE_CACHE",
    "0, 0, 0, 0, PAGE_CACHE",
    "1, 1000, 1024000, 0, PASSTHROUGH",
  })
  void choose(long files, long mib, long rawKib, long memoryMib, ReadMode expected) {
    assertThat(ReadModeChoice.choose(files, mib * MIB, rawKib << 10, memoryMib * MIB).mode())
        .isEqualTo(expected);
  }
}
