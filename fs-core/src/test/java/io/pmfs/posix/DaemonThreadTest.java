package io.pmfs.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class DaemonThreadTest {
  private static final List<Throwable> THROWN =
      List.of(
          new OutOfMemoryError("unable to create native thread"),
          new StackOverflowError(),
          new NoClassDefFoundError("io/pmfs/Nothing"),
          new IllegalStateException("a bug"));

  private static void fail(Throwable what) {
    if (what instanceof Error error) {
      throw error;
    }
    throw (RuntimeException) what;
  }

  @Test
  void lasting_afterAnythingThatIsThrown_goesOnAndIsKnown() throws Exception {
    for (Throwable thrown : THROWN) {
      CountDownLatch again = new CountDownLatch(2);
      Thread thread =
          DaemonThread.lasting(
              "lasting-test",
              () -> {
                again.countDown();
                if (again.getCount() > 0) {
                  fail(thrown);
                }
              });
      thread.start();
      thread.join();
      assertThat(again.getCount()).isZero();
      assertThat(Troubles.recent()).contains("lasting-test: " + thrown);
    }
  }

  @Test
  void lasting_whoseWorkReturns_ends() throws Exception {
    AtomicInteger runs = new AtomicInteger();
    Thread thread = DaemonThread.lasting("lasting-end", runs::incrementAndGet);
    thread.start();
    thread.join();
    assertThat(runs).hasValue(1);
  }

  @Test
  void lasting_thatIsInterruptedInItsPause_ends() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    Thread thread =
        DaemonThread.lasting(
            "lasting-interrupted",
            () -> {
              begun.countDown();
              throw new StackOverflowError();
            });
    thread.start();
    assertThat(begun.await(30, TimeUnit.SECONDS)).isTrue();
    thread.interrupt();
    thread.join();
  }

  /** An exception ends the thread, but does not reach the default handler. */
  @Test
  void of_workThatThrows_endsQuietly() throws Exception {
    AtomicInteger uncaught = new AtomicInteger();
    Thread thread =
        DaemonThread.of(
            "once",
            () -> {
              throw new StackOverflowError();
            });
    thread.setUncaughtExceptionHandler((of, what) -> uncaught.incrementAndGet());
    thread.start();
    thread.join();
    assertThat(uncaught).hasValue(0);
  }
}
