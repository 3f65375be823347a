package io.pmfs.writable.places;

import java.nio.ByteBuffer;
import java.util.concurrent.ArrayBlockingQueue;

/** Direct memory for copying, kept for the next copy. Safe for use by many threads. */
public final class CopyBuffers {
  public static final int BYTES = 1 << 20;
  private static final int KEPT = 8;

  private static final ArrayBlockingQueue<ByteBuffer> FREE = new ArrayBlockingQueue<>(KEPT);

  private CopyBuffers() {}

  /** A buffer of {@link #BYTES}. */
  public static ByteBuffer take() {
    ByteBuffer free = FREE.poll();
    return free == null ? ByteBuffer.allocateDirect(BYTES) : free.clear();
  }

  /** Takes back a buffer; the caller uses it no more. */
  public static void give(ByteBuffer buffer) {
    FREE.offer(buffer);
  }
}
