package io.pmfs.cli.control;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.daemon.control.ControlRequests;
import io.pmfs.daemon.control.ControlServer;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.SampleReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.tasks.FakeTasks;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.metadata.FileName;
import io.pmfs.tasks.TaskFinding;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ControlServerTest {
  private static final Duration LIMIT = Duration.ofSeconds(20);

  @TempDir private Path temporary;
  private final Requests requests = new Requests();
  private Path socket = Path.of("unset");
  private @Nullable ControlServer server;

  private static final class Requests implements ControlRequests {
    @Override
    public void upgrade() throws MountFailure {
      throw new MountFailure(ExitStatus.FAILED, "nobody holds the mount");
    }

    final FakeTasks fakeTasks = new FakeTasks();
    final KeptTasks tasks = new KeptTasks(fakeTasks, null);
    final List<String> unmounts = new ArrayList<>();
    @Nullable MountFailure failure;
    @Nullable RuntimeException bug;
    @Nullable CountDownLatch hold;
    @Nullable NodesReport nodes;

    @Override
    public StatusReport status() {
      if (bug != null) {
        throw bug;
      }
      CountDownLatch latch = hold;
      if (latch != null) {
        try {
          latch.await();
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }
      return SampleReport.of("/mnt/ä", "/src");
    }

    @Override
    public @Nullable NodesReport nodes() {
      return nodes;
    }

    @Override
    public String metrics() {
      return "pmfs_reads_total 7\n";
    }

    @Override
    public KeptTasks tasks() {
      return tasks;
    }

    @Override
    public @Nullable String join(Path mountpoint, Duration timeout) throws MountFailure {
      if (failure != null) {
        throw failure;
      }
      return mountpoint + " " + timeout;
    }

    @Override
    public void unmount(boolean lazy, boolean purge, boolean abandon) throws MountFailure {
      if (failure != null) {
        throw failure;
      }
      unmounts.add("lazy=" + lazy + " purge=" + purge);
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          mountpoint=/mnt/%C3%A4%20b&timeout=500ms | 200 | "device":"/mnt/ä b PT0.5S"
          mountpoint=mnt&timeout=1s                | 400 | give an absolute path
          mountpoint=/mnt/../etc&timeout=1s        | 400 | give an absolute path
          mountpoint=/mnt/./x&timeout=1s           | 400 | give an absolute path
          mountpoint=/mnt%00x&timeout=1s           | 400 | Nul character
          mountpoint=&timeout=1s                   | 400 | give an absolute path
          mountpoint=/a&mountpoint=/b&timeout=1s   | 400 | mountpoint: give one value
          timeout=1s                               | 400 | mountpoint: give one value
          mountpoint=/mnt                          | 400 | timeout: give one value
          mountpoint=/mnt&timeout=0s               | 400 | longer than zero
          mountpoint=/mnt&timeout=-1               | 400 | is not a duration
          mountpoint=/mnt&timeout=1s&fd=7          | 400 | unknown parameter fd
          """)
  void mount_ofAFurtherPlace_takesOnlyWholeRequests(String query, int status, String answer)
      throws IOException {
    ControlClient.Answer given = ask(HttpMethod.POST, "/mount?" + query);

    assertThat(given.status()).as(given.body()).isEqualTo(status);
    assertThat(given.body()).contains(answer);
    assertThat(ask(HttpMethod.GET, "/version").status()).isEqualTo(200);
  }

  @ParameterizedTest
  @CsvSource({"1,500", "5,501", "6,503"})
  void mount_refused_saysWhetherItEverWorks(int exit, int status) throws IOException {
    requests.failure = new MountFailure(exit, "the reason");

    ControlClient.Answer given = ask(HttpMethod.POST, "/mount?mountpoint=/mnt&timeout=1s");

    assertThat(given.status()).isEqualTo(status);
    assertThat(given.error()).isEqualTo("the reason");
  }

  @BeforeEach
  void startServer() throws Exception {
    socket = temporary.resolve("s");
    server = ControlServer.start(socket, requests);
  }

  @AfterEach
  void stopServer() {
    if (server != null) {
      server.close();
    }
  }

  @Test
  void start_socket_isForThisUserOnly() throws Exception {
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(socket)))
        .isEqualTo("rw-------");
  }

  @Test
  void start_pathTaken_fails() {
    assertThatThrownBy(() -> ControlServer.start(socket, requests)).isInstanceOf(IOException.class);
  }

  @Test
  void status_ofAllNodes_isTheirs() throws Exception {
    requests.nodes =
        new NodesReport(
            "/mnt/x",
            "train",
            List.of(new NodesReport.NodeReport("n2", "10.0.0.2", "is silent", null, false, null)),
            new NodesReport.Counts(0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
            1,
            List.of(),
            null);

    ControlClient.Answer answer = ask(HttpMethod.GET, "/status?all-nodes=true");

    assertThat(answer.status()).isEqualTo(200);
    assertThat(answer.body()).contains("\"cluster\":\"train\"", "\"error\":\"is silent\"");
  }

  @Test
  void status_ofAllNodesWithoutACluster_saysSo() throws Exception {
    ControlClient.Answer answer = ask(HttpMethod.GET, "/status?all-nodes=true");

    assertThat(answer.status()).isEqualTo(404);
    assertThat(answer.error()).isEqualTo(ControlServer.NO_CLUSTER);
    assertThat(ask(HttpMethod.GET, "/status?all-nodes=maybe").status()).isEqualTo(400);
    assertThat(ask(HttpMethod.GET, "/status?all=true").status()).isEqualTo(400);
    assertThat(ask(HttpMethod.GET, "/status?all-nodes=false").status()).isEqualTo(200);
  }

  @Test
  void status_asked_isTheReport() throws Exception {
    ControlClient.Answer answer = ask(HttpMethod.GET, "/status");

    assertThat(answer.status()).isEqualTo(200);
    assertThat(json(answer).get("mountpoint").getAsString()).isEqualTo("/mnt/ä");
    assertThat(json(answer).getAsJsonObject("reads").get("hitRatio").getAsDouble()).isEqualTo(0.75);
  }

  @Test
  void version_asked_hasPid() throws Exception {
    JsonObject version = json(ask(HttpMethod.GET, "/version"));

    assertThat(version.get("pid").getAsLong()).isEqualTo(ProcessHandle.current().pid());
    assertThat(version.get("version").getAsString()).matches("\\d+\\..*");
  }

  @ParameterizedTest
  @CsvSource({
    "/umount,lazy=false purge=false",
    "/umount?lazy=true,lazy=true purge=false",
    "/umount?purge=true&lazy=false,lazy=false purge=true"
  })
  void umount_posted_passesItsParameters(String uri, String expected) throws Exception {
    assertThat(ask(HttpMethod.POST, uri).status()).isEqualTo(200);
    assertThat(requests.unmounts).containsExactly(expected);
  }

  @Test
  void umount_busy_isConflict() throws Exception {
    requests.failure = new MountFailure(ExitStatus.FAILED, MountFailure.BUSY);

    ControlClient.Answer answer = ask(HttpMethod.POST, "/umount");

    assertThat(answer.status()).isEqualTo(409);
    assertThat(json(answer).get("error").getAsString()).isEqualTo("busy");
  }

  @ParameterizedTest
  @CsvSource({
    "GET,/nothing,404",
    "GET,/,404",
    "POST,/status,405",
    "GET,/umount,405",
    "DELETE,/version,405",
    "GET,/tasks,405",
    "POST,/tasks/latest,405",
    "GET,/tasksx,404",
    "GET,/tasks/latest/findings?limit=1001,400",
    "GET,/tasks/latest/findings?from=-1,400",
    "GET,/tasks/latest/findings?first=1,400",
    "POST,/umount?lazy=maybe,400",
    "POST,/umount?lazy=true&lazy=true,400",
    "POST,/umount?force=true,400"
  })
  void request_wrong_isAnsweredWithJson(String method, String uri, int status) throws Exception {
    ControlClient.Answer answer = ask(HttpMethod.valueOf(method), uri);

    assertThat(answer.status()).isEqualTo(status);
    assertThat(json(answer).get("error").getAsString()).isNotEmpty();
    assertThat(requests.unmounts).isEmpty();
  }

  @Test
  void request_thatHitsABug_is500AndTheServerGoesOn() throws Exception {
    requests.bug = new IllegalStateException("bug");
    assertThat(ask(HttpMethod.GET, "/status").status()).isEqualTo(500);

    requests.bug = null;
    assertThat(ask(HttpMethod.GET, "/status").status()).isEqualTo(200);
  }

  @Test
  void request_asCurlSendsIt_isAnsweredAndClosed() throws Exception {
    String answer = raw("GET /version HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n");

    assertThat(answer)
        .startsWith("HTTP/1.1 200 OK\r\n")
        .contains("content-type: application/json", "connection: close")
        .endsWith("}\n");
  }

  @Test
  void request_notHttp_is400() throws Exception {
    assertThat(raw("nonsense\r\n\r\n")).startsWith("HTTP/1.1 400");
  }

  @Test
  void request_tooLarge_isRefused() throws Exception {
    assertThat(
            raw(
                "POST /umount HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10000000\r\n\r\n"
                    + "x"))
        .startsWith("HTTP/1.1 413");
    assertThat(requests.unmounts).isEmpty();
  }

  @Test
  void tasks_asCurlPostsOne_startsIt() throws Exception {
    String body = "{\"task\": \"stage\", \"paths\": [\"a%FFb\", \"ä\"]}";

    String answer =
        raw(
            "POST /tasks HTTP/1.1\r\nHost: pmfs\r\nContent-Length: %d\r\n\r\n%s"
                .formatted(body.getBytes(UTF_8).length, body));

    assertThat(answer).startsWith("HTTP/1.1 200 OK\r\n").contains("\"state\":\"running\"");
    assertThat(requests.fakeTasks.last().paths)
        .containsExactly(FileName.ofLatin1("a\u00ffb"), FileName.of("ä"));
  }

  @Test
  void tasks_startedWhileOneRuns_isConflict() throws Exception {
    assertThat(post("{\"task\":\"evict\",\"paths\":[\"\"]}").status()).isEqualTo(200);

    ControlClient.Answer second = post("{\"task\":\"stage\",\"paths\":[\"\"]}");

    assertThat(second.status()).isEqualTo(409);
    assertThat(second.error()).isEqualTo("evicting is running");
  }

  @Test
  void tasks_wrongBody_isRefusedInWords() throws Exception {
    assertThat(post("").status()).isEqualTo(400);
    assertThat(post("{\"task\":\"stage\",\"paths\":[\"/etc\"]}").error()).contains("'/etc'");
    assertThat(post("{\"task\":\"stage\",\"paths\":[\"\"]} {}").error())
        .contains("more text follows");
    assertThat(requests.fakeTasks.started).isEmpty();
  }

  @Test
  void tasks_latest_isToldAndCancelled() throws Exception {
    assertThat(ask(HttpMethod.GET, "/tasks/latest").status()).isEqualTo(404);
    post("{\"task\":\"stage\",\"paths\":[\"\"]}");

    JsonObject running = json(ask(HttpMethod.GET, "/tasks/latest"));
    JsonObject cancelled = json(ask(HttpMethod.DELETE, "/tasks/latest"));

    assertThat(running.get("state").getAsString()).isEqualTo("running");
    assertThat(cancelled.get("state").getAsString()).isEqualTo("cancelled");
    assertThat(cancelled.get("id")).isEqualTo(running.get("id"));
  }

  @Test
  void tasks_findings_comeInPages() throws Exception {
    requests.fakeTasks.findings =
        IntStream.range(0, 5)
            .mapToObj(i -> new TaskFinding(FileName.of("f" + i), TaskFinding.Kind.NO_ROOM, "why"))
            .toList();
    post("{\"task\":\"stage\",\"paths\":[\"\"]}");

    String page = ask(HttpMethod.GET, "/tasks/latest/findings?from=3&limit=1").body();

    assertThat(page)
        .isEqualTo(
            "{\"findings\":[{\"path\":\"f3\",\"outcome\":\"no-room\",\"reason\":\"why\"}]}\n");
    assertThat(ask(HttpMethod.GET, "/tasks/latest/findings?from=5").body())
        .isEqualTo("{\"findings\":[]}\n");
  }

  private ControlClient.Answer post(String body) throws IOException {
    return ControlClient.ask(
        socket, HttpMethod.POST, "/tasks", Unpooled.copiedBuffer(body, UTF_8), LIMIT);
  }

  @Test
  void client_silentServer_givesUpInTime() {
    CountDownLatch hold = new CountDownLatch(1);
    requests.hold = hold;
    try {
      assertThatThrownBy(
              () -> ControlClient.ask(socket, HttpMethod.GET, "/status", Duration.ofMillis(200)))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("no answer within");
    } finally {
      hold.countDown();
    }
  }

  @Test
  void client_nobodyListens_fails() {
    Path nowhere = temporary.resolve("nowhere");

    assertThatThrownBy(() -> ControlClient.ask(nowhere, HttpMethod.GET, "/status", LIMIT))
        .isInstanceOf(IOException.class);
  }

  @Test
  void close_twice_isFine() {
    ControlServer running = Objects.requireNonNull(server);
    running.close();
    running.close();

    assertThatThrownBy(() -> ask(HttpMethod.GET, "/status")).isInstanceOf(IOException.class);
  }

  private ControlClient.Answer ask(HttpMethod method, String uri) throws IOException {
    return ControlClient.ask(socket, method, uri, LIMIT);
  }

  private static JsonObject json(ControlClient.Answer answer) {
    return JsonParser.parseString(answer.body()).getAsJsonObject();
  }

  /** Sends bytes and reads until the server closes. */
  private String raw(String request) throws IOException {
    try (SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX)) {
      channel.connect(UnixDomainSocketAddress.of(socket));
      ByteBuffer bytes = ByteBuffer.wrap(request.getBytes(UTF_8));
      while (bytes.hasRemaining()) {
        channel.write(bytes);
      }
      return new String(Channels.newInputStream(channel).readAllBytes(), UTF_8);
    }
  }
}
