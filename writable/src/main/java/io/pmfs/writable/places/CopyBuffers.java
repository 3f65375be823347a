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
    ByteBuffer free = FREE.poll();
    return free == null ? ByteBuffer.allocateDirect(BYTES) : free.clear();
  }

  /** Takes back a buffer; the caller must not use it afterwards. */
  public static void give(ByteBuffer buffer) {
    FREE.offer(buffer);
  }
}
