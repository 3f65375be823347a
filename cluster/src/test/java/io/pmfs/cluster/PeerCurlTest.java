package io.pmfs.cluster;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.metadata.FileName;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What others make of our server: curl, with TLS, too. */
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
            "127.0.0.1", 0, null, tls, 1, PeerLimits.DEFAULTS, service, NodeRequests.NONE);
  }

  @AfterEach
  void stop() {
    server.close();
  }

  private byte[] run(String... command) throws Exception {
    List<String> all = new ArrayList<>(List.of(command));
    Process process;
    try {
      process =
          new ProcessBuilder(all)
              .directory(directory.toFile())
              .redirectError(directory.resolve("errors").toFile())
              .start();
    } catch (IOException e) {
      assumeTrue(false, command[0] + " is not installed: " + e.getMessage());
      throw e;
    }
    byte[] output = process.getInputStream().readAllBytes();
    assertThat(process.waitFor()).as(Files.readString(directory.resolve("errors"))).isZero();
    return output;
  }

  private String url(String scheme, String path) {
    return scheme + "://127.0.0.1:" + server.address().getPort() + "/v1/" + path;
  }

  @Test
  void curl_readsAFile() throws Exception {
    String url = url("http", "data/a%20b/large");
    assertThat(run("curl", "-sf", url)).isEqualTo(large);
    assertThat(run("curl", "-sf", "-r", "5-1048999", url))
        .isEqualTo(Arrays.copyOfRange(large, 5, 1_049_000));
    assertThat(new String(run("curl", "-sfI", url), ISO_8859_1))
        .startsWith("HTTP/1.1 200")
        .contains("content-length: " + large.length)
        .contains("Pmfs-Version: " + large.length + ".1700000000.123456789");
    assertThat(new String(run("curl", "-s", url("http", "data/missing")), UTF_8))
        .isEqualTo("ENOENT: missing\n");
  }

  @Test
  void curl_passesOverProcessing() throws Exception {
    service.put("slow", new byte[] {'s'});
    service.held = "slow";
    Process curl;
    try {
      curl = new ProcessBuilder("curl", "-s", url("http", "data/slow")).start();
    } catch (IOException e) {
      assumeTrue(false, "curl is not installed: " + e.getMessage());
      throw e;
    }
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
    try (HttpPeerClient client = new HttpPeerClient(null, tls, FakeService.PATIENT)) {
      ByteBuffer destination = ByteBuffer.allocateDirect(large.length);
      client.read(
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
    byte[] read =
        run(
            "curl",
            "-sf",
            "--cacert",
            "ca.pem",
            "--cert",
            "node.pem",
            "--key",
            "node.key",
            "--connect-to",
            "node::127.0.0.1:" + url("https", "").replaceAll(".*:|/.*", ""),
            "https://node/v1/data/a%20b/large");
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
