package io.pmfs.stage.formats;

import io.pmfs.memory.BufferPool;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Discards data that is read only for comparison, {@link #MAX_BYTES} at once. Used by one thread.
 */
public final class NoSink implements ReadSink, AutoCloseable {
  /** Bytes compared at once: a frame of a compressed copy, part of a block of a raw one. */
  public static final int MAX_BYTES = Frames.SIZE;

  private final BufferPool memory;
  private BufferPool.@Nullable Loan loan;

  /** Acquires memory only when there is something to decompress. */
  public NoSink(BufferPool memory) {
    this.memory = memory;
  }

  @Override
  public ByteBuffer buffer(int size) {
    BufferPool.Loan held = loan;
    if (held == null) {
      held = memory.take(MAX_BYTES);
      loan = held;
    }
    return held.buffer().limit(size);
  }

  @Override
  public void accept(ReadResult piece) {}

  @Override
  public void close() {
    if (loan != null) {
      loan.release();
      loan = null;
    }
  }
}
