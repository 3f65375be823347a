package io.pmfs.cluster.client;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.RequestSignature;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * A request that waits for its answer. The event loop delivers the answer; one thread waits for it.
 * Once that thread has left, later bytes are ignored: the destination belongs to its reader again.
 *
 * <p>While a peer reports that it is itself waiting for the source, and is not suspected, the
 * thread keeps waiting; that time does not count towards any limit. A question about copies needs
 * no source, so such reports are then ignored.
 */
final class PeerExchange {
  /** Takes an answer. Called by the event loop, never after {@link #await} has returned. */
  interface Reader {
    /** Takes the head; its status is below 300. */
    void head(HttpResponse head) throws PeerException;

    /** Takes the next bytes. Returns false if they say only that the peer is itself waiting. */
    boolean content(ByteBuf bytes) throws PeerException;

    void end() throws PeerException;

    /** Whether the peer has all data already, so that only its disk and network set the pace. */
    boolean isSteady();
  }

  /** A slower {@link Reader#isSteady steady} answer is given up after {@link #PACE_NANOS}. */
  private static final long LEAST_BYTES_PER_SECOND = 256 << 10;

  private static final long PACE_NANOS = 2_000_000_000L;

  /** How often to check whether to keep waiting. */
  private static final long LOOK_NANOS = 500_000_000L;

  private static final int MAX_LINE_BYTES = 512;

  private final PeerLink link;
  private final Reader reader;
  private final boolean mayWait;
  private final Patience patience;
  private volatile long lastNanos = System.nanoTime();
  private volatile boolean hasBytes;

  /** When the peer was asked, plus the time during which the peer itself waited. */
  private long sinceNanos = lastNanos; // GUARDED_BY(this)

  /** When the peer last sent content, or reported that it is itself waiting. */
  private long markNanos = lastNanos; // GUARDED_BY(this)

  private boolean isWaiting; // GUARDED_BY(this)
  private long headNanos; // GUARDED_BY(this)
  private long contentBytes; // GUARDED_BY(this)

  /** Time in which content came fast enough. */
  private long boughtNanos; // GUARDED_BY(this)

  private boolean ended; // GUARDED_BY(this)
  private boolean isClosed; // GUARDED_BY(this)
  private boolean keepAlive; // GUARDED_BY(this)
  private @Nullable PeerException failure; // GUARDED_BY(this)
  private @Nullable HttpResponseStatus refused; // GUARDED_BY(this)
  private @Nullable String clock; // GUARDED_BY(this)
  private final StringBuilder line = new StringBuilder(); // GUARDED_BY(this)

  /**
   * @param mayWait whether the peer may have to wait for the source
   */
  PeerExchange(PeerLink link, Reader reader, boolean mayWait, Patience patience) {
    this.patience = patience;
    this.link = link;
    this.reader = reader;
    this.mayWait = mayWait;
  }

  void bytesCame() {
    hasBytes = true;
    lastNanos = System.nanoTime();
  }

  /** The peer reports that it is itself waiting. */
  synchronized void waits() {
    if (!mayWait) {
      return;
    }
    long now = System.nanoTime();
    sinceNanos += now - markNanos;
    markNanos = now;
    isWaiting = true;
    link.waits();
  }

  private void goesOn() {
    markNanos = System.nanoTime();
    isWaiting = false;
  }

  synchronized void head(HttpResponse head, boolean keepAlive) {
    if (ended) {
      return;
    }
    goesOn();
    headNanos = markNanos;
    this.keepAlive = keepAlive;
    if (head.status().code() >= 300) {
      refused = head.status();
      clock = head.headers().get(RequestSignature.CLOCK);
      return;
    }
    try {
      reader.head(head);
    } catch (PeerException e) {
      fail(e);
    } catch (RuntimeException e) {
      fail(PeerException.Kind.CORRUPT, "sent an invalid answer: " + e.getMessage());
    }
  }

  synchronized void content(ByteBuf bytes) {
    if (ended || !bytes.isReadable()) {
      return;
    }
    if (refused != null) {
      while (bytes.isReadable() && line.length() < MAX_LINE_BYTES) {
        char c = (char) bytes.readUnsignedByte();
        line.append(c < ' ' ? ' ' : c);
      }
      return;
    }
    int count = bytes.readableBytes();
    try {
      if (reader.content(bytes)) {
        long worth = (long) (count * 1e9 / LEAST_BYTES_PER_SECOND);
        boughtNanos += Math.min(worth, System.nanoTime() - markNanos);
        goesOn();
        contentBytes += count;
      } else {
        waits();
      }
    } catch (PeerException e) {
      fail(e);
    } catch (RuntimeException e) {
      fail(PeerException.Kind.CORRUPT, "sent an invalid answer: " + e.getMessage());
    }
  }

  synchronized void end() {
    if (ended) {
      return;
    }
    if (refused != null) {
      boolean keep = keepAlive;
      fail(kind(refused), "answered " + refused.code() + ": " + line.toString().trim());
      keepAlive = keep;
      return;
    }
    try {
      reader.end();
      ended = true;
      notifyAll();
    } catch (PeerException e) {
      fail(e);
    }
  }

  /** The peer closed the connection, or it broke. */
  synchronized void closed(String what) {
    // Not if this node closed it after giving up.
    isClosed |= !ended;
    fail(PeerException.Kind.UNREACHABLE, what);
  }

  /**
   * Whether the connection was closed without an answer, for example because the peer closed the
   * idle connection before the request arrived.
   */
  synchronized boolean isUnheard() {
    return isClosed && !hasBytes && failure != null;
  }

  /** Fails the exchange; its connection cannot be used any more. */
  synchronized void fail(PeerException.Kind kind, String what) {
    fail(new PeerException(kind, link.peer + " " + what));
  }

  private synchronized void fail(PeerException why) {
    if (!ended) {
      ended = true;
      keepAlive = false;
      failure = why;
      notifyAll();
    }
  }

  /** The kind of failure that a status means, if the peer follows the protocol. */
  static PeerException.Kind kind(HttpResponseStatus status) {
    if (status.equals(HttpResponseStatus.SERVICE_UNAVAILABLE)) {
      return PeerException.Kind.BUSY;
    }
    boolean isFailed =
        status.equals(HttpResponseStatus.BAD_GATEWAY)
            || status.equals(HttpResponseStatus.INTERNAL_SERVER_ERROR)
            || status.equals(HttpResponseStatus.NOT_FOUND)
            || status.equals(HttpResponseStatus.CONFLICT)
            || status.equals(HttpResponseStatus.FORBIDDEN);
    return isFailed ? PeerException.Kind.FAILED : PeerException.Kind.REFUSED;
  }

  /**
   * Waits for the end of the answer.
   *
   * @return whether the connection may be used again
   */
  synchronized boolean await(Channel channel) {
    try {
      awaitEnd();
    } finally {
      patience.use(usedNanos(System.nanoTime()));
    }
    return keepAlive && channel.isActive();
  }

  /** Deducts the waiting time from the reader's patience. */
  private long usedNanos(long now) {
    return now - sinceNanos - boughtNanos;
  }

  private void awaitEnd() {
    while (!ended) {
      long now = System.nanoTime();
      PeerTimeouts timeouts = link.timeouts;
      long left =
          Math.min(
              lastNanos + (hasBytes ? timeouts.stall() : timeouts.firstByte()).toNanos() - now,
              sinceNanos + timeouts.total().toNanos() - now);
      if (!mayWait) {
        left = Math.min(left, markNanos + whileIdle(timeouts).toNanos() - now);
      }
      if (left <= 0 || isTooSlow(now)) {
        fail(PeerException.Kind.UNREACHABLE, left <= 0 ? silence() : "sends too slowly");
        break;
      }
      left = Math.min(left, patience.leftNanos() - usedNanos(now));
      if (left <= 0) {
        fail(PeerException.Kind.LATE, "does not answer within its reader's patience");
        break;
      }
      if (isWaiting && link.lacksSource()) {
        fail(
            PeerException.Kind.FAILED,
            "waits for the source, although the source answers this node");
        break;
      }
      try {
        // Rounded up: wait(0) would never time out.
        wait(Math.min(left, LOOK_NANOS) / 1_000_000 + 1);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        fail(PeerException.Kind.FAILED, "did not answer before the reader was interrupted");
      }
    }
  }

  /** Timeout between parts of an answer that needs no source. */
  private Duration whileIdle(PeerTimeouts timeouts) {
    return headNanos == 0 ? timeouts.firstByte() : timeouts.stall();
  }

  private String silence() {
    if (!mayWait && hasBytes && headNanos == 0) {
      return "keeps this node waiting for an answer that needs no source";
    }
    Duration total = link.timeouts.total();
    if (System.nanoTime() - sinceNanos >= total.toNanos()) {
      return "did not answer within " + total.toSeconds() + " s";
    }
    return hasBytes ? "stopped in the middle of an answer" : "is silent";
  }

  private boolean isTooSlow(long now) {
    long sent = now - headNanos;
    return headNanos != 0
        && reader.isSteady()
        && sent > PACE_NANOS
        && contentBytes * 1e9 / sent < LEAST_BYTES_PER_SECOND;
  }

  /** The peer's clock, if it refused the request because of its time; else null. */
  synchronized @Nullable String clock() {
    return clock;
  }

  /** Why there is no answer; null if there is one. */
  synchronized @Nullable PeerException failure() {
    return failure;
  }
}
