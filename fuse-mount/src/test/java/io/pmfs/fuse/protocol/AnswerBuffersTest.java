package io.pmfs.fuse.protocol;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;

final class AnswerBuffersTest {
  private static final KernelChannel NONE =
      new KernelChannel() {
        @Override
        public int receive(long buffer, int size) {
          return -1;
        }

        @Override
        public boolean send(long vectors, int count) {
          return false;
        }

        @Override
        public boolean sendPiped(int pipe, int size) {
          return false;
        }
      };

  private final AnswerBuffers buffers = new AnswerBuffers(128 << 10);

  @Test
  void take_afterGive_isTheSameMemoryOfThatSize() {
    ByteBuffer small = buffers.take(100);
    ByteBuffer large = buffers.take(200);
    small.position(7);
    buffers.give(small);
    buffers.give(large);

    assertThat(buffers.take(200)).isSameAs(large);
    assertThat(buffers.take(100)).isSameAs(small);
    assertThat(small.position()).isZero();
    assertThat(small.order()).isEqualTo(ByteOrder.nativeOrder());
    assertThat(buffers.take(100)).isNotSameAs(small);
  }

  @Test
  void close_ofAReply_givesItsMemoryToTheNext() {
    ByteBuffer first;
    try (KernelReply reply = new KernelReply(NONE, buffers)) {
      first = reply.body();
      assertThat(reply.bodyLimit()).isEqualTo(128 << 10);
      assertThat(reply.body(128 << 10)).as("no larger one is needed").isSameAs(first);
    }
    try (KernelReply reply = new KernelReply(NONE, buffers)) {
      assertThat(reply.body()).isSameAs(first);
    }
  }
}
