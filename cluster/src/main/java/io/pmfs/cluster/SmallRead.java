package io.pmfs.cluster;

import io.netty.buffer.ByteBuf;
import io.pmfs.stage.Blocks;
import io.pmfs.tier.SourceStatus;
import java.nio.ByteBuffer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A small file that is read whole, and may travel with others. One thread waits for it; another one
 * of those that wait, or the event loop, says what becomes of it.
 */
final class SmallRead {
  private final PeerFormat.BatchItem item;
  private final ByteBuffer destination;
  private int checksum; // GUARDED_BY(this), as all that follow
  private boolean isVerified;
  private boolean ended;
  private @Nullable List<SmallRead> led;
  private @Nullable SourceStatus status;
  private @Nullable PeerException failure;

  /**
   * @param destination has room for all of it, from its position to its limit; its position moves
   */
  SmallRead(PeerFormat.BatchItem item, ByteBuffer destination) {
    this.item = item;
    this.destination = destination;
  }

  PeerFormat.BatchItem item() {
    return item;
  }

  ByteBuffer destination() {
    return destination;
  }

  /** Begins the file; true if it is empty and so has ended. */
  synchronized boolean begin(SourceStatus status, int checksum) {
    this.status = status;
    this.checksum = checksum;
    return endIfFull();
  }

  /** Takes the next of its bytes; true if there are no more to come. */
  synchronized boolean take(ByteBuf bytes) {
    int count = Math.min(bytes.readableBytes(), destination.remaining());
    int limit = destination.limit();
    destination.limit(destination.position() + count);
    bytes.readBytes(destination);
    destination.limit(limit);
    return endIfFull();
  }

  private boolean endIfFull() {
    if (!destination.hasRemaining()) {
      ended = true;
      notifyAll();
    }
    return ended;
  }

  /** Ends a file that came, and was compared, alone. */
  synchronized void succeed(SourceStatus status) {
    this.status = status;
    isVerified = true;
    endIfFull();
  }

  /** Ends it, unless it has ended. */
  synchronized void fail(PeerException why) {
    if (!ended) {
      ended = true;
      failure = why;
      notifyAll();
    }
  }

  /** Has the thread that waits for it read others, too. */
  synchronized void lead(List<SmallRead> batch) {
    led = batch;
    notifyAll();
  }

  /**
   * Waits.
   *
   * @return the reads that the caller is to do, this among them; null if it is done
   */
  synchronized @Nullable List<SmallRead> await() {
    boolean interrupted = false;
    // Whoever holds a connection ends within the time limits and passes it on, or fails.
    while (!ended && led == null) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    List<SmallRead> mine = led;
    led = null;
    return mine;
  }

  /** The file that was read, compared with its checksum. */
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
          PeerException.Kind.CORRUPT, peer + " sent bytes that are not those of their checksum");
    }
    return answer;
  }
}
