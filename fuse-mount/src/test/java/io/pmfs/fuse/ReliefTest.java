package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Workers that take requests from a queue, like those of the kernel; some requests wait. */
@Timeout(60)
final class ReliefTest {
  private static final int WORKERS = 10;
  private static final int MOST = 60;

  private final RequestGate gate = new RequestGate();
  private final Pool pool = new Pool();
  private final Relief relief = new Relief(pool);
  private final BlockingQueue<Runnable> requests = new LinkedBlockingQueue<>();
  private final CountDownLatch source = new CountDownLatch(1);
  private final List<Thread> threads = new ArrayList<>();

  private final class Pool implements Relief.Crew {
    private final AtomicInteger running = new AtomicInteger();
    private final AtomicInteger errors = new AtomicInteger();
    private final Map<Thread, Long> beginNanos = new ConcurrentHashMap<>();

    @Override
    public boolean isServing() {
      return gate.isOpen();
    }

    @Override
    public boolean hasIdle() {
      return beginNanos.size() < running.get();
    }

    @Override
    public int notWaiting() {
      if (errors.getAndDecrement() > 0) {
        throw new StackOverflowError();
      }
      long before = System.nanoTime() - TimeUnit.MILLISECONDS.toNanos(Relief.WAITING_MILLIS);
      return running.get()
          - (int) beginNanos.values().stream().filter(begin -> begin - before <= 0).count();
    }

    @Override
    public boolean add() {
      if (running.get() >= MOST) {
        return false;
      }
      running.incrementAndGet();
      ReliefTest.this.start(this::work);
      return true;
    }

    private void work() {
      try {
        while (gate.listen()) {
          Runnable request = requests.take();
          gate.heard();
          beginNanos.put(Thread.currentThread(), System.nanoTime());
          request.run();
          beginNanos.remove(Thread.currentThread());
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private synchronized void start(Runnable body) {
    Thread thread = new Thread(body);
    thread.setDaemon(true);
    threads.add(thread);
    thread.start();
  }

  private void start() {
    gate.whenNoneIsLeft(relief::call);
    for (int i = 0; i < WORKERS; i++) {
      pool.add();
    }
    relief.start();
  }

  @AfterEach
  synchronized void stop() {
    source.countDown();
    gate.close();
    threads.forEach(Thread::interrupt);
  }

  private void waitForSource() {
    try {
      source.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private boolean isAnswered(long millis) throws InterruptedException {
    CountDownLatch answered = new CountDownLatch(1);
    requests.add(answered::countDown);
    return answered.await(millis, TimeUnit.MILLISECONDS);
  }

  @Test
  void error_whenAWorkerIsToBeAdded_keepsNoRequestWaiting() throws Exception {
    pool.errors.set(3);
    request_behindManyThatWait_isAnswered();
    assertThat(pool.errors).hasValueLessThanOrEqualTo(0);
  }

  @Test
  void request_behindManyThatWait_isAnswered() throws Exception {
    start();
    for (int i = 0; i < MOST - Relief.KEPT; i++) {
      requests.add(this::waitForSource);
    }
    assertThat(isAnswered(20_000)).isTrue();
    assertThat(source.getCount()).isEqualTo(1);
  }

  @Test
  void workers_areNotMoreThanTheMost() throws Exception {
    start();
    for (int i = 0; i < 2 * MOST; i++) {
      requests.add(this::waitForSource);
    }
    assertThat(isAnswered(1000)).isFalse();
    assertThat(pool.running.get()).isEqualTo(MOST);
    source.countDown();
    assertThat(isAnswered(20_000)).isTrue();
  }

  /** Workers that are all busy, each for a short time. */
  private static final class Busy implements Relief.Crew {
    private final CountDownLatch looks = new CountDownLatch(3);
    private final AtomicInteger added = new AtomicInteger();

    @Override
    public boolean isServing() {
      return looks.getCount() > 0;
    }

    @Override
    public boolean hasIdle() {
      looks.countDown();
      return false;
    }

    @Override
    public int notWaiting() {
      return Relief.KEPT;
    }

    @Override
    public boolean add() {
      added.incrementAndGet();
      return true;
    }
  }

  @Test
  void workers_thatAreOnlyBusy_areEnough() {
    Busy busy = new Busy();
    Relief looking = new Relief(busy);
    looking.call();
    looking.run();
    assertThat(busy.added.get()).isZero();
  }
}
