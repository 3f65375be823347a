package io.pmfs.shards;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

final class HeaderReaderTest {
  private static final int MIB = 1 << 20;

  private static byte[] bytes(int size) {
    byte[] bytes = new byte[size];
    for (int i = 0; i < size; i++) {
      bytes[i] = (byte) ((i * 31) >> 5);
    }
    return bytes;
  }

  @Test
  void read_smallSteps_takesLargeRequests() throws Exception {
    byte[] bytes = bytes(8 * MIB);
    MemoryFile file = new MemoryFile(bytes);
    HeaderReader reader =
        new HeaderReader(file, bytes.length, ByteBuffer.allocateDirect(HeaderReader.MAX_BYTES));

    for (int at = 0; at + 512 <= bytes.length; at += 100_000) {
      assertThat(reader.read(at, 512)).isEqualTo(java.util.Arrays.copyOfRange(bytes, at, at + 512));
    }

    assertThat(file.reads()).isLessThan(20);
  }

  @Test
  void read_largeSteps_passesOverWhatIsBetween() throws Exception {
    byte[] bytes = bytes(40 * MIB);
    MemoryFile file = new MemoryFile(bytes);
    HeaderReader reader =
        new HeaderReader(file, bytes.length, ByteBuffer.allocateDirect(HeaderReader.MAX_BYTES));

    for (int at = 0; at < bytes.length; at += 4 * MIB) {
      assertThat(reader.read(at, 512)).hasSize(512);
    }

    assertThat(file.reads()).isEqualTo(10);
    assertThat(file.bytesRead()).isLessThan(MIB);
  }

  @Test
  void read_atTheEnd_isShort() throws Exception {
    HeaderReader reader =
        new HeaderReader(
            new MemoryFile(bytes(700)), 700, ByteBuffer.allocateDirect(HeaderReader.MAX_BYTES));

    assertThat(reader.read(512, 512)).hasSize(188);
    assertThat(reader.read(700, 512)).isEmpty();
    assertThat(reader.read(100, 512)).hasSize(512);
  }
}
