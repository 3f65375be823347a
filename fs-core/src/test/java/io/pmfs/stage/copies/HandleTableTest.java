package io.pmfs.stage.copies;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.base.Ticker;
import com.google.common.util.concurrent.Uninterruptibles;
import io.pmfs.posix.Await;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

final class HandleTableTest {
  private final ConcurrentLinkedQueue<Handle> opened = new ConcurrentLinkedQueue<>();

  private final class Handle implements AutoCloseable {
    private final AtomicInteger closes = new AtomicInteger();

    Handle() {
      opened.add(this);
    }

    boolean isOpen() {
      return closes.get() == 0;
    }

    @Override
    public void close() {
      closes.incrementAndGet();
    }
  }

  private static HandleTable<Handle> table(int capacity) {
    return new HandleTable<>(capacity, Duration.ofHours(1));
  }

  private HandleTable<Handle>.Lease acquire(HandleTable<Handle> table, long number) {
    return Objects.requireNonNull(table.acquire(number, Handle::new));
  }

  @Test
  void acquire_twice_opensOnce() {
    HandleTable<Handle> table = table(8);
    var first = acquire(table, 7);
    var second = acquire(table, 7);

    assertThat(second.handle()).isSameAs(first.handle());
    first.close();
    second.close();
    assertThat(opened).singleElement().matches(Handle::isOpen);
    table.close();
    assertThat(opened).singleElement().matches(handle -> handle.closes.get() == 1);
  }

  @Test
  void acquire_oftenEnough_isNotExpired_andElseIs() {
    AtomicLong nanos = new AtomicLong();
    var table =
        new HandleTable<Handle>(
            8,
            Duration.ofSeconds(10),
            new Ticker() {
              @Override
              public long read() {
                return nanos.get();
              }
            });
    acquire(table, 7).close();
    Handle often = opened.element();
    for (int other = 100; other < 110; other++) {
      nanos.addAndGet(TimeUnit.SECONDS.toNanos(6));
      for (int use = 0; use < 64; use++) {
        acquire(table, 7).close();
      }
      acquire(table, other).close();
    }
    assertThat(often.isOpen()).isTrue();
    assertThat(opened).hasSize(11);

    nanos.addAndGet(TimeUnit.SECONDS.toNanos(11));
    acquire(table, 8).close();
    assertThat(opened.stream().filter(Handle::isOpen)).hasSize(1);
    acquire(table, 7).close();
    assertThat(opened).hasSize(13);
  }

  /** What was opened may be what is no longer to be used. */
  @Test
  void acquire_invalidatedWhileItOpens_isUsedOnce() {
    HandleTable<Handle> table = table(8);
    var lease =
        Objects.requireNonNull(
            table.acquire(
                7,
                () -> {
                  Handle handle = new Handle();
                  table.invalidate(7);
                  return handle;
                }));
    assertThat(table.present(7)).isNull();
    assertThat(lease.handle().isOpen()).isTrue();
    lease.close();
    assertThat(opened).singleElement().matches(handle -> handle.closes.get() == 1);
    acquire(table, 7).close();
    assertThat(opened).hasSize(2);
  }

  @Test
  void acquire_byManyAtOnce_opensOnce() throws Exception {
    HandleTable<Handle> table = table(8);
    CountDownLatch opens = new CountDownLatch(1);
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      Thread thread =
          new Thread(
              () -> {
                var lease =
                    table.<RuntimeException>acquire(
                        7,
                        () -> {
                          Uninterruptibles.awaitUninterruptibly(opens);
                          return new Handle();
                        });
                Objects.requireNonNull(lease).close();
              });
      threads.add(thread);
      thread.start();
    }
    Await.until(
        "one opens and the others wait",
        () -> threads.stream().allMatch(thread -> thread.getState() == Thread.State.WAITING));
    opens.countDown();
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(opened).singleElement().matches(Handle::isOpen);
  }

  /** No thread waits for more than one attempt to open. */
  @Test
  void acquire_byManyAtOnce_whenTheOpenerFails_eachTriesByItself() throws Exception {
    HandleTable<Handle> table = table(8);
    CountDownLatch first = new CountDownLatch(1);
    CountDownLatch fails = new CountDownLatch(1);
    CyclicBarrier together = new CyclicBarrier(3);
    List<Thread> threads = new ArrayList<>();
    ExecutorService executor =
        Executors.newCachedThreadPool(
            task -> {
              Thread thread = new Thread(task);
              threads.add(thread);
              return thread;
            });
    try {
      Future<?> failing =
          executor.submit(
              () ->
                  table.acquire(
                      7,
                      () -> {
                        first.countDown();
                        fails.await();
                        throw new IOException("no");
                      }));
      first.await();
      List<Future<?>> others = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        others.add(
            executor.submit(
                () ->
                    table.acquire(
                        7,
                        () -> {
                          together.await(20, TimeUnit.SECONDS);
                          throw new IOException("no");
                        })));
      }
      Await.until(
          "one opens and the others wait",
          () -> threads.stream().allMatch(thread -> thread.getState() == Thread.State.WAITING));
      fails.countDown();
      others.add(failing);
      for (Future<?> other : others) {
        assertThatThrownBy(other::get).hasRootCauseInstanceOf(IOException.class);
      }
    } finally {
      executor.shutdownNow();
    }
  }

  @Test
  void acquire_nothingToOpen_null() {
    assertThat(table(8).<RuntimeException>acquire(7, () -> null)).isNull();
  }

  @Test
  void acquire_openerFails_isTriedAgain() {
    HandleTable<Handle> table = table(8);
    assertThatThrownBy(
            () ->
                table.acquire(
                    7,
                    () -> {
                      throw new IOException("no");
                    }))
        .isInstanceOf(IOException.class);

    assertThat(acquire(table, 7).handle().isOpen()).isTrue();
  }

  @Test
  void invalidate_inUse_closesAfterTheLastUser() {
    HandleTable<Handle> table = table(8);
    var first = acquire(table, 7);
    var second = acquire(table, 7);
    table.invalidate(7);

    first.close();
    assertThat(second.handle().isOpen()).isTrue();
    second.close();
    assertThat(opened).singleElement().matches(handle -> handle.closes.get() == 1);
    acquire(table, 7).close();
    assertThat(opened).hasSize(2);
  }

  @Test
  void acquire_aboveCapacity_closesOthersButNotThoseInUse() {
    HandleTable<Handle> table = table(16);
    List<HandleTable<Handle>.Lease> leases = new ArrayList<>();
    for (int number = 0; number < 100; number++) {
      leases.add(acquire(table, number));
    }
    assertThat(opened).hasSize(100).allMatch(Handle::isOpen);

    leases.forEach(HandleTable.Lease::close);
    assertThat(opened.stream().filter(Handle::isOpen).count()).isBetween(1L, 16L);
    table.close();
    assertThat(opened).allMatch(handle -> handle.closes.get() == 1);
  }

  @Test
  void acquire_othersIdle_closesThem() throws Exception {
    HandleTable<Handle> table = new HandleTable<>(1000, Duration.ofMillis(1));
    acquire(table, 7).close();

    Await.until(
        "the idle handle is closed",
        () -> {
          // Expired entries are removed by other accesses, but not by each one, or of every number.
          for (int i = 0; i < 64 * 20; i++) {
            acquire(table, 100 + i % 20).close();
          }
          return !Objects.requireNonNull(opened.peek()).isOpen();
        });
  }

  @Test
  void close_inUse_closesAfterTheUser() {
    HandleTable<Handle> table = table(8);
    var lease = acquire(table, 7);
    table.close();

    assertThat(lease.handle().isOpen()).isTrue();
    lease.close();
    assertThat(opened).singleElement().matches(handle -> handle.closes.get() == 1);
  }

  @Test
  void acquire_manyThreads_neverGivesAClosedHandleAndClosesEachOnce() throws Exception {
    HandleTable<Handle> table = table(16);
    ExecutorService threads = Executors.newFixedThreadPool(8);
    List<Future<?>> running = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      int seed = i;
      running.add(
          threads.submit(
              () -> {
                Random random = new Random(seed);
                for (int round = 0; round < 5000; round++) {
                  long number = random.nextInt(40);
                  try (var lease = acquire(table, number)) {
                    if (random.nextInt(4) == 0) {
                      table.invalidate(random.nextInt(40));
                    }
                    assertThat(lease.handle().isOpen()).isTrue();
                  }
                }
                return true;
              }));
    }
    for (Future<?> one : running) {
      one.get();
    }
    threads.shutdown();
    table.close();
    assertThat(opened).allMatch(handle -> handle.closes.get() == 1);
  }
}
