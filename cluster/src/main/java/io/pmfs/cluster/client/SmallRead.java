package io.pmfs.cluster.client;

import io.netty.buffer.ByteBuf;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.formats.Blocks;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A small file that is read whole, and may travel with others. One thread waits for it; the event
 * loop, or another waiting thread, sets its outcome.
 */
final class SmallRead {
  /** How often to check whether the peer itself waits. */
  private static final long LOOK_NANOS = 500_000_000L;

  private final PeerFormat.BatchItem item;
  private final ByteBuffer destination;
  private final Patience patience;
  private int checksum; // GUARDED_BY(this), as all fields below
  private boolean isVerified;
  private boolean ended;
  private @Nullable List<SmallRead> led;
  private @Nullable SourceStatus status;
  private @Nullable PeerException failure;

  /**
   * @param destination has room for the whole file between its position and its limit; its position
   *     moves
   * @param patience of the waiting thread
   */
  SmallRead(PeerFormat.BatchItem item, ByteBuffer destination, Patience patience) {
    this.item = item;
    this.destination = destination;
    this.patience = patience;
  }

  PeerFormat.BatchItem item() {
    return item;
  }

  ByteBuffer destination() {
    return destination;
  }

  Patience patience() {
    return patience;
  }

  synchronized boolean hasEnded() {
    return ended;
  }

  /** Begins the file; returns true if it is empty and so is complete. */
  synchronized boolean begin(SourceStatus status, int checksum) {
    this.status = status;
    this.checksum = checksum;
    return endIfFull();
  }

  /** Takes the next bytes; returns true if the file is complete. */
  synchronized boolean take(ByteBuf bytes) {
    int count = Math.min(bytes.readableBytes(), destination.remaining());
    if (ended) {
      // The buffer belongs to its reader again, which has left.
      bytes.skipBytes(count);
      destination.position(destination.position() + count);
      return !destination.hasRemaining();
    }
    int limit = destination.limit();
    destination.limit(destination.position() + count);
    bytes.readBytes(destination);
    destination.limit(limit);
    return endIfFull();
  }

  private boolean endIfFull() {
    if (destination.hasRemaining()) {
      return false;
    }
    ended = true;
    notifyAll();
    return true;
  }

  /** Completes a file that came alone and is already verified. */
  synchronized void succeed(SourceStatus status) {
    this.status = status;
    isVerified = true;
    endIfFull();
  }

  /** Fails the read unless it has ended. */
  synchronized void fail(PeerException why) {
    if (!ended) {
      ended = true;
      failure = why;
      notifyAll();
    }
  }

  /** Makes the thread that waits for this file read a batch; returns false if none waits. */
  synchronized boolean lead(List<SmallRead> batch) {
    if (ended) {
      return false;
    }
    led = batch;
    notifyAll();
    return true;
  }

  /**
   * Waits for the outcome within the reader's patience; time during which the peer itself waits
   * does not count.
   *
   * @return the reads that the caller must do, including this one; null if this one has ended
   */
  synchronized @Nullable List<SmallRead> await(BooleanSupplier isWorthWaiting) {
    boolean interrupted = false;
    long sinceNanos = System.nanoTime();
    while (!ended && led == null) {
      long now = System.nanoTime();
      if (isWorthWaiting.getAsBoolean()) {
        sinceNanos = now;
      }
      long left = sinceNanos + patience.leftNanos() - now;
      if (left <= 0) {
        fail(new PeerException(PeerException.Kind.LATE, "others wait for the same node"));
        break;
      }
      try {
        wait(Math.min(left, LOOK_NANOS) / 1_000_000 + 1);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    patience.use(System.nanoTime() - sinceNanos);
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    List<SmallRead> mine = led;
    led = null;
    return mine;
  }

  /** The status of the file, once its bytes match the checksum. */
  SourceStatus result(Member peer, int start) throws PeerException {
    SourceStatus answer;
    int expected;
    synchronized (this) {
      if (failure != null) {
        throw failure;
      }
      answer = status;
      expected = checksum;
      if (answer != null && isVerified) {
        return answer;
      }
    }
    int size = destination.position() - start;
    if (answer == null || Blocks.checksum(destination.slice(start, size)) != expected) {
      throw new PeerException(
          PeerException.Kind.CORRUPT, peer + " sent bytes that do not match their checksum");
    }
    return answer;
  }
}
