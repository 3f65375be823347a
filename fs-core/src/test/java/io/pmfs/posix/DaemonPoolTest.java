package io.pmfs.posix;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class DaemonPoolTest {
  /** More than the system can provide: starting such a thread fails as when there are too many. */
  private static final long TOO_MUCH_STACK = 1L << 50;

  private final AtomicInteger asked = new AtomicInteger();

  /** A factory whose threads fail to start after this many. */
  private ThreadFactory threads(int available) {
    return work ->
        asked.getAndIncrement() < available
            ? DaemonThread.of("pool", work)
            : new Thread(null, work, "none", TOO_MUCH_STACK);
  }

  @Test
  void execute_whenNoOtherThreadCanBeHad_isDoneByTheFirst() throws Exception {
    CountDownLatch done = new CountDownLatch(100);
    DaemonPool pool = new DaemonPool(4, threads(1));
    for (int i = 0; i < 100; i++) {
      pool.execute(done::countDown);
    }
    assertThat(done.await(30, TimeUnit.SECONDS)).isTrue();
    assertThat(pool.getPoolSize()).isEqualTo(1);
    assertThat(asked.get()).isGreaterThan(1);
    pool.shutdown();
    assertThatThrownBy(() -> pool.execute(() -> {})).isInstanceOf(RejectedExecutionException.class);
    assertThat(pool.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void firstThread_ifItCannotBeHad_isAnErrorAtOnce() {
    assertThatThrownBy(() -> new DaemonPool(4, threads(0))).isInstanceOf(OutOfMemoryError.class);
  }

  @Test
  void execute_ofWhatThrows_keepsTheThread() throws Exception {
    CountDownLatch done = new CountDownLatch(1);
    DaemonPool pool = new DaemonPool(1, threads(1));
    pool.execute(
        () -> {
          throw new StackOverflowError();
        });
    pool.execute(
        () -> {
          throw new NoClassDefFoundError("io/pmfs/Nothing");
        });
    pool.execute(done::countDown);
    assertThat(done.await(30, TimeUnit.SECONDS)).isTrue();
    assertThat(asked).hasValue(1);
    pool.shutdown();
  }
}
