package io.pmfs.cluster.client;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.util.AttributeKey;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** Open connections to one peer; the one used last is reused first. Thread-safe. */
@SuppressWarnings("FutureReturnValueIgnored") // nothing waits for a close
final class PeerConnections {
  /** Shorter than the time that a server keeps an idle connection (PeerLimits.DEFAULTS). */
  private static final long MAX_IDLE_NANOS = TimeUnit.SECONDS.toNanos(30);

  /** The channel times out by itself first, with a reason. */
  private static final long SLACK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private static final AttributeKey<Long> RELEASED =
      AttributeKey.valueOf(PeerConnections.class, "released");

  private final Member peer;
  private final Bootstrap bootstrap;
  private final PeerTimeouts timeouts;
  private final Map<Use, Semaphore> permits = new EnumMap<>(Use.class);
  private final ArrayDeque<Channel> idle = new ArrayDeque<>(); // GUARDED_BY(this)
  private boolean closed; // GUARDED_BY(this)

  enum Use {
    /**
     * Names and attributes. Callers do not wait long for a connection: those in use may be waiting
     * for this node.
     */
    NAMES,
    /**
     * Content. Waiting for a connection is better than asking the source, for which the connections
     * in use are waiting.
     */
    DATA,
    /** Content of copies only: a request on such a connection waits for no other node. */
    COPIES,
    /**
     * Operations of a writable mount. They may wait for the source, so there are as many as a mount
     * has threads, 128, and some for what the daemon itself asks.
     */
    OUTPUTS(160),
    /** Such operations with content, which the peer keeps in memory while they wait. */
    LARGE_OUTPUTS(4),
    /** Interrupts of such operations, which wait for nothing. */
    INTERRUPTS;

    /** The most connections at once; 0 for as many as the others have. */
    private final int most;

    Use() {
      this(0);
    }

    Use(int most) {
      this.most = most;
    }
  }

  /**
   * Starts without connections.
   *
   * @param max the most connections at once, for each use that has no limit of its own
   */
  PeerConnections(Member peer, Bootstrap bootstrap, PeerTimeouts timeouts, int max) {
    this.peer = peer;
    this.bootstrap = bootstrap;
    this.timeouts = timeouts;
    for (Use use : Use.values()) {
      permits.put(use, new Semaphore(use.most > 0 ? use.most : max, true));
    }
  }

  private Semaphore permits(Use use) {
    return Objects.requireNonNull(permits.get(use));
  }

  /**
   * Waits for a permit to use a connection; {@link #leave} returns it.
   *
   * @param isWorthWaiting whether the peer itself waits, which keeps the connections in use: then a
   *     caller that wants data keeps waiting
   */
  void enter(Use use, BooleanSupplier isWorthWaiting, Patience patience) throws PeerException {
    Duration most = use == Use.NAMES ? timeouts.connect() : timeouts.stall();
    if (permits(use).tryAcquire()) {
      return;
    }
    long since = System.nanoTime();
    try {
      while (true) {
        long nanos = Math.min(most.toNanos(), patience.leftNanos());
        if (permits(use).tryAcquire(nanos, TimeUnit.NANOSECONDS)) {
          return;
        }
        if (use != Use.DATA || !isWorthWaiting.getAsBoolean()) {
          break;
        }
        since = System.nanoTime();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      patience.use(System.nanoTime() - since);
    }
    throw new PeerException(PeerException.Kind.BUSY, "all connections to " + peer + " are in use");
  }

  void leave(Use use) {
    permits(use).release();
  }

  /** An idle connection; null if there is none. */
  @Nullable Channel reuse() {
    long now = System.nanoTime();
    while (true) {
      Channel channel;
      synchronized (this) {
        channel = idle.pollFirst();
      }
      if (channel == null) {
        return null;
      }
      Long released = channel.attr(RELEASED).get();
      boolean isFresh = released != null && now - released < MAX_IDLE_NANOS;
      if (isFresh && channel.isActive()) {
        return channel;
      }
      channel.close();
    }
  }

  /** Opens a connection. If it succeeds, its time counts towards the answer's. */
  Channel connect(Patience patience) throws PeerException {
    long since = System.nanoTime();
    long most = timeouts.connect().toNanos() + SLACK_NANOS;
    ChannelFuture connecting =
        bootstrap.connect(InetSocketAddress.createUnresolved(peer.host(), peer.port()));
    boolean isDone;
    try {
      isDone = connecting.await(Math.min(most, patience.leftNanos()), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      connecting.cancel(true);
      connecting.channel().close();
      throw new PeerException(
          PeerException.Kind.FAILED, peer + " was not reached: the reader was interrupted");
    }
    if (!isDone || !connecting.isSuccess()) {
      connecting.cancel(true);
      connecting.channel().close();
      Throwable cause = connecting.cause();
      String why = isDone && cause != null ? ": " + cause.getMessage() : " in time";
      boolean isLate = !isDone && patience.leftNanos() < most;
      patience.use(System.nanoTime() - since);
      throw new PeerException(
          isLate ? PeerException.Kind.LATE : PeerException.Kind.UNREACHABLE,
          peer + " was not reached" + why);
    }
    return connecting.channel();
  }

  /** Keeps an idle connection for reuse. */
  void keep(Channel channel) {
    channel.attr(RELEASED).set(System.nanoTime());
    synchronized (this) {
      if (!closed) {
        idle.addFirst(channel);
        return;
      }
    }
    channel.close();
  }

  /** Closes the idle connections; those in use are closed when they are returned. */
  synchronized void close() {
    closed = true;
    idle.forEach(Channel::close);
    idle.clear();
  }
}
