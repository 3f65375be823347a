package io.pmfs.cluster.client;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.pmfs.cluster.peers.FakeService;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.cluster.peers.PeerPath;
import io.pmfs.cluster.peers.PeerTls;
import io.pmfs.cluster.peers.RequestSignature;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.cluster.server.OutputRequests;
import io.pmfs.cluster.server.PeerHttpTest;
import io.pmfs.cluster.server.PeerLimits;
import io.pmfs.cluster.server.PeerServer;
import io.pmfs.metadata.FileName;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Foreign clients of the server, which sign by themselves: curl, also with TLS. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
final class ForeignClientTest {
  private final FakeService service = new FakeService();
  private final byte[] large = new byte[3 << 20];
  private PeerServer server;

  @TempDir Path directory;

  @BeforeEach
  void start() throws IOException {
    serve(null);
  }

  private void serve(@Nullable PeerTls tls) throws IOException {
    new Random(3).nextBytes(large);
    FileChannel file =
        FileChannel.open(
            directory.resolve("large"),
            StandardOpenOption.CREATE,
            StandardOpenOption.READ,
            StandardOpenOption.WRITE);
    service.put("a b/large", large, file, true);
    server =
        new PeerServer(
            "127.0.0.1",
            new RequestSignature(FakeService.key(), 1, InstantSource.system()),
            tls,
            PeerLimits.DEFAULTS,
            service,
            NodeRequests.NONE,
            OutputRequests.NONE);
  }

  @AfterEach
  void stop() {
    server.close();
  }

  private byte[] run(String... command) throws Exception {
    String program = command[0];
    assumeTrue(
        Stream.of("/bin", "/usr/bin", "/usr/local/bin")
            .anyMatch(bin -> Files.isExecutable(Path.of(bin, program))),
        program + " is not installed");
    Process process =
        new ProcessBuilder(command)
            .directory(directory.toFile())
            .redirectError(directory.resolve("errors").toFile())
            .start();
    byte[] output = process.getInputStream().readAllBytes();
    assertThat(process.waitFor()).as(Files.readString(directory.resolve("errors"))).isZero();
    return output;
  }

  /** A command line that requests a file, signed for one use. */
  private String[] curl(String path, String... options) {
    return signed("http://127.0.0.1:" + server.address().getPort(), path, options);
  }

  private static String[] signed(String url, String path, String... options) {
    List<String> line = new ArrayList<>(List.of("curl", "-sS"));
    line.addAll(List.of(options));
    String method = line.contains("--head") ? "HEAD" : "GET";
    String target = "/v1/data/" + PeerPath.encode(FileName.of(path));
    HttpHeaders headers = PeerFormat.headers();
    int range = line.indexOf("--range");
    if (range >= 0) {
      headers.set(HttpHeaderNames.RANGE, "bytes=" + line.get(range + 1));
    }
    new RequestSignature(FakeService.key(), 1, InstantSource.system())
        .sign(method, target, headers);
    line.add("--header");
    line.add("Authorization: " + headers.get(HttpHeaderNames.AUTHORIZATION));
    line.add(url + target);
    return line.toArray(String[]::new);
  }

  @Test
  void curl_readsAFile() throws Exception {
    assertThat(run(curl("a b/large"))).isEqualTo(large);
    assertThat(run(curl("a b/large", "--range", "5-1048999")))
        .isEqualTo(Arrays.copyOfRange(large, 5, 1_049_000));
    assertThat(new String(run(curl("a b/large", "--head")), ISO_8859_1))
        .startsWith("HTTP/1.1 200")
        .contains("content-length: " + large.length)
        .contains("Pmfs-Version: " + large.length + ".1700000000.123456789");
    assertThat(new String(run(curl("missing")), UTF_8)).isEqualTo("ENOENT: missing\n");
  }

  @Test
  void curl_works_once() throws Exception {
    String[] command = curl("a b/large");
    assertThat(run(command)).isEqualTo(large);
    assertThat(new String(run(command), UTF_8)).startsWith("the request was seen before");
    String url = command[command.length - 1];
    assertThat(new String(run("curl", "-sS", url), UTF_8)).isEqualTo("the request is not signed\n");
  }

  @Test
  void curl_passesOverProcessing() throws Exception {
    service.put("slow", new byte[] {'s'});
    service.held = "slow";
    Process curl = new ProcessBuilder(curl("slow")).start();
    service.waiting.await();
    assertThat(curl.waitFor(1200, TimeUnit.MILLISECONDS)).isFalse();
    service.gate.release(2);
    assertThat(new String(curl.getInputStream().readAllBytes(), ISO_8859_1)).isEqualTo("s");
    assertThat(curl.waitFor()).isZero();
  }

  /** A certificate that an authority has signed; its files are NAME.pem and NAME.key. */
  private void certificate(String name, String authority) throws Exception {
    run(
        "openssl",
        "req",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        "/CN=" + name,
        "-keyout",
        name + ".key",
        "-out",
        name + ".csr");
    run(
        "openssl",
        "x509",
        "-req",
        "-in",
        name + ".csr",
        "-CA",
        authority + ".pem",
        "-CAkey",
        authority + ".key",
        "-CAcreateserial",
        "-days",
        "2",
        "-out",
        name + ".pem");
  }

  private void authority(String name) throws Exception {
    run(
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        "/CN=" + name,
        "-days",
        "2",
        "-keyout",
        name + ".key",
        "-out",
        name + ".pem");
  }

  private PeerTls tls(String name, String authority) throws IOException {
    return new PeerTls(
        directory.resolve(name + ".pem"),
        directory.resolve(name + ".key"),
        directory.resolve(authority + ".pem"));
  }

  private void read(@Nullable PeerTls tls) throws PeerException {
    try (HttpPeerClient client =
        new HttpPeerClient(FakeService.key(), tls, FakeService.PATIENT, peer -> false, null)) {
      ByteBuffer destination = ByteBuffer.allocateDirect(large.length);
      client.fetch(
          PeerHttpTest.member(server, 1),
          FileName.of("a b/large"),
          FakeService.version(large),
          0,
          destination,
          false,
          Patience.endless());
      assertThat(destination.flip()).isEqualTo(ByteBuffer.wrap(large));
    }
  }

  @Test
  void tls_isBetweenThoseWhoHaveACertificate() throws Exception {
    authority("ca");
    authority("other");
    certificate("node", "ca");
    certificate("stranger", "other");
    server.close();
    serve(tls("node", "ca"));
    read(tls("node", "ca"));
    assertUnreachable(null);
    assertUnreachable(tls("stranger", "ca"));
    assertUnreachable(tls("node", "other"));
    int port = server.address().getPort();
    byte[] read =
        run(
            signed(
                "https://node:" + port,
                "a b/large",
                "--cacert",
                "ca.pem",
                "--cert",
                "node.pem",
                "--key",
                "node.key",
                "--connect-to",
                "node::127.0.0.1:" + port,
                "--header",
                "Host:127.0.0.1"));
    assertThat(read).isEqualTo(large);
  }

  private void assertUnreachable(@Nullable PeerTls tls) {
    assertThatThrownBy(() -> read(tls))
        .isInstanceOf(PeerException.class)
        .extracting(e -> ((PeerException) e).kind())
        .isNotEqualTo(PeerException.Kind.FAILED);
  }

  @Test
  void tls_ofWhatIsNoCertificate_saysSo() throws Exception {
    assertThatThrownBy(() -> tls("none", "none")).hasMessageContaining("none.pem cannot be read");
    Files.writeString(directory.resolve("x.pem"), "x");
    Files.writeString(directory.resolve("x.key"), "x");
    assertThatThrownBy(() -> tls("x", "x"))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("in PEM");
  }
}
