package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.security.GeneralSecurityException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class SecretTlsTest {
  private static final int TIMEOUT_MS = 10_000;

  private static SSLContext context(String secret, String label)
      throws GeneralSecurityException, IOException {
    return new SecretTls(ClusterSecret.ofText(secret, "test"), label).context();
  }

  /** What the server reads from the client; a byte is sent both ways. */
  private static int exchange(SSLContext server, SSLContext client) throws Exception {
    InetAddress loopback = InetAddress.getLoopbackAddress();
    try (SSLServerSocket listening =
        (SSLServerSocket) server.getServerSocketFactory().createServerSocket(0, 1, loopback)) {
      listening.setNeedClientAuth(true);
      listening.setSoTimeout(TIMEOUT_MS);
      CompletableFuture<Integer> read =
          CompletableFuture.supplyAsync(
              () -> {
                try (SSLSocket socket = (SSLSocket) listening.accept()) {
                  socket.setSoTimeout(TIMEOUT_MS);
                  int received = socket.getInputStream().read();
                  socket.getOutputStream().write(received);
                  return received;
                } catch (IOException e) {
                  throw new IllegalStateException(e);
                }
              });
      try (SSLSocket socket =
          (SSLSocket) client.getSocketFactory().createSocket(loopback, listening.getLocalPort())) {
        socket.setSoTimeout(TIMEOUT_MS);
        socket.getOutputStream().write(7);
        assertThat(socket.getInputStream().read()).isEqualTo(7);
        assertThat(socket.getSession().getProtocol()).isEqualTo("TLSv1.3");
      } catch (IOException e) {
        read.handle((value, failure) -> value).join();
        throw e;
      }
      return read.get();
    }
  }

  @Test
  void context_sameSecret_understandEachOther() throws Exception {
    // The certificate's size, and with it its encoding, depends on the key and the signature.
    for (int i = 0; i < 20; i++) {
      String secret = "a secret of the test " + i;
      assertThat(exchange(context(secret, "x"), context(secret, "x"))).isEqualTo(7);
    }
  }

  @ParameterizedTest
  @CsvSource({"another secret entirely,x", "the secret of the test,y"})
  void context_otherSecretOrLabel_getsNowhere(String secret, String label) throws Exception {
    SSLContext one = context("the secret of the test", "x");
    SSLContext other = context(secret, label);
    assertThatThrownBy(() -> exchange(one, other)).isInstanceOf(IOException.class);
    assertThatThrownBy(() -> exchange(other, one)).isInstanceOf(IOException.class);
  }

  @Test
  void context_clientWithoutAKey_isNotHeard() throws Exception {
    SSLContext server = context("the secret of the test", "x");
    SSLContext careless = SSLContext.getInstance("TLSv1.3");
    careless.init(null, new javax.net.ssl.TrustManager[] {new TrustsAll()}, null);
    assertThatThrownBy(() -> exchange(server, careless))
        .isInstanceOfAny(IOException.class, ExecutionException.class);
  }

  private static final class TrustsAll implements javax.net.ssl.X509TrustManager {
    @Override
    public void checkClientTrusted(java.security.cert.X509Certificate[] chain, String type) {}

    @Override
    public void checkServerTrusted(java.security.cert.X509Certificate[] chain, String type) {}

    @Override
    public java.security.cert.X509Certificate[] getAcceptedIssuers() {
      return new java.security.cert.X509Certificate[0];
    }
  }
}
