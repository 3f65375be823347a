package io.pmfs.memory;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** A sink that collects the answer. */
public final class CollectingSink implements ReadSink {
  private byte[] answer = new byte[0];

  @Override
  public ByteBuffer buffer(int size) {
    return ByteBuffer.allocateDirect(size);
  }

  @Override
  public void accept(ReadResult piece) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(piece.size());
    piece.copyTo(bytes);
    if (bytes.hasRemaining()) {
      throw new IllegalStateException("the piece is smaller than its size");
    }
    int end = answer.length;
    answer = Arrays.copyOf(answer, end + bytes.capacity());
    System.arraycopy(bytes.array(), 0, answer, end, bytes.capacity());
  }

  @Override
  public int received() {
    return answer.length;
  }

  public byte[] answer() {
    return answer.clone();
  }
}
