package io.pmfs.cluster.client;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.cluster.peers.FakeService;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerTls;
import io.pmfs.cluster.server.NodeRequests;
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
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Foreign clients of the server: curl, also with TLS. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
final class PeerCurlTest {
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
            0,
            FakeService.key(),
            tls,
            1,
            PeerLimits.DEFAULTS,
            service,
            NodeRequests.NONE);
  }

  @AfterEach
  void stop() {
    server.close();
  }

  private byte[] run(String... command) throws Exception {
    String program = command[0].equals("sh") ? "curl" : command[0];
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

  private static PeerCurl curl(boolean isEncrypted) {
    return new PeerCurl(FakeService.key(), isEncrypted, peer -> InstantSource.system());
  }

  private String get(String path, @Nullable String range) {
    return curl(false).get(PeerHttpTest.member(server, 1), "data", FileName.of(path), range);
  }

  /** Runs a command as pasted into a shell. */
  private byte[] shell(String command) throws Exception {
    return run("sh", "-c", command);
  }

  @Test
  void curl_readsAFile() throws Exception {
    assertThat(shell(get("a b/large", null))).isEqualTo(large);
    assertThat(shell(get("a b/large", "5-1048999")))
        .isEqualTo(Arrays.copyOfRange(large, 5, 1_049_000));
    String head =
        curl(false).head(PeerHttpTest.member(server, 1), "data", FileName.of("a b/large"));
    assertThat(new String(shell(head), ISO_8859_1))
        .startsWith("HTTP/1.1 200")
        .contains("content-length: " + large.length)
        .contains("Pmfs-Version: " + large.length + ".1700000000.123456789");
    assertThat(new String(shell(get("missing", null)), UTF_8)).isEqualTo("ENOENT: missing\n");
  }

  @Test
  void curl_ofANameWithQuotes_isOneWord() throws Exception {
    service.put("it's; echo $HOME", new byte[] {'x'});
    assertThat(shell(get("it's; echo $HOME", null))).isEqualTo(new byte[] {'x'});
  }

  @Test
  void curl_works_once() throws Exception {
    String command = get("a b/large", null);
    assertThat(shell(command)).isEqualTo(large);
    assertThat(new String(shell(command), UTF_8)).startsWith("the request was seen before");
    String unsigned = command.replaceFirst("--header '[^']*' ", "");
    assertThat(new String(shell(unsigned), UTF_8)).isEqualTo("the request is not signed\n");
  }

  @Test
  void curl_ofWhatIsNotServed_isRefused() {
    assertThatThrownBy(
            () -> curl(false).get(PeerHttpTest.member(server, 1), "task", FileName.of(""), null))
        .hasMessage(
            "'task' is not known; choose one of data, directory, status, link, xattr, node");
  }

  @Test
  void curl_passesOverProcessing() throws Exception {
    service.put("slow", new byte[] {'s'});
    service.held = "slow";
    Process curl = new ProcessBuilder("sh", "-c", get("slow", null)).start();
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
          false);
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
    String command =
        curl(true).get(PeerHttpTest.member(server, 1), "data", FileName.of("a b/large"), null);
    byte[] read =
        shell(
            command
                    .replace("https://127.0.0.1:", "https://node:")
                    .replaceFirst("^curl", "curl --cacert ca.pem --cert node.pem --key node.key")
                + " --connect-to node::127.0.0.1:"
                + server.address().getPort()
                + " --header Host:127.0.0.1");
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
