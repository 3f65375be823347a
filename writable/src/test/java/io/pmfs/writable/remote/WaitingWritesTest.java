package io.pmfs.writable.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.writable.places.CopyBuffers;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Writes that wait at the owner hold little more memory than their content. */
class WaitingWritesTest {
  private static final int WRITES = 20; // More than there are buffers that are kept.

  @Test
  void contentOfManyWrites_hasBuffersOfItsSize() throws Exception {
    byte[] message = Message.request().content(ByteBuffer.allocate(100)).toBytes();
    List<ByteBuffer> bytes =
        Stream.generate(() -> message).limit(WRITES).map(WaitingWritesTest::content).toList();
    assertThat(bytes.get(WRITES - 1).capacity()).isEqualTo(100);
    bytes.forEach(CopyBuffers::give);
    assertThat(CopyBuffers.take().capacity()).isEqualTo(CopyBuffers.BYTES);
  }

  private static ByteBuffer content(byte[] message) {
    try {
      MessageReader in = new MessageReader(message);
      in.head();
      return in.nativeContent();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }
}
