package io.pmfs.daemon.metrics;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class HttpServerTest {
  private static final Duration LIMIT = Duration.ofSeconds(30);

  private final CountDownLatch hold = new CountDownLatch(1);
  private HttpServer server;

  @BeforeEach
  void listen() throws Exception {
    server = serve(LIMIT);
  }

  private HttpServer serve(Duration limit) throws IOException {
    return new HttpServer(
        loopback(0),
        Map.of(
            "/",
            new HttpContent("text/html", Map.of("X-Own", "yes"), () -> "ä page"),
            "/hold",
            new HttpContent(
                "text/plain",
                () -> {
                  hold.await();
                  return "held";
                }),
            "/bug",
            new HttpContent(
                "text/plain",
                () -> {
                  throw new IllegalStateException("a secret");
                })),
        limit);
  }

  private static InetSocketAddress loopback(int port) {
    return new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
  }

  @AfterEach
  void close() {
    hold.countDown();
    server.close();
  }

  @Test
  void get_page_isAnsweredWithItsHeaders() throws Exception {
    String answer = ask("GET / HTTP/1.1\r\nHost: localhost:1\r\n\r\n");

    assertThat(answer)
        .startsWith("HTTP/1.1 200 OK\r\n")
        .containsIgnoringCase("content-length: 7\r\n")
        .containsIgnoringCase("connection: close\r\n")
        .containsIgnoringCase("x-content-type-options: nosniff\r\n")
        .containsIgnoringCase("x-own: yes\r\n")
        .endsWith("\r\n\r\nä page");
  }

  @Test
  void head_page_hasNoBody() throws Exception {
    assertThat(ask("HEAD /?x=1 HTTP/1.0\r\n\r\n"))
        .startsWith("HTTP/1.1 200 OK\r\n")
        .containsIgnoringCase("content-length: 7\r\n")
        .endsWith("\r\n\r\n");
  }

  @ParameterizedTest
  @CsvSource({
    "GET /nothing HTTP/1.1, 404, 'not found: try /, /bug, /hold'",
    "GET /../etc/passwd HTTP/1.1, 404, not found",
    "POST / HTTP/1.1, 405, use GET or HEAD",
    "DELETE / HTTP/1.1, 405, use GET or HEAD",
    "GET /bug HTTP/1.1, 500, see the log",
    "GET /%zz HTTP/1.1, 400, not a path",
    "gibberish, 400, not an HTTP request"
  })
  void others_requests_getALine(String line, int status, String text) throws Exception {
    String answer = ask(line + "\r\n\r\n");

    assertThat(answer).startsWith("HTTP/1.1 " + status + " ").contains(text);
    assertThat(answer).doesNotContain("secret", "Exception");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        ""
      })
  void get_byAnothersName_isRefused(String host) throws Exception {
    assertThat(ask("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n")).startsWith("HTTP/1.1 421 ");
  }

  @ParameterizedTest
  @ValueSource(strings = {"localhost", "LOCALHOST:9464", "127.0.0.1:9464", "127.9.9.9", "[::1]:1"})
  void get_byANameOfThisMachine_isAnswered(String host) throws Exception {
    assertThat(ask("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n")).startsWith("HTTP/1.1 200 ");
  }

  @Test
  void get_hugeLineHeadOrBody_isCutOff() throws Exception {
    assertThat(ask("GET /" + "a".repeat(100_000) + " HTTP/1.1\r\n\r\n")).doesNotContain(" 200 ");
    assertThat(ask("GET / HTTP/1.1\r\nX: " + "a".repeat(1_000_000) + "\r\n\r\n"))
        .doesNotContain(" 200 ");
    assertThat(ask("GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"))
        .as("an announced body is not waited for")
        .startsWith("HTTP/1.1 200 ");
  }

  @Test
  void get_twiceOnOneConnection_isAnsweredOnce() throws Exception {
    String answer = ask("GET / HTTP/1.1\r\n\r\n".repeat(50));

    assertThat(answer).startsWith("HTTP/1.1 200 ");
    assertThat(answer.split("HTTP/1.1 200", -1)).hasSize(2);
  }

  @ParameterizedTest
  @CsvSource({"64, ''", "64, GET / HTTP/1.1", "1000, ''", "1000, GET / HTTP/1.1"})
  void get_besideIdleConnections_isAnsweredSoon(int count, String begun) throws Exception {
    List<Socket> idle = new ArrayList<>();
    try {
      for (int i = 0; i < count; i++) {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.address().getPort());
        idle.add(socket);
        try {
          socket.getOutputStream().write(begun.getBytes(ISO_8859_1));
        } catch (IOException e) {
          continue; // already evicted
        }
        if (i % 50 == 49) {
          long begin = System.nanoTime();
          assertThat(ask("GET / HTTP/1.1\r\nHost: localhost:1\r\n\r\n")).contains("200 OK");
          assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(1));
        }
      }
      assertThat(ask("GET / HTTP/1.1\r\nHost: localhost:1\r\n\r\n")).contains("200 OK");
    } finally {
      for (Socket socket : idle) {
        socket.close();
      }
    }
  }

  @Test
  void connection_thatTricklesItsHead_isClosedAfterTwoSeconds() throws Exception {
    long begin = System.nanoTime();
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.address().getPort())) {
      socket.getOutputStream().write("GET /".getBytes(ISO_8859_1));
      assertThat(socket.getInputStream().read()).isNegative();
    }
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(10));
  }

  @Test
  void requests_tooManyAtOnce_areTurnedAway() throws Exception {
    int taken = 1 + 32; // one in progress, the others wait
    int tooMany = 7;
    List<Socket> sockets = new ArrayList<>();
    try {
      for (int i = 0; i < taken + tooMany; i++) {
        Socket socket = connect();
        socket.getOutputStream().write("GET /hold HTTP/1.1\r\n\r\n".getBytes(UTF_8));
        sockets.add(socket);
      }
      Await.until("those that are too many are answered", () -> answered(sockets) >= tooMany);
      hold.countDown();
      List<String> answers = new ArrayList<>();
      for (Socket socket : sockets) {
        answers.add(rest(socket));
      }

      assertThat(answers).filteredOn(a -> a.startsWith("HTTP/1.1 503 ")).hasSize(tooMany);
      assertThat(answers).filteredOn(a -> a.endsWith("held")).hasSize(taken);
    } finally {
      for (Socket socket : sockets) {
        socket.close();
      }
    }
  }

  private static long answered(List<Socket> sockets) throws IOException {
    long count = 0;
    for (Socket socket : sockets) {
      count += socket.getInputStream().available() > 0 ? 1 : 0;
    }
    return count;
  }

  @Test
  void client_thatSendsNothing_isLeftBehind() throws Exception {
    try (HttpServer hurried = serve(Duration.ofMillis(200));
        Socket socket = new Socket()) {
      socket.connect(hurried.address());
      socket.getOutputStream().write("GET / HT".getBytes(UTF_8));

      assertThat(rest(socket)).isEmpty();
    }
  }

  @Test
  void open_portTaken_saysSo() {
    assertThatThrownBy(() -> new HttpServer(server.address(), Map.of(), LIMIT).close())
        .isInstanceOf(IOException.class)
        .hasMessageContaining("Address already in use");
  }

  private Socket connect() throws IOException {
    Socket socket = new Socket();
    socket.connect(server.address());
    socket.setSoTimeout(30_000);
    return socket;
  }

  private String ask(String request) throws IOException {
    try (Socket socket = connect()) {
      try {
        socket.getOutputStream().write(request.getBytes(ISO_8859_1));
      } catch (SocketException e) {
        // The server has stopped reading.
      }
      return rest(socket);
    }
  }

  private static String rest(Socket socket) throws IOException {
    try {
      return new String(socket.getInputStream().readAllBytes(), UTF_8);
    } catch (SocketException e) {
      return ""; // closed before the server had read everything
    }
  }
}
