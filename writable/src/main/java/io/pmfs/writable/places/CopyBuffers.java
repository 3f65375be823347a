package io.pmfs.writable.places;

import java.nio.ByteBuffer;
import java.util.concurrent.ArrayBlockingQueue;

/** Reusable direct buffers for copying. Thread-safe. */
public final class CopyBuffers {
  public static final int BYTES = 1 << 20;
  private static final int KEPT = 8;

  private static final ArrayBlockingQueue<ByteBuffer> FREE = new ArrayBlockingQueue<>(KEPT);

  private CopyBuffers() {}

  public static ByteBuffer take() {
    return take(BYTES);
  }

  /** Takes a buffer that may be no larger than needed, for a caller that may keep it for long. */
  public static ByteBuffer take(int size) {
    ByteBuffer free = FREE.poll();
    return free == null ? ByteBuffer.allocateDirect(size) : free.clear();
  }

  /** Takes back a buffer; the caller must not use it afterwards. */
  public static void give(ByteBuffer buffer) {
    if (buffer.capacity() == BYTES) {
      FREE.offer(buffer);
    }
  }
}
