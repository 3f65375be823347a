package io.pmfs.daemon.requests;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.protocol.AnsweredRequest;
import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.metadata.FileName;
import io.pmfs.places.OwnPath;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class RequestLogTest {
  private static final InstantSource CLOCK = InstantSource.system();
  private static final long SECOND = 1_000_000_000;

  private final List<AskedRequest> inProgress = new CopyOnWriteArrayList<>();
  private final List<String> slowLines = new CopyOnWriteArrayList<>();
  private final SlowRequests slow = new SlowRequests(Duration.ofSeconds(10), CLOCK, slowLines::add);
  private final Map<Long, FileName> names =
      Map.of(1L, FileName.of(""), 2L, FileName.of("train"), 3L, FileName.of("train/a"));

  /** Keeps the lines. */
  private static final class Reader implements LineReader {
    final List<LogLine> lines = new CopyOnWriteArrayList<>();

    @Override
    public void take(String text, int requests) {
      text.lines()
          .forEach(
              line -> {
                LogLine parsed = LogLine.parse(line);
                assertThat(parsed).as(line).isNotNull();
                lines.add(parsed);
              });
    }

    List<LogLine> await(int count) {
      Await.until(count + " lines", () -> lines.size() >= count);
      return lines;
    }

    long missing() {
      return lines.stream()
          .mapToLong(line -> line instanceof LogLine.Missing some ? some.requests() : 0)
          .sum();
    }

    long requests() {
      return lines.stream().filter(line -> line instanceof LogLine.Request).count();
    }
  }

  private RequestLog log(LongFunction<@Nullable FileName> paths, int queueLength) {
    return new RequestLog(paths, least -> inProgress, null, slow, CLOCK, queueLength);
  }

  @Test
  void answered_requests_areToldWithTheirPaths() {
    Reader reader = new Reader();
    try (RequestLog log = log(names::get, 100).start()) {
      log.add(reader);
      log.answered(Lines.answered(3, 5_000_000));
      log.answered(Lines.lookup(2, "a\u00ff", 0));
      log.answered(Lines.lookup(1, "b", 2));
      log.answered(Lines.lookup(99, "c", 0));
      log.answered(Lines.answered(98, 1));

      assertThat(reader.await(5))
          .extracting(line -> ((LogLine.Request) line).call().request())
          .containsExactly(
              "read (\"/train/a\",131072,0)",
              "lookup (\"/train/a%FF\")",
              "lookup (\"/b\")",
              "lookup (#99,\"c\")",
              "read (#98,131072,0)");
      assertThat(reader.lines)
          .extracting(line -> ((LogLine.Request) line).outcome())
          .containsExactly("OK (1000)", "OK", "ENOENT", "OK", "OK (1000)");
      assertThat(((LogLine.Request) reader.lines.get(0)).micros()).isEqualTo(5000);
    }
  }

  @Test
  void answered_moreThanTheQueueHolds_areCountedExactly() throws Exception {
    CountDownLatch held = new CountDownLatch(1);
    CountDownLatch isAtPaths = new CountDownLatch(1);
    Reader reader = new Reader();
    try (RequestLog log =
        log(
                inode -> {
                  isAtPaths.countDown();
                  awaitQuietly(held);
                  return FileName.of("x" + inode);
                },
                100)
            .start()) {
      log.add(reader);
      log.answered(Lines.answered(1, 1));
      isAtPaths.await();
      List<Thread> askers = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        Thread asker =
            new Thread(
                () -> {
                  for (int n = 0; n < 250; n++) {
                    log.answered(Lines.answered(2, 1));
                  }
                });
        asker.start();
        askers.add(asker);
      }
      for (Thread asker : askers) {
        asker.join(); // nor do they wait for the writer
      }
      held.countDown();
      Await.until("all are counted", () -> reader.requests() + reader.missing() >= 1001);

      assertThat(reader.requests())
          .isBetween(95L, 101L); // a thread may be about to decrement the count
      assertThat(reader.requests() + reader.missing()).isEqualTo(1001);
      assertThat(log.missing()).isEqualTo(reader.missing());
    }
  }

  private static void awaitQuietly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void leastNanos_followsWhoListens() {
    Reader reader = new Reader();
    RequestLog log = log(names::get, 100);
    assertThat(log.leastNanos()).isEqualTo(10 * SECOND);
    log.add(reader);
    assertThat(log.leastNanos()).isZero();
    log.remove(reader);
    assertThat(log.leastNanos()).isEqualTo(10 * SECOND);
    log.close();
    assertThat(log.leastNanos()).isEqualTo(Long.MAX_VALUE);
    assertThat(log.add(reader)).isFalse();
  }

  @Test
  void add_moreThanMayListen_isRefused() {
    try (RequestLog log = log(names::get, 100)) {
      for (int i = 0; i < RequestLog.MOST_READERS; i++) {
        assertThat(log.add(new Reader())).isTrue();
      }
      assertThat(log.add(new Reader())).isFalse();
    }
  }

  @Test
  void answered_slowRequest_isSaidWithoutAnAccessLog() {
    try (RequestLog log = log(names::get, 100).start()) {
      log.answered(Lines.answered(3, 12 * SECOND));
      Await.until("a slow request is said", () -> !slowLines.isEmpty());
      // The writer sleeps by now and must be woken.
      LockSupport.parkNanos(SECOND);
      log.answered(Lines.answered(3, 13 * SECOND));
      Await.until("both are said", () -> slowLines.size() >= 2);
    }
    assertThat(slowLines.get(1)).contains("read (\"/train/a\",131072,0) took 13.000 s: OK (1000)");
  }

  @Test
  void waiting_requestsInProgress_areToldWithTheirPathsAndHowLong() {
    inProgress.add(Lines.asked(3, 12 * SECOND));
    inProgress.add(Lines.asked(98, 2 * SECOND));
    try (RequestLog log = log(names::get, 100)) {
      List<WaitingRequest> waiting = log.waiting(Duration.ofSeconds(1));

      assertThat(waiting)
          .extracting(request -> request.call().request())
          .containsExactly("read (\"/train/a\",131072,0)", "read (#98,131072,0)");
      assertThat(waiting.get(0).nanos()).isBetween(12 * SECOND, 60 * SECOND);
    }
  }

  private static boolean isStale(FailedRequests.@Nullable Last last) {
    return last != null && last.errno().equals("ESTALE");
  }

  /** Nothing wakes the writer for it. */
  @Test
  void start_requestThatWaits_isSaidWithinASecondOrTwo() {
    inProgress.add(Lines.asked(3, 12 * SECOND));
    try (RequestLog log = log(names::get, 100).start()) {
      Await.until("a slow request is said", () -> !slowLines.isEmpty());
      assertThat(slowLines.get(0)).contains("read (\"/train/a\",131072,0) has waited for 1");
      log.answered(Lines.answered(3, 13 * SECOND));
      Await.until("both are said", () -> slowLines.size() >= 2);
      assertThat(slowLines.get(1)).contains("took 13.000 s: OK");
    }
  }

  /** Even without an access log, and although they were fast. */
  @Test
  void answered_requestsThatFailed_areCountedAndTheLastIsDescribed() {
    try (RequestLog log = log(names::get, 100).start()) {
      log.answered(Lines.lookup(2, "none", Errno.ENOENT.number()));
      log.answered(Lines.lookup(2, "moved", Errno.ESTALE.number()));
      assertThat(log.failed()).isEqualTo(new FailedRequests.Counts(0, 0, null));
      log.answered(Lines.lookup(2, "bad", Errno.EIO.number()));
      log.answered(new AnsweredRequest(Lines.asked(3, 1), Errno.ESTALE.number(), -1, 1));
      assertThat(log.wants(Opcode.READ, Errno.EIO.number())).isTrue();
      assertThat(log.wants(Opcode.READ, 0)).isFalse();

      assertThat(log.failed().total()).isEqualTo(2);
      assertThat(log.failed().lately()).isEqualTo(2);
      Await.until("the last failure is known", () -> isStale(log.failed().last()));
      FailedRequests.Last last = Objects.requireNonNull(log.failed().last());
      assertThat(last.call().target()).isEqualTo("/train/a");
    }
  }

  @Test
  void failed_elevenMinutesLater_isNotLateAnyMore() {
    Instant[] now = {Instant.parse("2026-11-22T02:26:04Z")};
    FailedRequests failed = new FailedRequests(() -> now[0]);
    failed.count();
    now[0] = now[0].plus(Duration.ofMinutes(6));
    failed.count();
    assertThat(failed.counts().lately()).isEqualTo(2);
    now[0] = now[0].plus(Duration.ofMinutes(5));
    assertThat(failed.counts().lately()).isEqualTo(1);
    now[0] = now[0].plus(Duration.ofMinutes(70));
    assertThat(failed.counts()).isEqualTo(new FailedRequests.Counts(2, 0, null));
  }

  @Test
  void answered_pathsFail_hasItsInode() {
    Reader reader = new Reader();
    try (RequestLog log =
        log(
                inode -> {
                  throw new IllegalStateException("closed");
                },
                100)
            .start()) {
      log.add(reader);
      log.answered(Lines.answered(7, 1));

      assertThat(((LogLine.Request) reader.await(1).get(0)).call().target()).isEqualTo("#7");
    }
  }

  @Test
  void close_whatWaits_isWrittenToTheFile(@TempDir Path directory) throws Exception {
    Path path = directory.resolve("access");
    AccessLogFile file =
        new AccessLogFile(path, OwnPath.ofProcess()::replaceableFile, 1 << 20, 2, CLOCK);
    file.open();
    RequestLog log = new RequestLog(names::get, least -> inProgress, file, slow, CLOCK).start();
    for (int i = 0; i < 5000; i++) {
      log.answered(Lines.answered(3, 1));
    }
    log.close();
    log.answered(Lines.answered(3, 1));

    assertThat(Files.readAllLines(path)).hasSize(5000);
    assertThat(log.missing()).isZero();
  }
}
