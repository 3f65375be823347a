package io.pmfs.stage.copies;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;

final class InodeBytesTest {
  private final InodeBytes bytes = new InodeBytes();

  @Test
  void get_neverSet_zero() {
    assertThat(bytes.get(1)).isZero();
    assertThat(bytes.get(1L << 40)).isZero();
  }

  @Test
  void set_farApart_keepsEach() {
    long[] numbers = {0, 1, 65_535, 65_536, 65_537, 16 * 65_536L, 17 * 65_536L, 100_000_000};
    for (int i = 0; i < numbers.length; i++) {
      bytes.set(numbers[i], (byte) (i - 4));
    }
    for (int i = 0; i < numbers.length; i++) {
      assertThat(bytes.get(numbers[i])).as("%d", numbers[i]).isEqualTo((byte) (i - 4));
    }
    assertThat(bytes.get(2)).isZero();
    assertThat(bytes.get(99_999_999)).isZero();
    bytes.set(1, (byte) 0);
    assertThat(bytes.get(1)).isZero();
    assertThat(bytes.get(65_535)).isEqualTo((byte) -2);
  }

  @Test
  void compareAndSet_asSeen_setsElseNot() {
    assertThat(bytes.compareAndSet(70_000, (byte) 1, (byte) 2)).isFalse();
    assertThat(bytes.get(70_000)).isZero();
    assertThat(bytes.compareAndSet(70_000, (byte) 0, (byte) 2)).isTrue();
    assertThat(bytes.compareAndSet(70_000, (byte) 2, (byte) -1)).isTrue();
    assertThat(bytes.get(70_000)).isEqualTo((byte) -1);
    assertThat(bytes.get(69_999)).isZero();
    assertThat(bytes.get(70_001)).isZero();
  }

  @Test
  void compareAndSet_manyThreadsWhileGrowing_oneWinnerEach() throws Exception {
    int count = 3000;
    long stride = 997;
    AtomicIntegerArray winners = new AtomicIntegerArray(count);
    ExecutorService threads = Executors.newFixedThreadPool(8);
    List<Future<?>> running = new ArrayList<>();
    for (int thread = 0; thread < 8; thread++) {
      byte mark = (byte) (thread + 1);
      running.add(
          threads.submit(
              () -> {
                for (int i = 0; i < count; i++) {
                  if (bytes.compareAndSet(i * stride, (byte) 0, mark)) {
                    winners.addAndGet(i, mark);
                  }
                }
              }));
    }
    for (Future<?> one : running) {
      one.get();
    }
    threads.shutdown();
    for (int i = 0; i < count; i++) {
      assertThat(bytes.get(i * stride)).isNotZero().isEqualTo((byte) winners.get(i));
    }
  }
}
