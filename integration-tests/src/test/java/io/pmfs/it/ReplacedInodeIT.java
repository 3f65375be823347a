package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the kernel does with a file of another version, once it opens files without asking. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class ReplacedInodeIT {
  private static final int SIZE = 8 << 20;
  private static final int OPENS = 1100;

  @Installed(byRoot = true)
  private Installation pmfs;

  @BeforeEach
  void requireKernel() {
    Machine.requireReplacedInodes();
  }

  @Test
  void file_ofAnotherVersion_isReadWholeOrNotAtAll() throws Exception {
    Path tree = pmfs.directory("source");
    Files.write(tree.resolve("small"), new byte[10]);
    Files.write(tree.resolve("f"), filled(1, SIZE));
    try (OwnMount mount = new OwnMount(pmfs.scratch(), tree)) {
      mount.source().beSecondHand();
      for (int i = 0; i < OPENS; i++) {
        Files.readAllBytes(mount.path("small"));
      }
      FileChannel open = FileChannel.open(mount.path("f"));
      assertThat(open.read(ByteBuffer.allocate(1000), 0)).isEqualTo(1000);
      Files.write(tree.resolve("f"), filled(2, SIZE + 1));
      mount.lookAgain("f");

      // Not from the cache.
      assertThatThrownBy(() -> open.read(ByteBuffer.allocate(1000), SIZE / 2))
          .isInstanceOf(IOException.class);
      byte[] now = Files.readAllBytes(mount.path("f"));
      assertThat(Arrays.equals(now, filled(2, SIZE + 1))).isTrue();
      assertThatThrownBy(() -> open.read(ByteBuffer.allocate(1000), 0))
          .isInstanceOf(IOException.class);
      assertThatThrownBy(open::close).isInstanceOf(IOException.class);
    }
  }

  private static byte[] filled(int value, int size) {
    byte[] bytes = new byte[size];
    Arrays.fill(bytes, (byte) value);
    return bytes;
  }
}
