package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Workers that take requests from a queue, like those of the kernel. */
@Timeout(60)
final class ListenersTest {
  private static final int WORKERS = 20;

  private final Listeners listeners = new Listeners();
  private final Semaphore requests = new Semaphore(0);
  private final Semaphore answers = new Semaphore(0);
  private final AtomicInteger waiting = new AtomicInteger();
  private final AtomicInteger mostWaiting = new AtomicInteger();
  private final AtomicInteger taken = new AtomicInteger();
  private final AtomicInteger answered = new AtomicInteger();
  private final List<Thread> workers = new ArrayList<>();

  @AfterEach
  void stop() throws InterruptedException {
    workers.forEach(Thread::interrupt);
    listeners.disband();
    for (Thread worker : workers) {
      worker.join();
    }
  }

  @Test
  void begin_inManyThreads_letsFewWait() throws InterruptedException {
    start();
    waitUntilWaiting(Listeners.MOST);
    requests.release(100);
    answers.release(100);
    Await.until(100 + " answered", () -> answered.get() >= 100);

    assertThat(mostWaiting.get()).isEqualTo(Listeners.MOST);
  }

  @Test
  void end_whenNoOtherWaits_wakesAWorker() throws InterruptedException {
    start();

    // None is answered: each request needs its own worker, up to the last one.
    requests.release(WORKERS);

    Await.until(WORKERS + " taken", () -> taken.get() >= WORKERS);
    assertThat(answered.get()).isZero();
  }

  @Test
  void end_ofManyShortRequests_neverLosesAWorker() throws InterruptedException {
    start();
    int total = 200_000;
    answers.release(total);
    for (int sent = 0; sent < total; sent++) {
      if (sent % 7 == 0) {
        Thread.onSpinWait();
      }
      requests.release();
    }
    Await.until(total + " answered", () -> answered.get() >= total);

    requests.release(WORKERS);

    Await.until(total + WORKERS + " taken", () -> taken.get() >= total + WORKERS);
  }

  @Test
  void disband_wakesAllWhoSleep() throws InterruptedException {
    start();
    waitUntilWaiting(Listeners.MOST);

    listeners.disband();

    waitUntilWaiting(WORKERS);
  }

  private void start() {
    for (int number = 0; number < WORKERS; number++) {
      Thread worker = new Thread(this::work, "worker-" + number);
      workers.add(worker);
      worker.start();
    }
  }

  private void work() {
    try {
      while (!Thread.currentThread().isInterrupted()) {
        listeners.begin();
        mostWaiting.accumulateAndGet(waiting.incrementAndGet(), Math::max);
        try {
          requests.acquire();
        } finally {
          waiting.decrementAndGet();
          listeners.end();
        }
        taken.incrementAndGet();
        answers.acquire();
        answered.incrementAndGet();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void waitUntilWaiting(int number) throws InterruptedException {
    Await.until(number + " wait", () -> waiting.get() == number);
  }
}
