package io.pmfs.compression;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class SeekTableTest {
  private static final SeekTable TABLE =
      SeekTable.of(new int[] {7, 5, 9, 11}, new int[] {10, 0, 10, 3});

  private static byte[] file(SeekTable table) {
    ByteBuffer encoded = table.encode();
    int start = (int) table.compressedOffset(table.frameCount());
    byte[] file = new byte[start + encoded.remaining()];
    encoded.get(file, start, encoded.remaining());
    return file;
  }

  private static SeekTable read(byte[] file) throws CodecException {
    return SeekTable.load(
        file.length,
        ByteBuffer.allocateDirect(SeekTable.READ_BYTES),
        (offset, destination) ->
            destination.put(file, Math.toIntExact(offset), destination.remaining()));
  }

  @Test
  void encode_golden_isThePublishedFormat() {
    ByteBuffer encoded = SeekTable.of(new int[] {0x1234}, new int[] {0x20000}).encode();
    byte[] bytes = new byte[encoded.remaining()];
    encoded.duplicate().get(bytes);
    assertThat(HexFormat.of().formatHex(bytes))
        .isEqualTo(
            "5e2a4d18" + "11000000" + "34120000" + "00000200" + "01000000" + "00" + "b1ea928f");
    assertThat(SeekTable.encodedSize(1)).isEqualTo(encoded.remaining());
  }

  @Test
  void read_whatWasEncoded_isTheSame() throws CodecException {
    assertThat(read(file(TABLE))).isEqualTo(TABLE).hasSameHashCodeAs(TABLE);
    SeekTable none = SeekTable.of(new int[0], new int[0]);
    assertThat(read(file(none))).isEqualTo(none);
    assertThat(none.contentSize()).isZero();
    int[] sizes = new int[20_000];
    Arrays.setAll(sizes, i -> 1 + i % 251);
    assertThat(read(file(SeekTable.of(sizes, sizes)))).isEqualTo(SeekTable.of(sizes, sizes));
  }

  @Test
  void read_tableWithChecksums_skipsThem() throws CodecException {
    ByteBuffer file = ByteBuffer.allocate(12 + 8 + 2 * 12 + 9).order(ByteOrder.LITTLE_ENDIAN);
    file.position(12).putInt(0x184d2a5e).putInt(2 * 12 + 9);
    file.putInt(7).putInt(100).putInt(0xdeadbeef);
    file.putInt(5).putInt(50).putInt(0xdeadbeef);
    file.putInt(2).put((byte) 0x83).putInt(0x8f92eab1);
    assertThat(read(file.array())).isEqualTo(SeekTable.of(new int[] {7, 5}, new int[] {100, 50}));
  }

  @Test
  void frameOf_everyOffset_isTheFrameThatHoldsIt() {
    for (long offset = 0; offset < TABLE.contentSize(); offset++) {
      int frame = TABLE.frameOf(offset);
      assertThat(offset)
          .isGreaterThanOrEqualTo(TABLE.contentOffset(frame))
          .isLessThan(TABLE.contentOffset(frame) + TABLE.contentSize(frame));
    }
    assertThatThrownBy(() -> TABLE.frameOf(23)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> TABLE.frameOf(-1)).isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void offsets_ofFrames_addUp() {
    assertThat(TABLE.compressedOffset(2)).isEqualTo(12);
    assertThat(TABLE.compressedSize(2)).isEqualTo(9);
    assertThat(TABLE.contentOffset(3)).isEqualTo(20);
    assertThat(TABLE.contentSize(3)).isEqualTo(3);
    assertThat(TABLE.contentSize()).isEqualTo(23);
    assertThat(TABLE.compressedOffset(4)).isEqualTo(32);
  }

  @Test
  void of_frameAboveTwoGibibytes_isUnsigned() {
    SeekTable table = SeekTable.of(new int[] {1}, new int[] {1});
    byte[] file = file(table);
    // The content size's highest byte.
    file[1 + 8 + 7] = (byte) 0xff;
    assertThatCode(() -> assertThat(read(file).contentSize(0)).isEqualTo(0xff000001L))
        .doesNotThrowAnyException();
  }

  @Test
  void read_anyOneByteOfTheTableChanged_isRefusedOrOnlyChangesContentSizes() {
    byte[] good = file(TABLE);
    for (int at = 32; at < good.length; at++) {
      for (int change = 1; change < 256; change++) {
        byte[] bad = good.clone();
        bad[at] ^= (byte) change;
        try {
          SeekTable table = read(bad);
          assertThat(table.frameCount()).as("byte %d", at).isEqualTo(4);
          assertThat(table.compressedOffset(4)).isEqualTo(32);
        } catch (CodecException e) {
          assertThat(e).hasMessageStartingWith("no seek table: ");
        }
      }
    }
  }

  @Test
  void read_cutShortOrExtended_isRefused() {
    byte[] good = file(TABLE);
    for (int size = 0; size < good.length; size++) {
      byte[] cut = Arrays.copyOf(good, size);
      assertThatThrownBy(() -> read(cut)).isInstanceOf(CodecException.class);
      byte[] tail = Arrays.copyOfRange(good, good.length - size, good.length);
      assertThatThrownBy(() -> read(tail)).isInstanceOf(CodecException.class);
    }
    assertThatThrownBy(() -> read(Arrays.copyOf(good, good.length + 1)))
        .isInstanceOf(CodecException.class);
  }

  @Test
  void read_countThatLies_allocatesNothing() {
    byte[] file = file(TABLE);
    for (int count : new int[] {-1, Integer.MIN_VALUE, Integer.MAX_VALUE, 1 << 22, 3, 5}) {
      ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN).putInt(file.length - 9, count);
      assertThatThrownBy(() -> read(file)).as("%d", count).isInstanceOf(CodecException.class);
    }
  }

  @Test
  void read_randomBytesWithAFooter_neverFailsOtherwise() {
    long seed = new Random().nextLong();
    Random random = new Random(seed);
    for (int round = 0; round < 20_000; round++) {
      byte[] file = new byte[17 + random.nextInt(100)];
      random.nextBytes(file);
      ByteBuffer out = ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN);
      int count = random.nextInt(8);
      out.putInt(file.length - 9, count).put(file.length - 5, (byte) (random.nextInt(2) << 7));
      out.putInt(file.length - 4, 0x8f92eab1);
      int start = file.length - 17 - count * 8;
      if (start >= 0) {
        out.putInt(start, 0x184d2a5e).putInt(start + 4, count * 8 + 9);
      }
      assertThatCode(
              () -> {
                try {
                  read(file);
                } catch (CodecException e) {
                  assertThat(e).hasMessageContaining("seek table");
                }
              })
          .as("seed %d", seed)
          .doesNotThrowAnyException();
    }
  }

  @Test
  void of_impossibleSizes_areRefused() {
    assertThatThrownBy(() -> SeekTable.of(new int[1], new int[2]))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
