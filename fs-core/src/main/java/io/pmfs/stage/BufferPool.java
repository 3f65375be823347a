package io.pmfs.stage;

import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A fixed amount of direct memory, lent in runs of 16 KiB units. It is all that reads in flight may
 * hold, so a source that is faster than the tiers cannot grow the daemon: when nothing is left, the
 * caller does without.
 */
final class BufferPool {
  private static final int UNIT_BYTES = 16 * 1024;

  /** How often who waits asks whether to go on. */
  private static final long PATIENCE_MS = 100;

  /**
   * Memory is taken from the system so much at a time, when it is first needed: a block's worth.
   */
  private static final int UNITS_PER_CHUNK = Blocks.SIZE / UNIT_BYTES;

  private final int unitCount;
  private final @Nullable ByteBuffer[] chunks; // GUARDED_BY(this)
  private final BitSet lent = new BitSet(); // GUARDED_BY(this)

  BufferPool(int bytes) {
    unitCount = bytes / UNIT_BYTES;
    chunks = new @Nullable ByteBuffer[(unitCount + UNITS_PER_CHUNK - 1) / UNITS_PER_CHUNK];
  }

  /**
   * A buffer of just that size, at most a block's, or null if no run of free memory is long enough.
   * First fit, lowest address.
   */
  synchronized @Nullable Loan tryAcquire(int size) {
    int units = (size + UNIT_BYTES - 1) / UNIT_BYTES;
    int start = lent.nextClearBit(0);
    while (start + units <= unitCount) {
      int chunkEnd = (start / UNITS_PER_CHUNK + 1) * UNITS_PER_CHUNK;
      int next = lent.nextSetBit(start);
      int runEnd = next < 0 ? chunkEnd : Math.min(next, chunkEnd);
      if (runEnd - start >= units) {
        lent.set(start, start + units);
        return new Loan(start, units, slice(start, size));
      }
      start = lent.nextClearBit(runEnd);
    }
    return null;
  }

  /** The same, but waits for memory; null only if the caller gives up. */
  synchronized @Nullable Loan acquire(int size, BooleanSupplier givesUp)
      throws InterruptedException {
    Loan loan = tryAcquire(size);
    while (loan == null && !givesUp.getAsBoolean()) {
      wait(PATIENCE_MS);
      loan = tryAcquire(size);
    }
    return loan;
  }

  private ByteBuffer slice(int start, int size) {
    int index = start / UNITS_PER_CHUNK;
    ByteBuffer chunk = chunks[index];
    if (chunk == null) {
      int units = Math.min(UNITS_PER_CHUNK, unitCount - index * UNITS_PER_CHUNK);
      chunk = ByteBuffer.allocateDirect(units * UNIT_BYTES);
      chunks[index] = chunk;
    }
    return chunk.slice(start % UNITS_PER_CHUNK * UNIT_BYTES, size);
  }

  private synchronized void giveBack(int start, int units) {
    lent.clear(start, start + units);
    notifyAll();
  }

  /** Whether everything was given back. */
  synchronized boolean isWhole() {
    return lent.isEmpty();
  }

  /**
   * A lent buffer, shared by those who {@link #retain} it; free again when the last of them
   * released it.
   */
  final class Loan {
    private final int start;
    private final int units;
    private final ByteBuffer buffer;
    private int users = 1; // GUARDED_BY(this)

    private Loan(int start, int units, ByteBuffer buffer) {
      this.start = start;
      this.units = units;
      this.buffer = buffer;
    }

    /** A view of the memory with a position and limit of its own. */
    ByteBuffer buffer() {
      return buffer.duplicate();
    }

    synchronized void retain() {
      if (users == 0) {
        throw new IllegalStateException("the buffer was given back");
      }
      users++;
    }

    void release() {
      synchronized (this) {
        if (users == 0) {
          throw new IllegalStateException("the buffer was given back twice");
        }
        if (--users > 0) {
          return;
        }
      }
      giveBack(start, units);
    }
  }
}
