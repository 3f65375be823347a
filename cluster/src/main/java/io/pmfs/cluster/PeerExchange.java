package io.pmfs.cluster;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import org.jspecify.annotations.Nullable;

/**
 * A request that waits for its answer. The event loop brings the answer, one thread waits for it.
 * When it leaves, what comes later touches nothing of it: a destination is its reader's again.
 */
final class PeerExchange {
  /** Takes an answer. Called by the event loop, never after {@link #await} has returned. */
  interface Reader {
    /** The head, of a status below 300. */
    void head(HttpResponse head) throws PeerException;

    /** The next bytes. */
    void content(ByteBuf bytes) throws PeerException;

    /** There are no more. */
    void end() throws PeerException;
  }

  private static final int MAX_LINE_BYTES = 512;

  private final Member peer;
  private final Reader reader;
  private final PeerTimeouts timeouts;
  private final long sinceNanos = System.nanoTime();
  private volatile long lastNanos = sinceNanos;
  private volatile boolean hasBytes;

  private boolean ended; // GUARDED_BY(this)
  private boolean isClosed; // GUARDED_BY(this)
  private boolean keepAlive; // GUARDED_BY(this)
  private @Nullable PeerException failure; // GUARDED_BY(this)
  private @Nullable HttpResponseStatus refused; // GUARDED_BY(this)
  private final StringBuilder line = new StringBuilder(); // GUARDED_BY(this)

  PeerExchange(Member peer, PeerTimeouts timeouts, Reader reader) {
    this.peer = peer;
    this.timeouts = timeouts;
    this.reader = reader;
  }

  /** Any bytes have come. */
  void bytesCame() {
    hasBytes = true;
    lastNanos = System.nanoTime();
  }

  synchronized void head(HttpResponse head, boolean keepAlive) {
    if (ended) {
      return;
    }
    this.keepAlive = keepAlive;
    if (head.status().code() >= 300) {
      refused = head.status();
      return;
    }
    try {
      reader.head(head);
    } catch (PeerException e) {
      fail(e);
    } catch (RuntimeException e) {
      fail(PeerException.Kind.CORRUPT, "sent what is no answer: " + e.getMessage());
    }
  }

  synchronized void content(ByteBuf bytes) {
    if (ended) {
      return;
    }
    if (refused != null) {
      while (bytes.isReadable() && line.length() < MAX_LINE_BYTES) {
        char c = (char) bytes.readUnsignedByte();
        line.append(c < ' ' ? ' ' : c);
      }
      return;
    }
    try {
      reader.content(bytes);
    } catch (PeerException e) {
      fail(e);
    } catch (RuntimeException e) {
      fail(PeerException.Kind.CORRUPT, "sent what is no answer: " + e.getMessage());
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
    isClosed = true;
    fail(PeerException.Kind.UNREACHABLE, what);
  }

  /** Whether a connection that had been open for a while was closed before the request came. */
  synchronized boolean isUnheard() {
    return isClosed && !hasBytes && failure != null;
  }

  /** The connection cannot be used any more when an answer ends so. */
  synchronized void fail(PeerException.Kind kind, String what) {
    fail(new PeerException(kind, peer + " " + what));
  }

  private synchronized void fail(PeerException why) {
    if (!ended) {
      ended = true;
      keepAlive = false;
      failure = why;
      notifyAll();
    }
  }

  /** A status of a peer that does as it should says whose doing it was. */
  static PeerException.Kind kind(HttpResponseStatus status) {
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
    while (!ended) {
      long now = System.nanoTime();
      long step = lastNanos + (hasBytes ? timeouts.stall() : timeouts.firstByte()).toNanos() - now;
      long total = sinceNanos + timeouts.total().toNanos() - now;
      if (Math.min(step, total) <= 0) {
        fail(
            PeerException.Kind.UNREACHABLE,
            total <= 0
                ? "did not answer within " + timeouts.total().toSeconds() + " s"
                : hasBytes ? "stopped in the midst of an answer" : "is silent");
        break;
      }
      try {
        // Rounded up: a wait of 0 has no end.
        wait(Math.min(step, total) / 1_000_000 + 1);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        fail(PeerException.Kind.FAILED, "was not waited for: the reader was interrupted");
      }
    }
    return keepAlive && channel.isActive();
  }

  /** Why there is no answer; null if there is one. */
  synchronized @Nullable PeerException failure() {
    return failure;
  }
}
