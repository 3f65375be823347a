package io.pmfs.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

final class BufferPoolTest {
  private static final int UNIT = 16 * 1024;

  private static BufferPool.Loan acquire(BufferPool pool, int size) {
    return Objects.requireNonNull(pool.tryAcquire(size), "nothing left");
  }

  @Test
  void tryAcquire_anySize_givesABufferOfJustThat() {
    BufferPool pool = new BufferPool(4 * UNIT, 1 << 20);
    for (int size : new int[] {1, UNIT - 1, UNIT, UNIT + 1, 4 * UNIT}) {
      BufferPool.Loan loan = acquire(pool, size);
      assertThat(loan.buffer().remaining()).isEqualTo(size);
      assertThat(loan.buffer().isDirect()).isTrue();
      loan.release();
    }
    assertThat(pool.isWhole()).isTrue();
  }

  @Test
  void tryAcquire_usedUp_nullUntilOneIsGivenBack() {
    BufferPool pool = new BufferPool(2 * UNIT, 1 << 20);
    BufferPool.Loan first = acquire(pool, UNIT);
    BufferPool.Loan second = acquire(pool, 1);

    assertThat(pool.tryAcquire(1)).isNull();
    first.release();
    acquire(pool, UNIT).release();
    second.release();
    assertThat(pool.isWhole()).isTrue();
  }

  @Test
  void tryAcquire_largerThanThePool_null() {
    assertThat(new BufferPool(2 * UNIT, 1 << 20).tryAcquire(2 * UNIT + 1)).isNull();
  }

  @Test
  void tryAcquire_fragmented_needsOneRunThatIsLongEnough() {
    BufferPool pool = new BufferPool(6 * UNIT, 1 << 20);
    List<BufferPool.Loan> loans = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      loans.add(acquire(pool, UNIT));
    }
    loans.get(0).release();
    loans.get(2).release();
    loans.get(4).release();

    assertThat(pool.tryAcquire(UNIT + 1)).isNull();
    loans.get(3).release();
    BufferPool.Loan middle = acquire(pool, 3 * UNIT);
    assertThat(pool.tryAcquire(UNIT + 1)).isNull();
    BufferPool.Loan start = acquire(pool, UNIT);
    for (BufferPool.Loan loan : List.of(middle, start, loans.get(1), loans.get(5))) {
      loan.release();
    }
    assertThat(pool.isWhole()).isTrue();
  }

  @Test
  void take_memoryIsLent_waitsForIt() throws Exception {
    BufferPool pool = new BufferPool(2 * UNIT, 1 << 20);
    BufferPool.Loan all = acquire(pool, 2 * UNIT);
    CompletableFuture<BufferPool.Loan> waiting =
        CompletableFuture.supplyAsync(() -> pool.take(UNIT));
    assertThat(waiting).isNotCompleted();

    all.close();
    waiting.get(30, TimeUnit.SECONDS).close();
    assertThat(pool.isWhole()).isTrue();
  }

  @Test
  void take_moreThanIsEverLentAtOnce_failsInsteadOfWaiting() {
    BufferPool pool = new BufferPool(8 * UNIT, 4 * UNIT);

    assertThatThrownBy(() -> pool.take(4 * UNIT + 1)).isInstanceOf(IllegalArgumentException.class);
    pool.take(4 * UNIT).close();
  }

  @Test
  void release_retained_freeAfterTheLast() {
    BufferPool pool = new BufferPool(UNIT, 1 << 20);
    BufferPool.Loan loan = acquire(pool, UNIT);
    loan.retain();
    loan.release();
    assertThat(pool.tryAcquire(1)).isNull();

    loan.release();
    assertThat(pool.isWhole()).isTrue();
  }

  @Test
  void release_givenBack_failsLoudlyAndHarmsNobody() {
    BufferPool pool = new BufferPool(UNIT, 1 << 20);
    BufferPool.Loan loan = acquire(pool, UNIT);
    loan.release();
    BufferPool.Loan next = acquire(pool, UNIT);

    assertThatThrownBy(loan::release).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(loan::retain).isInstanceOf(IllegalStateException.class);
    assertThat(pool.tryAcquire(1)).isNull();
    next.release();
  }

  @Test
  void loans_manyThreads_neverOverlap() throws Exception {
    BufferPool pool = new BufferPool(20 * UNIT, 1 << 20);
    ExecutorService threads = Executors.newFixedThreadPool(6);
    List<Future<?>> running = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      int mark = i + 1;
      running.add(
          threads.submit(
              () -> {
                Random random = new Random(mark);
                for (int round = 0; round < 300; round++) {
                  BufferPool.Loan loan = pool.tryAcquire(1 + random.nextInt(5 * UNIT));
                  if (loan != null) {
                    assertOwn(loan, (byte) mark);
                    loan.release();
                  }
                }
                return true;
              }));
    }
    for (Future<?> one : running) {
      one.get();
    }
    threads.shutdown();
    assertThat(pool.isWhole()).isTrue();
  }

  private static void assertOwn(BufferPool.Loan loan, byte mark) {
    ByteBuffer buffer = loan.buffer();
    while (buffer.hasRemaining()) {
      buffer.put(mark);
    }
    buffer.flip();
    while (buffer.hasRemaining()) {
      if (buffer.get() != mark) {
        throw new AssertionError("another loan's memory");
      }
    }
  }
}
