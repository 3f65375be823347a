package io.pmfs.stage;

import io.pmfs.tier.ReadResult;
import io.pmfs.tier.ReadSink;
import java.nio.ByteBuffer;

/** Takes what is read only to be compared; of blocks or less. */
final class NoSink implements ReadSink {
  static final ReadSink NO_SINK = new NoSink();

  private static final ThreadLocal<ByteBuffer> SCRATCH =
      ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(Blocks.SIZE));

  private NoSink() {}

  @Override
  public ByteBuffer buffer(int size) {
    return SCRATCH.get().clear().limit(size);
  }

  @Override
  public void accept(ReadResult piece) {}
}
