package io.pmfs.tier;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class PoolSpaceTest {
  private static final int UNIT = 4096;

  @Test
  void take_allOfIt_fromEitherEnd() {
    PoolSpace space = new PoolSpace(10 * UNIT, 4 * UNIT);
    assertThat(space.take(1, false)).isEqualTo(10 * UNIT);
    assertThat(space.take(1, true)).isEqualTo(13 * UNIT);
    assertThat(space.take(3 * UNIT, false)).isEqualTo(-1);
    assertThat(space.take(3 * UNIT, true)).isEqualTo(-1);
    assertThat(space.take(2 * UNIT, true)).isEqualTo(11 * UNIT);
    assertThat(space.take(1, true)).isEqualTo(-1);
    assertThat(space.take(1, false)).isEqualTo(-1);
    assertThat(space.take(Long.MAX_VALUE - UNIT, false)).isEqualTo(-1);
    space.free(12 * UNIT, UNIT);
    assertThat(space.take(UNIT, false)).isEqualTo(12 * UNIT);
  }

  @Test
  void take_givenRange_onlyIfItIsFree() {
    PoolSpace space = new PoolSpace(0, 8 * UNIT);
    assertThat(space.take(2L * UNIT, 2L * UNIT)).isTrue();
    assertThat(space.take(3L * UNIT, 2L * UNIT)).isFalse();
    assertThat(space.take(0L, 3L * UNIT)).isFalse();
    assertThat(space.take(4L * UNIT, 4L * UNIT)).isTrue();
    assertThat(space.take(8L * UNIT, UNIT)).isFalse();
    assertThat(space.take(0L, 2L * UNIT)).isTrue();
  }

  @Test
  void operations_atRandom_findEveryRangeThereIs() {
    long seed = new Random().nextLong();
    Random random = new Random(seed);
    int units = 100;
    PoolSpace space = new PoolSpace(0, units * (long) UNIT);
    BitSet taken = new BitSet();
    Map<Integer, Integer> ranges = new HashMap<>();
    for (int step = 0; step < 20_000; step++) {
      if (random.nextInt(5) < 3) {
        int count = 1 + random.nextInt(1 << random.nextInt(6));
        long offset = space.take(count * (long) UNIT, random.nextBoolean());
        if (offset < 0) {
          assertThat(longest(taken, units)).as("seed %d, step %d", seed, step).isLessThan(count);
          continue;
        }
        int first = (int) (offset / UNIT);
        int other = taken.nextSetBit(first);
        assertThat(first + count).isLessThanOrEqualTo(units);
        assertThat(other < 0 || other >= first + count).as("seed %d, step %d", seed, step).isTrue();
        taken.set(first, first + count);
        ranges.put(first, count);
      } else if (!ranges.isEmpty()) {
        int first = List.copyOf(ranges.keySet()).get(random.nextInt(ranges.size()));
        int count = Objects.requireNonNull(ranges.remove(first));
        taken.clear(first, first + count);
        space.free(first * (long) UNIT, count * (long) UNIT);
      }
    }
  }

  private static int longest(BitSet taken, int units) {
    int longest = 0;
    for (int at = taken.nextClearBit(0); at < units; ) {
      int end = taken.nextSetBit(at);
      int limit = end < 0 ? units : end;
      longest = Math.max(longest, limit - at);
      at = taken.nextClearBit(limit);
    }
    return longest;
  }
}
