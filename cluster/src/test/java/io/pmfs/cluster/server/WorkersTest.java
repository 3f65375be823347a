package io.pmfs.cluster.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.posix.Await;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class WorkersTest {
  private static final int MOST = 2;
  private static final int QUEUED = 3;
  private static final int SLOW = 4;

  private final Workers workers = new Workers("test", MOST, QUEUED, SLOW);
  private final AtomicInteger begun = new AtomicInteger();
  private final AtomicInteger ended = new AtomicInteger();
  private final Semaphore gate = new Semaphore(0);

  @AfterEach
  void stop() throws Exception {
    gate.release(1000);
    workers.close();
    assertThat(workers.awaitEnd(20)).isTrue();
  }

  private void work() {
    begun.incrementAndGet();
    gate.acquireUninterruptibly();
    ended.incrementAndGet();
  }

  private void waitForPeer() {
    Workers.await(this::work);
  }

  private void awaitBegun(int count) throws Exception {
    Await.until(count + " were begun", () -> begun.get() == count);
    Thread.sleep(50);
    assertThat(begun).hasValue(count);
  }

  @Test
  void execute_moreThanWork_waitInTheirOrderAndMoreAreRefused() throws Exception {
    for (int i = 0; i < MOST + QUEUED; i++) {
      workers.execute(this::work);
    }
    awaitBegun(MOST);
    assertThatThrownBy(() -> workers.execute(this::work))
        .isInstanceOf(RejectedExecutionException.class);

    gate.release();
    awaitBegun(MOST + 1);
    gate.release(100);
    Await.until("all had ended", () -> ended.get() == MOST + QUEUED);
  }

  @Test
  void await_ofAWorker_letsAnotherWork() throws Exception {
    for (int i = 0; i < SLOW; i++) {
      int before = i;
      workers.execute(this::waitForPeer);
      awaitBegun(before + 1);
    }
    for (int i = 0; i < MOST; i++) {
      workers.execute(this::work);
    }
    awaitBegun(SLOW + MOST);
    workers.execute(this::work);
    awaitBegun(SLOW + MOST);
  }

  /** After waiting, they count again. */
  @Test
  void await_ofMoreThanMayWait_keepsTheirPlaces() throws Exception {
    for (int i = 0; i < SLOW + MOST; i++) {
      workers.execute(this::waitForPeer);
      awaitBegun(i + 1);
    }
    workers.execute(this::waitForPeer);
    awaitBegun(SLOW + MOST);
  }

  @Test
  void await_beginsWhatWaitedForItsPlace() throws Exception {
    Semaphore first = new Semaphore(0);
    for (int i = 0; i < MOST; i++) {
      workers.execute(
          () -> {
            first.acquireUninterruptibly();
            waitForPeer();
          });
    }
    workers.execute(this::work);
    awaitBegun(0);
    first.release();
    awaitBegun(2);
    first.release();
  }

  @Test
  void execute_afterWaits_neverHasMoreWorkThanMay() throws Exception {
    for (int i = 0; i < SLOW; i++) {
      workers.execute(this::waitForPeer);
      awaitBegun(i + 1);
    }
    gate.release(SLOW);
    Await.until("they had ended", () -> ended.get() == SLOW);
    for (int i = 0; i < MOST + 1; i++) {
      workers.execute(this::work);
    }
    awaitBegun(SLOW + MOST);
  }

  @Test
  void task_thatFails_leavesItsPlace() throws Exception {
    for (int i = 0; i < 10; i++) {
      workers.execute(
          () -> {
            begun.incrementAndGet();
            throw new IllegalStateException("on purpose");
          });
      awaitBegun(i + 1);
    }
    begun.set(0);
    workers.execute(this::work);
    awaitBegun(1);
  }
}
