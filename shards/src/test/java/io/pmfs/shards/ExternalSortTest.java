package io.pmfs.shards;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ExternalSortTest {
  @TempDir private Path directory;

  @ParameterizedTest
  @ValueSource(longs = {1, 300, 5000, 1 << 20})
  void sorted_whateverTheMemory_hasAllInOrder(long memoryBytes) throws Exception {
    Random random = new Random(memoryBytes);
    List<String> expected = new ArrayList<>();
    try (ExternalSort some = new ExternalSort(directory, "a", memoryBytes);
        ExternalSort more = new ExternalSort(directory, "b", memoryBytes)) {
      for (int i = 0; i < 400; i++) {
        byte[] key = new byte[random.nextInt(5)];
        random.nextBytes(key);
        (random.nextBoolean() ? some : more).add(key, new byte[] {(byte) key.length});
        expected.add(HexFormat.of().formatHex(key));
      }
      expected.sort(null);

      // Twice, because members are read once for links and once more.
      assertThat(keys(some, more)).isEqualTo(expected);
      assertThat(keys(some, more)).isEqualTo(expected);
    }
    try (Stream<Path> left = Files.list(directory)) {
      assertThat(left).isEmpty();
    }
  }

  private static List<String> keys(ExternalSort... sorts) throws Exception {
    List<String> keys = new ArrayList<>();
    try (ExternalSort.Sorted pairs = ExternalSort.sorted(List.of(sorts))) {
      for (ExternalSort.Pair pair = pairs.next(); pair != null; pair = pairs.next()) {
        assertThat(pair.value()).containsExactly(pair.key().length);
        keys.add(HexFormat.of().formatHex(pair.key()));
      }
    }
    return keys;
  }

  @Test
  void isEmpty_untilSomethingIsAdded() throws Exception {
    try (ExternalSort sort = new ExternalSort(directory, "a", 1)) {
      assertThat(sort.isEmpty()).isTrue();
      sort.add(new byte[0], new byte[0]);
      assertThat(sort.isEmpty()).isFalse();
    }
  }
}
