package io.pmfs.tasks;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class FileQueueTest {
  private final FileQueue queue = new FileQueue();
  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void stopThreads() {
    threads.shutdownNow();
  }

  private Future<Boolean> serve(LongConsumer work, AtomicInteger helped) {
    return threads.submit(
        () -> {
          queue.serve(
              work,
              () -> {
                helped.incrementAndGet();
                return false;
              });
          return true;
        });
  }

  @Test
  void serve_byOneThread_keepsTheOrderOfMoreThanFit() throws Exception {
    List<Long> served = new ArrayList<>();
    Future<Boolean> worker = serve(served::add, new AtomicInteger());
    for (long number = 1; number <= 5000; number++) {
      queue.put(number);
    }
    queue.close();

    assertThat(worker.get()).isTrue();
    assertThat(served).containsExactlyElementsOf(LongStream.rangeClosed(1, 5000).boxed().toList());
  }

  @Test
  void serve_whileAnotherIsAtTheLastFile_staysToHelp() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    AtomicInteger helped = new AtomicInteger();
    ConcurrentLinkedQueue<Long> served = new ConcurrentLinkedQueue<>();
    queue.put(7);
    queue.close();
    List<Future<Boolean>> workers = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      workers.add(
          serve(
              number -> {
                try {
                  end.await();
                } catch (InterruptedException e) {
                  throw new AssertionError(e);
                }
                served.add(number);
              },
              helped));
    }
    Await.until("the other one offers its help", () -> helped.get() > 1);
    end.countDown();

    for (Future<Boolean> worker : workers) {
      assertThat(worker.get()).isTrue();
    }
    assertThat(served).containsExactly(7L);
  }

  @Test
  void stop_whileFull_freesWhoPutsAndWhoTakes() throws Exception {
    Future<Boolean> walk =
        threads.submit(
            () -> {
              for (long number = 1; number <= 3000; number++) {
                queue.put(number);
              }
              return true;
            });
    queue.stop();

    assertThat(walk.get()).isTrue();
    assertThat(serve(number -> {}, new AtomicInteger()).get()).isTrue();
  }
}
