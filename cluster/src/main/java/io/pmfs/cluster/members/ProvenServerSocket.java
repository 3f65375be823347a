package io.pmfs.cluster.members;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hands out only connections whose other end has proved by TLS that it knows the secret. JGroups
 * accepts a connection only after it has finished the handshake of the previous one, so one silent
 * client would keep all members out. Here each handshake has its own thread and a time limit, and
 * the number of handshakes from one address is limited. Thread-safe.
 */
final class ProvenServerSocket extends ServerSocket {
  private static final Logger log = LoggerFactory.getLogger(ProvenServerSocket.class);

  /** Limits of simultaneous handshakes: in total, and {@link #MOST_OF_AN_ADDRESS} per address. */
  static final int MOST = 64;

  static final int MOST_OF_AN_ADDRESS = 16;
  private static final long POLL_MS = 200;

  private final SSLSocketFactory tls;
  private final Duration limit;
  private final Semaphore places = new Semaphore(MOST);
  private final Map<InetAddress, Integer> addresses = new ConcurrentHashMap<>();
  private final BlockingQueue<Socket> proven = new LinkedBlockingQueue<>();
  private final AtomicBoolean begun = new AtomicBoolean();

  /**
   * Creates an unbound socket.
   *
   * @param limit the time for one handshake
   */
  ProvenServerSocket(SSLSocketFactory tls, Duration limit) throws IOException {
    this.tls = tls;
    this.limit = limit;
  }

  @Override
  public Socket accept() throws IOException {
    if (begun.compareAndSet(false, true)) {
      try {
        daemon("pmfs-group-accept", this::acceptAll);
      } catch (OutOfMemoryError e) {
        begun.set(false);
        throw e;
      }
    }
    try {
      while (!isClosed()) {
        Socket socket = proven.poll(POLL_MS, TimeUnit.MILLISECONDS);
        if (socket != null) {
          return socket;
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted");
    }
    throw new SocketException("closed");
  }

  private static void daemon(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }

  private void acceptAll() {
    while (!isClosed()) {
      try {
        take(super.accept());
      } catch (IOException | RuntimeException | Error e) {
        log.debug("cannot accept a member's connection: {}", e.toString());
        pauseUnlessClosed();
      }
    }
  }

  /** Pauses after a failed accept: without free descriptors the next one would fail, too. */
  private void pauseUnlessClosed() {
    try {
      Thread.sleep(isClosed() ? 0 : POLL_MS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void take(Socket socket) {
    InetAddress from = socket.getInetAddress();
    if (addresses.merge(from, 1, Integer::sum) > MOST_OF_AN_ADDRESS || !places.tryAcquire()) {
      leave(from);
      close(socket);
      return;
    }
    try {
      daemon(
          "pmfs-group-handshake",
          () -> {
            try {
              prove(socket);
            } finally {
              leave(from);
              places.release();
            }
          });
    } catch (OutOfMemoryError e) {
      log.warn("cannot start a thread for a member's TLS handshake: {}", e.toString());
      leave(from);
      places.release();
      close(socket);
    }
  }

  private void leave(InetAddress from) {
    addresses.computeIfPresent(from, (address, count) -> count > 1 ? count - 1 : null);
  }

  private void prove(Socket plain) {
    AtomicBoolean ended = new AtomicBoolean();
    try {
      // A read timeout would restart with each byte.
      CompletableFuture.delayedExecutor(limit.toMillis(), TimeUnit.MILLISECONDS)
          .execute(
              () -> {
                if (ended.compareAndSet(false, true)) {
                  close(plain);
                }
              });
      SSLSocket socket = (SSLSocket) tls.createSocket(plain, null, true);
      socket.setUseClientMode(false);
      socket.setNeedClientAuth(true);
      socket.startHandshake();
      if (ended.compareAndSet(false, true)) {
        proven.add(socket);
      }
    } catch (IOException | RuntimeException | Error e) {
      log.debug("{} is not a member: {}", plain.getInetAddress(), e.toString());
      ended.set(true);
      close(plain);
    }
    if (isClosed()) {
      close(plain);
    }
  }

  private static void close(Socket socket) {
    try {
      socket.close();
    } catch (IOException e) {
      log.trace("closing a connection", e);
    }
  }

  @Override
  public void close() throws IOException {
    super.close();
    for (Socket socket = proven.poll(); socket != null; socket = proven.poll()) {
      close(socket);
    }
  }
}
