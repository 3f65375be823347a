package io.pmfs.cli.status;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cli.TestWorld;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.RequestStream;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.control.ControlRequests;
import io.pmfs.daemon.control.ControlServer;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.SampleReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.requests.LogLine;
import io.pmfs.daemon.requests.ProfileKey;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.requests.SlowRequests;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.fuse.protocol.AnsweredRequest;
import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.metadata.FileName;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.posix.Await;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Listeners to a mount's requests over its control socket. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class RequestFeedTest {
  private static final Duration LIMIT = Duration.ofSeconds(20);
  private static final long OFF = Long.MAX_VALUE;

  @TempDir private Path temporary;
  private final RequestLog log =
      new RequestLog(
              inode -> FileName.of("train/" + "x".repeat(200) + inode),
              least -> List.of(),
              null,
              new SlowRequests(Duration.ZERO, InstantSource.system(), line -> {}),
              InstantSource.system())
          .start();
  private Path socket = Path.of("unset");
  private ControlServer server;

  private final class Requests implements ControlRequests {
    @Override
    public StatusReport status() {
      return SampleReport.of("/mnt/dataset", "/src");
    }

    @Override
    public NodesReport nodes() {
      throw new IllegalStateException("not asked for");
    }

    @Override
    public KeptTasks tasks() {
      throw new IllegalStateException("not asked for");
    }

    @Override
    public RequestLog requests() {
      return log;
    }

    @Override
    public void upgrade() {}

    @Override
    public void unmount(boolean lazy, boolean purge, boolean abandon) {}
  }

  @BeforeEach
  void startServer() throws IOException {
    socket = temporary.resolve("s");
    server = ControlServer.start(socket, new Requests());
  }

  @AfterEach
  void stop() {
    server.close();
    log.close();
  }

  private void answer(int count) {
    for (int i = 0; i < count; i++) {
      log.answered(
          new AnsweredRequest(
              new AskedRequest("read", 0, 0, 4403, i, null, null, 0, 4096, System.nanoTime()),
              0,
              1000,
              2_000_000));
    }
  }

  private RequestStream listen(List<String> lines, CountDownLatch ended) throws IOException {
    return RequestStream.open(socket, LIMIT, lines::add, ended::countDown);
  }

  @Test
  void stream_whileOpen_hasEveryRequestAndNothingIsObservedAfterwards() throws Exception {
    assertThat(log.leastNanos()).isEqualTo(OFF);
    List<String> lines = new CopyOnWriteArrayList<>();
    try (RequestStream stream = listen(lines, new CountDownLatch(1))) {
      assertThat(log.leastNanos()).isZero();
      answer(1000);
      Await.until("the lines arrive", () -> lines.size() == 1000);
      assertThat(stream).isNotNull();
    }
    Await.until("nobody listens", () -> log.leastNanos() == OFF);

    assertThat(lines.get(999)).contains("x999\",4096,0): OK (1000) <0.002000>");
  }

  @Test
  void stream_tooManyListen_isRefusedInWords() throws Exception {
    List<RequestStream> open = new ArrayList<>();
    try {
      for (int i = 0; i < RequestLog.MOST_READERS; i++) {
        open.add(listen(new CopyOnWriteArrayList<>(), new CountDownLatch(1)));
      }
      ControlClient.Answer answer = ControlClient.ask(socket, HttpMethod.GET, "/requests", LIMIT);
      assertThat(answer.status()).isEqualTo(503);
      assertThat(answer.error())
          .isEqualTo("4 profiles of this mount are being made; end one of them");
      assertThat(ControlClient.ask(socket, HttpMethod.POST, "/requests", LIMIT).status())
          .isEqualTo(405);
    } finally {
      open.forEach(RequestStream::close);
    }
    Await.until("nobody listens", () -> log.leastNanos() == OFF);
  }

  @Test
  void stream_serverCloses_endsInOrder() throws Exception {
    CountDownLatch ended = new CountDownLatch(1);
    List<String> lines = new CopyOnWriteArrayList<>();
    try (RequestStream stream = listen(lines, ended)) {
      answer(10);
      Await.until("the lines arrive", () -> lines.size() == 10);
      server.close();
      ended.await();
      assertThat(stream).isNotNull();
    }
    assertThat(log.leastNanos()).isEqualTo(OFF);
  }

  /** The client does not read until far more lines have arrived than the daemon buffers. */
  @Test
  void stream_slowClient_isToldHowMuchItMissed() throws Exception {
    AtomicLong received = new AtomicLong();
    AtomicLong requests = new AtomicLong();
    AtomicLong missing = new AtomicLong();
    long sent = 20_000;
    try (SocketChannel client = SocketChannel.open(StandardProtocolFamily.UNIX)) {
      client.connect(UnixDomainSocketAddress.of(socket));
      client.write(ByteBuffer.wrap("GET /requests HTTP/1.1\r\nHost: pmfs\r\n\r\n".getBytes(UTF_8)));
      Await.until("someone listens", () -> log.leastNanos() == 0);
      log.add((lines, count) -> received.addAndGet(count)); // called after the client
      answer(20_000);
      Await.until("all were received", () -> received.get() == 20_000);
      Thread reader =
          new Thread(
              () ->
                  new BufferedReader(Channels.newReader(client, UTF_8))
                      .lines()
                      .forEach(
                          line -> {
                            LogLine parsed = LogLine.parse(line);
                            if (parsed instanceof LogLine.Request) {
                              requests.incrementAndGet();
                            } else if (parsed instanceof LogLine.Missing some) {
                              missing.addAndGet(some.requests());
                            }
                          }));
      reader.setDaemon(true);
      reader.setUncaughtExceptionHandler((thread, e) -> {}); // closed while reading
      reader.start();
      // A line with the number of missing ones precedes the first that fits again.
      while (missing.get() == 0) {
        answer(1);
        sent++;
        LockSupport.parkNanos(5_000_000);
      }
      long all = sent;
      Await.until("all are counted", () -> requests.get() + missing.get() == all);
    }
    assertThat(requests.get()).isBetween(1L, sent - 1);
  }

  @Test
  void stream_clientVanishes_isForgotten() throws Exception {
    SocketChannel client = SocketChannel.open(StandardProtocolFamily.UNIX);
    client.connect(UnixDomainSocketAddress.of(socket));
    client.write(ByteBuffer.wrap("GET /requests HTTP/1.1\r\nHost: pmfs\r\n\r\n".getBytes(UTF_8)));
    Await.until("someone listens", () -> log.leastNanos() == 0);
    answer(100);
    client.close();

    Await.until("nobody listens", () -> log.leastNanos() == OFF);
    assertThat(ControlClient.ask(socket, HttpMethod.GET, "/version", LIMIT).status())
        .isEqualTo(200);
  }

  @Test
  void watch_untilInterrupted_showsIntervalsAndTheSum() throws Exception {
    TestWorld world = new TestWorld(temporary);
    CompletableFuture<Integer> status = watch(world, null);
    Await.until("someone listens", () -> log.leastNanos() == 0);
    answer(500);
    Await.until("the lines are printed", () -> requestsIn(world.output()) == 500);
    world.interrupts.forEach(interrupt -> interrupt.accept(130));

    assertThat(status.get()).isZero();
    String output = world.output();
    assertThat(output)
        .contains(
            "/src on /mnt/dataset, page-cache", "not counted: reads from the kernel's page cache");
    assertThat(output.substring(output.indexOf("In all:")))
        .contains("500 requests in ", ", 488 KiB")
        .containsPattern("read +500 .* 100\\.0 % +2\\.00 ms +2\\.0\\d ms");
  }

  /** In all intervals together. */
  private static long requestsIn(String output) {
    return Pattern.compile("(?m)^(\\d+) requests in ")
        .matcher(output)
        .results()
        .mapToLong(line -> Long.parseLong(line.group(1)))
        .sum();
  }

  @Test
  void watch_daemonEnds_saysSoAndShowsTheSum() throws Exception {
    TestWorld world = new TestWorld(temporary);
    CompletableFuture<Integer> status = watch(world, Duration.ofMinutes(10));
    Await.until("someone listens", () -> log.leastNanos() == 0);
    server.close();

    assertThat(status.get()).isEqualTo(ExitStatus.PARTLY);
    assertThat(world.errors()).contains("/mnt/dataset: its daemon ended");
    assertThat(world.output()).contains("In all:");
  }

  @Test
  void watch_limitIsOver_isDone() throws Exception {
    TestWorld world = new TestWorld(temporary);

    assertThat(watch(world, Duration.ofMillis(100)).get()).isZero();
    assertThat(world.errors()).isEmpty();
    assertThat(world.output()).contains("0 requests in ");
  }

  private CompletableFuture<Integer> watch(TestWorld world, @Nullable Duration limit) {
    DaemonRecord mount = DaemonRecord.of("/mnt/dataset", "/src", 4711, socket.toString(), "/log");
    Invocation invocation = world.invocation();
    ProfileWatch watch =
        new ProfileWatch(
            invocation, mount, ProfileKey.OPERATION, 20, new ProfileDisplay(invocation, false));
    CompletableFuture<Integer> status = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              try {
                status.complete(watch.watch(Duration.ofMillis(50), limit));
              } catch (MountFailure e) {
                status.completeExceptionally(e);
              }
            });
    thread.start();
    return status;
  }
}
