package io.pmfs.cluster.peers;

import io.netty.channel.Channel;
import io.netty.handler.ssl.ClientAuth;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.ssl.SslProvider;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * TLS between nodes, with a certificate on each side. Every holder of a certificate from the
 * authority is a peer; the name in the certificate does not matter. So the authority must serve
 * this purpose only.
 */
public final class PeerTls {
  private static final int HANDSHAKE_SECONDS = 5;
  private static final List<String> PROTOCOLS = List.of("TLSv1.3", "TLSv1.2");

  private final SslContext server;
  private final SslContext client;

  /**
   * Reads PEM files.
   *
   * @param certificates this node's certificate chain, its own certificate first
   * @param key its private key: PKCS #8, not encrypted
   * @param authority the certificates at which the peers' chains end
   * @throws IOException if a file cannot be read or has other content
   */
  public PeerTls(Path certificates, Path key, Path authority) throws IOException {
    for (Path file : List.of(certificates, key, authority)) {
      if (!Files.isReadable(file)) {
        throw new IOException("cannot set up TLS between peers: " + file + " cannot be read");
      }
    }
    try {
      server =
          SslContextBuilder.forServer(certificates.toFile(), key.toFile())
              .sslProvider(SslProvider.JDK)
              .protocols(PROTOCOLS)
              .trustManager(authority.toFile())
              .clientAuth(ClientAuth.REQUIRE)
              .build();
      client =
          SslContextBuilder.forClient()
              .sslProvider(SslProvider.JDK)
              .protocols(PROTOCOLS)
              .keyManager(certificates.toFile(), key.toFile())
              .trustManager(authority.toFile())
              .endpointIdentificationAlgorithm(null)
              .build();
    } catch (IOException | IllegalArgumentException e) {
      throw new IOException(
          "cannot set up TLS between peers: "
              + certificates
              + ", "
              + key
              + " and "
              + authority
              + " must be a certificate chain, its private key (PKCS #8, not encrypted) and"
              + " authorities, all in PEM: "
              + e.getMessage(),
          e);
    }
  }

  public SslHandler server(Channel channel) {
    return bounded(server.newHandler(channel.alloc()));
  }

  public SslHandler client(Channel channel) {
    return bounded(client.newHandler(channel.alloc()));
  }

  private static SslHandler bounded(SslHandler handler) {
    handler.setHandshakeTimeout(HANDSHAKE_SECONDS, TimeUnit.SECONDS);
    handler.setCloseNotifyFlushTimeout(1, TimeUnit.SECONDS);
    return handler;
  }
}
