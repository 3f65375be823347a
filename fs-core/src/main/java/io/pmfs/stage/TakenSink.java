package io.pmfs.stage;

import io.pmfs.tier.ReadResult;
import io.pmfs.tier.ReadSink;
import java.io.IOException;
import java.nio.ByteBuffer;

/** Passes pieces on, and knows whether one was received: then no other place may offer it. */
final class TakenSink implements ReadSink {
  private final ReadSink sink;
  private boolean isTaken;

  TakenSink(ReadSink sink) {
    this.sink = sink;
  }

  boolean isTaken() {
    return isTaken;
  }

  @Override
  public ByteBuffer buffer(int size) {
    return sink.buffer(size);
  }

  @Override
  public void accept(ReadResult piece) throws IOException {
    sink.accept(piece);
    isTaken = true;
  }
}
