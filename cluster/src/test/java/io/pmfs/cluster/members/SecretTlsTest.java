package io.pmfs.cluster.members;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.security.GeneralSecurityException;
import java.security.PublicKey;
import java.util.HexFormat;
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

  /** The key that the server shows; a byte is sent both ways. */
  private static PublicKey exchange(SSLContext server, SSLContext client) throws Exception {
    InetAddress loopback = InetAddress.getLoopbackAddress();
    try (SSLServerSocket listening =
        (SSLServerSocket) server.getServerSocketFactory().createServerSocket(0, 1, loopback)) {
      listening.setNeedClientAuth(true);
      listening.setSoTimeout(TIMEOUT_MS);
      PublicKey key;
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
        key = socket.getSession().getPeerCertificates()[0].getPublicKey();
      } catch (IOException e) {
        read.handle((value, failure) -> value).join();
        throw e;
      }
      assertThat(read.get()).isEqualTo(7);
      return key;
    }
  }

  @Test
  void context_sameSecret_understandEachOther() throws Exception {
    String secret = "a secret of the test ";
    for (int i = 0; i < 5; i++) {
      assertThat(exchange(context(secret + i, "x"), context(secret + i, "x")))
          .isNotEqualTo(exchange(context(secret, "x"), context(secret, "x")));
    }
  }

  /** Otherwise members of two versions could not communicate. */
  @Test
  void context_aSecret_givesTheKeyThatItAlwaysGave() throws Exception {
    SSLContext context = context("the secret of the test", "x");
    assertThat(HexFormat.of().formatHex(exchange(context, context).getEncoded()))
        .isEqualTo(
            "3059301306072a8648ce3d020106082a8648ce3d03010703420004"
                + "df3696bdf30d0ef1b762ac21ec796da15cbe0fd3d7059d158ea8644c50ed67c8"
                + "eebae9431b6fb04677e5b297b85dc51e039682b6cbe4a0df40cd507d630222f6");
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
