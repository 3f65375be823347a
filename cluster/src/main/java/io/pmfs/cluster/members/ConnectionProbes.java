package io.pmfs.cluster.members;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds out which of many addresses accept connections, by connecting to them all at the same time:
 * an address that does not answer delays no other. For one thread.
 */
final class ConnectionProbes {
  private static final Logger log = LoggerFactory.getLogger(ConnectionProbes.class);

  /** The most connections that are being made at a time; each is a descriptor. */
  static final int MOST_AT_ONCE = 256;

  enum Answer {
    ACCEPTED,
    /** The machine answers, but nothing listens. */
    REFUSED,
    /** No answer came in time, or there is no route. */
    NONE
  }

  /** Receives each answer as it comes; returns more addresses to try. */
  interface Listener extends BiFunction<InetSocketAddress, Answer, Collection<InetSocketAddress>> {}

  private record Probe(InetSocketAddress address, SocketChannel channel, long end) {}

  private final @Nullable InetAddress from;
  private final long patienceNanos;
  private final Listener listener;
  private final Deque<InetSocketAddress> waiting = new ArrayDeque<>();

  /** Ordered by timeout. */
  private final Deque<Probe> open = new ArrayDeque<>();

  private int connecting;

  /**
   * @param from the address to connect from; null for any
   * @param patience how long one address may take
   */
  ConnectionProbes(@Nullable InetAddress from, Duration patience, Listener listener) {
    this.from = from;
    this.patienceNanos = patience.toNanos();
    this.listener = listener;
  }

  /** Tries all addresses, and those that the listener adds. */
  void run(Collection<InetSocketAddress> addresses) throws IOException {
    waiting.addAll(addresses);
    try (Selector selector = Selector.open()) {
      while (!Thread.currentThread().isInterrupted()) {
        while (connecting < MOST_AT_ONCE && !waiting.isEmpty()) {
          begin(waiting.remove(), selector);
        }
        if (connecting == 0 && waiting.isEmpty()) {
          return;
        }
        selector.select(this::finish, Math.max(1, millisLeft()));
        endLate();
      }
    } finally {
      open.forEach(probe -> close(probe.channel));
    }
  }

  private long millisLeft() {
    Probe first = open.peek();
    return first == null ? 1 : (first.end - System.nanoTime()) / 1_000_000 + 1;
  }

  private void begin(InetSocketAddress address, Selector selector) {
    SocketChannel channel = null;
    try {
      channel = SocketChannel.open();
      channel.configureBlocking(false);
      if (from != null) {
        channel.bind(new InetSocketAddress(from, 0));
      }
      boolean isConnected = channel.connect(address);
      if (isConnected) {
        close(channel);
        report(address, Answer.ACCEPTED);
        return;
      }
      Probe probe = new Probe(address, channel, System.nanoTime() + patienceNanos);
      channel.register(selector, SelectionKey.OP_CONNECT, probe);
      open.add(probe);
      connecting++;
    } catch (IOException | RuntimeException e) {
      close(channel);
      report(address, answer(e));
    }
  }

  private static Answer answer(Exception e) {
    log.trace("a probe", e);
    // NoRouteToHostException is none of these: a router answered, or this machine.
    return e instanceof ConnectException && String.valueOf(e.getMessage()).contains("refused")
        ? Answer.REFUSED
        : Answer.NONE;
  }

  private void finish(SelectionKey key) {
    Probe probe = (Probe) key.attachment();
    Answer answer;
    try {
      if (!probe.channel.finishConnect()) {
        return;
      }
      answer = Answer.ACCEPTED;
    } catch (IOException e) {
      answer = answer(e);
    }
    end(probe, answer);
  }

  private void endLate() {
    long now = System.nanoTime();
    for (Probe probe = open.peek(); probe != null; probe = open.peek()) {
      if (probe.channel.isOpen()) {
        if (probe.end - now > 0) {
          return;
        }
        end(probe, Answer.NONE);
      }
      open.remove();
    }
  }

  private void end(Probe probe, Answer answer) {
    close(probe.channel);
    connecting--;
    report(probe.address, answer);
  }

  private void report(InetSocketAddress address, Answer answer) {
    waiting.addAll(listener.apply(address, answer));
  }

  private static void close(@Nullable SocketChannel channel) {
    try {
      if (channel != null) {
        channel.close();
      }
    } catch (IOException e) {
      log.trace("closing a probe", e);
    }
  }
}
