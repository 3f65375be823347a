package io.pmfs.cluster.server;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;

/** A socket of a client that may or may not keep to the protocol. */
final class RawConnection implements AutoCloseable {
  private static final int TIMEOUT_MS = 20_000;

  final Socket socket;

  public RawConnection(PeerServer server) throws IOException {
    socket = new Socket();
    socket.setSoTimeout(TIMEOUT_MS);
    socket.connect(server.address(), TIMEOUT_MS);
  }

  /** A connection with a small receive buffer. */
  public RawConnection(InetSocketAddress address, int receiveBytes) throws IOException {
    socket = new Socket();
    socket.setReceiveBufferSize(receiveBytes);
    socket.setSoTimeout(TIMEOUT_MS);
    socket.connect(address, TIMEOUT_MS);
  }

  RawConnection send(String text) throws IOException {
    return send(text.getBytes(ISO_8859_1));
  }

  RawConnection send(byte[] bytes) throws IOException {
    socket.getOutputStream().write(bytes);
    return this;
  }

  /** Reads and discards that many bytes. */
  void drain(int bytes) throws IOException {
    socket.getInputStream().skipNBytes(bytes);
  }

  /** A head and the body that belongs to it; empty if the connection is closed before. */
  String answer() throws IOException {
    StringBuilder head = new StringBuilder();
    InputStream in = socket.getInputStream();
    while (head.indexOf("\r\n\r\n") < 0) {
      int c = in.read();
      if (c < 0) {
        return head.toString();
      }
      head.append((char) c);
    }
    String lower = head.toString().toLowerCase(java.util.Locale.ROOT);
    int at = lower.indexOf("content-length: ");
    if (at < 0) {
      return head.toString();
    }
    int size = Integer.parseInt(lower.substring(at + 16, lower.indexOf("\r\n", at)));
    return head + new String(in.readNBytes(size), ISO_8859_1);
  }

  /** Everything until the server closes the connection, which it must do. */
  String rest() throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try {
      socket.getInputStream().transferTo(out);
    } catch (java.net.SocketTimeoutException e) {
      throw new AssertionError("the connection stays open", e);
    } catch (java.net.SocketException e) {
      // Reset: closed, too.
    }
    return out.toString(ISO_8859_1);
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
