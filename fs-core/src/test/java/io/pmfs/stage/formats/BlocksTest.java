package io.pmfs.stage.formats;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.SourceVersion;
import java.nio.ByteBuffer;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class BlocksTest {
  private static final int SIZE = Blocks.SIZE;

  private static SourceVersion version(long size) {
    return new SourceVersion(size, Instant.EPOCH);
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0",
    "1, 1",
    "1048575, 1",
    "1048576, 1",
    "1048577, 2",
    "2097152, 2",
    "5368709120, 5120",
    "17592186044416, 16777216"
  })
  void count_size_coversIt(long size, int count) {
    assertThat(Blocks.count(version(size))).isEqualTo(count);
  }

  @ParameterizedTest
  @CsvSource({"1", "1048575", "1048576", "1048577", "3145735", "5368709121"})
  void size_allBlocks_addUp(long size) {
    SourceVersion version = version(size);
    int last = Blocks.count(version) - 1;
    long sum = 0;
    for (int block = 0; block <= last; block++) {
      assertThat(Blocks.offset(block)).isEqualTo(sum);
      assertThat(Blocks.size(version, block)).isBetween(1, SIZE);
      sum += Blocks.size(version, block);
    }

    assertThat(sum).isEqualTo(size);
    assertThat(Blocks.index(size - 1)).isEqualTo(last);
  }

  @Test
  void index_aroundABorder_changesThere() {
    assertThat(Blocks.index(SIZE - 1)).isZero();
    assertThat(Blocks.index(SIZE)).isEqualTo(1);
    assertThat(Blocks.index(5000L * SIZE - 1)).isEqualTo(4999);
  }

  /** RFC 3720, appendix B.4. */
  @Test
  void checksum_knownVectors_match() {
    assertThat(Blocks.checksum(ByteBuffer.wrap(new byte[32]))).isEqualTo(0x8a9136aa);
    byte[] rising = new byte[32];
    for (int i = 0; i < rising.length; i++) {
      rising[i] = (byte) i;
    }
    assertThat(Blocks.checksum(ByteBuffer.wrap(rising))).isEqualTo(0x46dd794e);
  }

  @Test
  void checksum_buffer_keepsItsPosition() {
    ByteBuffer buffer = ByteBuffer.wrap(new byte[100]).position(68);

    assertThat(Blocks.checksum(buffer)).isEqualTo(0x8a9136aa);
    assertThat(buffer.position()).isEqualTo(68);
  }
}
