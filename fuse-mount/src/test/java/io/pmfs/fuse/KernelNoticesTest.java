package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.fuse.protocol.KernelChannel;
import io.pmfs.fuse.system.NativeMemory;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HexFormat;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Golden bytes, derived by hand from linux/fuse.h; little-endian machines only. */
final class KernelNoticesTest {
  private String sent = "";

  private final KernelNotices notices =
      new KernelNotices(
          new KernelChannel() {
            @Override
            public int receive(long buffer, int size) {
              throw new AssertionError("a notice has no answer");
            }

            @Override
            public boolean send(long vectors, int count) throws FsException {
              assertThat(count).isEqualTo(1);
              ByteBuffer vector = NativeMemory.view(vectors, 16).order(ByteOrder.nativeOrder());
              byte[] bytes = new byte[(int) vector.getLong(8)];
              NativeMemory.view(vector.getLong(0), bytes.length).get(bytes);
              sent = HexFormat.of().formatHex(bytes);
              if (sent.startsWith("10000000")) {
                throw new FsException(Errno.EINVAL, "a code that this kernel does not know");
              }
              return true;
            }

            @Override
            public boolean sendPiped(int pipe, int size) {
              throw new AssertionError("a notice has no file");
            }
          });

  @BeforeEach
  void requireLittleEndian() {
    assumeTrue(ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN, "golden bytes");
  }

  @Test
  void resend_onAKernelThatCannot_fails() {
    assertThatThrownBy(notices::resend).isInstanceOf(FsException.class);
    assertThat(sent).isEqualTo("10000000" + "07000000" + "0000000000000000");
  }
}
