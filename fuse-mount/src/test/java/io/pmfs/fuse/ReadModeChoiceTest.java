package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ReadModeChoiceTest {
  private static final long MIB = 1 << 20;

  @ParameterizedTest
  @CsvSource({
    "20000, 1000, 8000, PAGE_CACHE", // small files that fit
    "25000, 12000, 8000, PAGE_CACHE", // two thirds of them fit
    "25000, 12003, 8000, PASSTHROUGH",
    "2000, 1000, 8000, PASSTHROUGH", // 512 KiB each
    "2001, 1000, 8000, PAGE_CACHE",
    "1, 0, 0, PAGE_CACHE",
    "0, 0, 0, PAGE_CACHE",
    "1, 1000, 0, PASSTHROUGH",
  })
  void choose(long files, long mib, long memoryMib, ReadMode expected) {
    assertThat(ReadModeChoice.choose(files, mib * MIB, memoryMib * MIB).mode()).isEqualTo(expected);
  }

  @org.junit.jupiter.api.Test
  void availableMemory_isPlausible() {
    assertThat(ReadModeChoice.availableMemory()).isBetween(16 * MIB, 1L << 50);
  }
}
