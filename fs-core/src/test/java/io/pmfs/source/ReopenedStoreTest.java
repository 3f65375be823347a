package io.pmfs.source;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class ReopenedStoreTest {
  private static final FileName FILE = FileName.of("file");

  private final List<String> lines = new CopyOnWriteArrayList<>();
  private final List<Duration> pauses = new CopyOnWriteArrayList<>();

  /** Ends a pause. */
  private final SynchronousQueue<String> time = new SynchronousQueue<>();

  private final FakeStore source = new FakeStore();

  @SuppressWarnings("NullAway.Init")
  ReopenedStoreTest() {}

  private ReopenedStore reopened(ReopenedStore.Opener opener) {
    return new ReopenedStore(
        opener,
        task -> {
          Thread thread = new Thread(task, "opening");
          thread.setDaemon(true);
          thread.start();
        },
        pause -> {
          pauses.add(pause);
          time.take();
        },
        new SplittableRandom(1),
        lines::add);
  }

  private void passTime() throws InterruptedException {
    assertThat(time.offer("", 30, TimeUnit.SECONDS)).isTrue();
  }

  /** A source that is unavailable for several attempts, with one of these errors each. */
  private ReopenedStore.Opener awayFor(List<Errno> reasons) {
    List<Errno> rest = new ArrayList<>(reasons);
    return () -> {
      if (!rest.isEmpty()) {
        throw new FsException(rest.remove(0), "/source");
      }
      return source;
    };
  }

  @Test
  void request_whileTheSourceIsAway_failsAsTheLastAttempt() throws Exception {
    try (ReopenedStore store = reopened(awayFor(List.of(Errno.EIO, Errno.EHOSTDOWN)))) {
      assertThatThrownBy(() -> store.status(FILE))
          .isInstanceOfSatisfying(
              FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EIO));
      passTime();
      Await.until("two lines", () -> lines.size() == 2);
      assertThatThrownBy(() -> store.open(FILE))
          .isInstanceOfSatisfying(
              FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EHOSTDOWN));
      assertThat(store.absence()).isEqualTo("EHOSTDOWN: /source");
    }
  }

  @Test
  void request_whileNoThreadOpensTheSource_opensIt() throws Exception {
    List<Runnable> tasks = new ArrayList<>();
    AtomicBoolean hasThreads = new AtomicBoolean();
    AtomicInteger tries = new AtomicInteger();
    try (ReopenedStore store =
        new ReopenedStore(
            () -> {
              if (tries.incrementAndGet() == 1) {
                throw new FsException(Errno.EIO, "/source");
              }
              return source;
            },
            task -> {
              if (!hasThreads.get()) {
                throw new OutOfMemoryError("unable to create native thread");
              }
              tasks.add(task);
            },
            pause -> {},
            new SplittableRandom(1),
            lines::add)) {
      assertThatThrownBy(() -> store.status(FileName.of(""))).isInstanceOf(FsException.class);
      // There is no immediate second attempt.
      assertThatThrownBy(() -> store.status(FileName.of(""))).isInstanceOf(FsException.class);
      assertThat(tries).hasValue(1);
      Await.until("it is there", () -> isListed(store));
      assertThat(tries).hasValue(2);
      assertThat(tasks).isEmpty();
      assertThat(lines.get(1)).isEqualTo("is available again");
    }
  }

  private static boolean isListed(ReopenedStore store) {
    try {
      store.status(FileName.of(""));
      return true;
    } catch (FsException e) {
      return false;
    }
  }

  @Test
  void request_whenThereIsAThreadAgain_leavesTheSourceToIt() throws Exception {
    List<Runnable> tasks = new CopyOnWriteArrayList<>();
    AtomicBoolean hasThreads = new AtomicBoolean();
    try (ReopenedStore store =
        new ReopenedStore(
            () -> source,
            task -> {
              if (!hasThreads.get()) {
                throw new OutOfMemoryError("unable to create native thread");
              }
              tasks.add(task);
            },
            pause -> {},
            new SplittableRandom(1),
            lines::add)) {
      hasThreads.set(true);
      CompletableFuture<Boolean> answer = CompletableFuture.supplyAsync(() -> isListed(store));
      Await.until("one task", () -> tasks.size() == 1);
      tasks.get(0).run();
      assertThat(answer.get(30, TimeUnit.SECONDS)).isTrue();
    }
  }

  /** No request waits for an attempt that has ended in any way. */
  @Test
  void attempt_thatEndsWithAnError_failsRequestsAndIsRepeated() throws Exception {
    List<Error> errors =
        new ArrayList<>(
            List.of(
                new OutOfMemoryError("Java heap space"),
                new StackOverflowError(),
                new NoClassDefFoundError("io/pmfs/Nothing")));
    try (ReopenedStore store =
        reopened(
            () -> {
              if (errors.isEmpty()) {
                return source;
              }
              throw errors.remove(0);
            })) {
      assertThatThrownBy(() -> store.status(FILE)).isInstanceOf(FsException.class);
      passTime();
      passTime();
      passTime();
      Await.until("it is there", () -> store.absence() == null);
    }
  }

  @Test
  void source_thatComesBack_isServedAndSaid() throws Exception {
    try (ReopenedStore store = reopened(awayFor(List.of(Errno.EIO, Errno.EIO)))) {
      passTime();
      passTime();
      Await.until("it is there", () -> store.absence() == null);
      assertThat(store.absence()).isNull();
      Await.until("two lines", () -> lines.size() == 2);
      assertThat(lines.get(0)).startsWith("is unavailable: EIO: /source");
      assertThat(lines.get(1)).isEqualTo("is available again");
    }
  }

  @Test
  void pauses_growAndAreBounded() throws Exception {
    try (ReopenedStore store =
        reopened(
            () -> {
              throw new FsException(Errno.EIO, "/source");
            })) {
      for (int i = 0; i < 12; i++) {
        passTime();
      }
      assertThat(store.absence()).isNotNull();
      assertThat(pauses).allMatch(pause -> pause.toMillis() <= 16_000);
      assertThat(pauses.get(0)).isBetween(Duration.ofMillis(500), Duration.ofSeconds(1));
      assertThat(pauses.get(11)).isBetween(Duration.ofSeconds(8), Duration.ofSeconds(16));
      assertThat(lines).hasSize(1);
    }
  }

  @Test
  void request_whileTheFirstAttemptHangs_waitsForIt() throws Exception {
    CountDownLatch hangs = new CountDownLatch(1);
    try (ReopenedStore store =
        reopened(
            () -> {
              awaitLatch(hangs);
              return source;
            })) {
      CompletableFuture<Boolean> answer =
          CompletableFuture.supplyAsync(
              () -> {
                try {
                  store.status(FileName.of(""));
                  return true;
                } catch (FsException e) {
                  return false;
                }
              });
      assertThat(store.absence()).isEqualTo("it has not answered yet");
      assertThat(answer.isDone()).isFalse();
      hangs.countDown();
      assertThat(answer.get(30, TimeUnit.SECONDS)).isTrue();
    } finally {
      hangs.countDown();
    }
  }

  @Test
  void close_whileTheFirstAttemptHangs_endsWhoWaits() throws Exception {
    CountDownLatch hangs = new CountDownLatch(1);
    ReopenedStore store =
        reopened(
            () -> {
              awaitLatch(hangs);
              return source;
            });
    CompletableFuture<Errno> answer =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                store.status(FILE);
                throw new AssertionError("answered");
              } catch (FsException e) {
                return e.errno();
              }
            });
    store.close();
    assertThat(answer.get(30, TimeUnit.SECONDS)).isEqualTo(Errno.EIO);
    hangs.countDown();
  }

  private static void awaitLatch(CountDownLatch latch) {
    boolean interrupted = false;
    while (true) {
      try {
        latch.await();
        break;
      } catch (InterruptedException e) {
        interrupted = true; // a hanging system call would not end either
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
