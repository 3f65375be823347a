package io.pmfs.fuse.protocol;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;

/**
 * Buffers for the workers of one kind of session. Workers that end return their buffers for later
 * ones, because the garbage collector may not free them for hours. Thread-safe.
 */
public final class AnswerBuffers {
  private final int maxBytes;
  private final Deque<ByteBuffer> spare = new ArrayDeque<>(); // GUARDED_BY(this)

  /** Buffers for answers with at most {@code maxBytes} after the header. */
  public AnswerBuffers(int maxBytes) {
    this.maxBytes = maxBytes;
  }

  /** The most bytes that may follow the header of an answer. */
  public int maxBytes() {
    return maxBytes;
  }

  /** A buffer of that capacity, with arbitrary content. */
  public synchronized ByteBuffer take(int size) {
    for (Iterator<ByteBuffer> all = spare.iterator(); all.hasNext(); ) {
      ByteBuffer buffer = all.next();
      if (buffer.capacity() == size) {
        all.remove();
        return buffer.clear();
      }
    }
    return ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder());
  }

  /** Takes back a buffer that its worker no longer uses. */
  public synchronized void give(ByteBuffer buffer) {
    spare.add(buffer);
  }
}
