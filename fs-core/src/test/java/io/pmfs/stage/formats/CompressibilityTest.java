package io.pmfs.stage.formats;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.compression.ZstdCodec;
import io.pmfs.memory.DirectMemory;
import io.pmfs.source.FakeStore;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class CompressibilityTest {
  private static final int BLOCK = Blocks.SIZE;

  private final ZstdCodec codec = new ZstdCodec(1);

  @AfterEach
  void close() {
    codec.close();
  }

  private static ByteBuffer direct(byte[] bytes) {
    return ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
  }

  /** Content with a negative seed is compressible. */
  private static byte[] content(long seed, int size) {
    return FakeStore.content(seed, 0, size);
  }

  private boolean isWorth(int block, byte[] content, long fileSize) {
    return isWorth(block, content, fileSize, 4096);
  }

  private boolean isWorth(int block, byte[] content, long fileSize, int unitBytes) {
    ByteBuffer bytes = direct(content);
    boolean worth =
        Compressibility.isWorth(
            codec, block, bytes, fileSize, unitBytes, new DirectMemory().scratch());
    assertThat(bytes.position()).isZero();
    return worth;
  }

  @Test
  void isWorth_byContent_isWhatShrinks() {
    for (int size : new int[] {8192, 50_000, 131_072, 131_073, BLOCK}) {
      assertThat(isWorth(0, content(-1, size), size)).as("%d", size).isTrue();
      assertThat(isWorth(0, content(1, size), size)).as("%d", size).isFalse();
    }
  }

  @Test
  void isWorth_fileOfOneUnitOfTheDisk_isFalse() {
    assertThat(isWorth(0, new byte[4096], 4096)).isFalse();
    assertThat(isWorth(0, new byte[4097], 4097)).isTrue();
    assertThat(isWorth(0, new byte[4096], 4096, 1)).isTrue();
    assertThat(isWorth(0, new byte[20], 20, 1)).as("the table takes more").isFalse();
  }

  @Test
  void isWorth_smallFileThatSavesNoUnit_isFalse() {
    // A fifth of it compresses to nothing, which is less than one of its three units.
    byte[] content = content(1, 12_000);
    Arrays.fill(content, 0, 2400, (byte) 0);
    assertThat(isWorth(0, content, content.length)).isFalse();
    Arrays.fill(content, 0, 6000, (byte) 0);
    assertThat(isWorth(0, content, content.length)).isTrue();
  }

  @Test
  void isWorth_largeFile_isTriedAllOverTheBlock() {
    byte[] content = content(1, BLOCK);
    Arrays.fill(content, 0, BLOCK / 8, (byte) 0);
    assertThat(isWorth(0, content, 10L * BLOCK)).as("one of four pieces").isTrue();
    Arrays.fill(content, 0, BLOCK / 8, (byte) 0);
    System.arraycopy(content(1, BLOCK / 8), 0, content, 0, BLOCK / 8);
    Arrays.fill(content, BLOCK / 8, BLOCK / 4, (byte) 0);
    assertThat(isWorth(0, content, 10L * BLOCK)).as("between the pieces").isFalse();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "ffd8ffe0",
        "89504e470d0a1a0a",
        "1f8b08",
        "28b52ffd",
        "fd377a585a00",
        "504b0304",
        "494433",
        "1a45dfa3"
      })
  void isWorth_formatThatIsCompressed_isFalseAtItsStart(String magic) {
    byte[] content = new byte[50_000];
    byte[] start = HexFormat.of().parseHex(magic);
    System.arraycopy(start, 0, content, 0, start.length);
    assertThat(isWorth(0, content, 50_000)).isFalse();
    // In another block these bytes mean nothing.
    assertThat(isWorth(1, content, 50_000 + BLOCK)).isTrue();
  }

  @Test
  void isCompressed_magicBehindTheStart_isSeen() {
    assertThat(Compressibility.isCompressed(direct("....ftypisom".getBytes(ISO_8859_1)))).isTrue();
    assertThat(Compressibility.isCompressed(direct("RIFF....WEBP".getBytes(ISO_8859_1)))).isTrue();
    assertThat(Compressibility.isCompressed(direct("RIFF....WAVE".getBytes(ISO_8859_1)))).isFalse();
    assertThat(Compressibility.isCompressed(direct(new byte[0]))).isFalse();
    assertThat(Compressibility.isCompressed(direct(new byte[] {(byte) 0xff, (byte) 0xd8})))
        .isFalse();
  }
}
