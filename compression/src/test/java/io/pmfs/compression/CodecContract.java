package io.pmfs.compression;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests of {@link ZstdCodec}, with and without a dictionary. */
public abstract class CodecContract {
  private static final long SEED = 20_240_501;

  protected ZstdCodec codec;

  /** Makes the codec of one test. */
  protected abstract ZstdCodec create();

  @SuppressWarnings("NullAway.Init")
  protected CodecContract() {}

  @BeforeEach
  void createCodec() {
    codec = create();
  }

  @AfterEach
  void closeCodec() {
    codec.close();
  }

  protected static ByteBuffer direct(byte[] bytes) {
    return ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
  }

  protected static byte[] bytes(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return bytes;
  }

  /** Bytes that compress to about half their size. */
  protected static byte[] compressible(int size) {
    byte[] bytes = new byte[size];
    Random random = new Random(SEED);
    for (int i = 0; i < size; i++) {
      bytes[i] = (byte) random.nextInt(16);
    }
    return bytes;
  }

  private static byte[] incompressible(int size) {
    byte[] bytes = new byte[size];
    new Random(SEED).nextBytes(bytes);
    return bytes;
  }

  protected final ByteBuffer compress(byte[] content) {
    ByteBuffer source = direct(content);
    ByteBuffer target = ByteBuffer.allocateDirect(codec.maxCompressedSize(content.length));
    int written = codec.compress(source, target);
    assertThat(written).isEqualTo(target.position());
    assertThat(source.hasRemaining()).isFalse();
    return target.flip();
  }

  private void assertComesBack(byte[] content) throws CodecException {
    ByteBuffer compressed = compress(content);
    ByteBuffer target = ByteBuffer.allocateDirect(content.length);
    assertThat(codec.decompress(compressed, target)).isEqualTo(content.length);
    assertThat(compressed.hasRemaining()).isFalse();
    assertThat(bytes(target.flip())).isEqualTo(content);
  }

  @Test
  void content_ofAnyKind_comesBack() throws CodecException {
    assertComesBack(new byte[0]);
    assertComesBack(new byte[] {42});
    assertComesBack(new byte[4096]);
    assertComesBack(incompressible(100_003));
    assertComesBack(compressible(100_003));
    assertComesBack(compressible(8 << 20));
    assertComesBack(incompressible(8 << 20));
  }

  @Test
  void buffers_withOffsetsAndLimits_areUsedOnlyBetweenThem() throws CodecException {
    byte[] content = compressible(1000);
    ByteBuffer source = ByteBuffer.allocateDirect(1100).position(50).put(content);
    source.limit(source.position()).position(50);
    int max = codec.maxCompressedSize(1000);
    ByteBuffer compressed = filled(max + 20).position(7).limit(7 + max);
    int written = codec.compress(source.slice().asReadOnlyBuffer(), compressed);
    assertThat(compressed.position()).isEqualTo(7 + written);
    assertUntouchedOutside(compressed, 7, 7 + max);
    compressed.limit(compressed.position()).position(7);
    ByteBuffer target = filled(1020).position(9).limit(1009);
    assertThat(codec.decompress(compressed, target)).isEqualTo(1000);
    assertThat(target.position()).isEqualTo(1009);
    assertUntouchedOutside(target, 9, 1009);
    assertThat(bytes(target.position(9))).isEqualTo(content);
  }

  private static ByteBuffer filled(int size) {
    byte[] filling = new byte[size];
    Arrays.fill(filling, (byte) 0x5a);
    return direct(filling);
  }

  private static void assertUntouchedOutside(ByteBuffer buffer, int from, int to) {
    for (int i = 0; i < buffer.capacity(); i++) {
      if (i < from || i >= to) {
        assertThat(buffer.duplicate().clear().get(i)).isEqualTo((byte) 0x5a);
      }
    }
  }

  @Test
  void decompress_anyByteDamaged_neverGivesOtherContent() {
    byte[] content = compressible(600);
    byte[] compressed = bytes(compress(content));
    for (int at = 0; at < compressed.length; at++) {
      for (int change = 1; change < 256; change++) {
        byte[] damaged = compressed.clone();
        damaged[at] ^= (byte) change;
        ByteBuffer target = ByteBuffer.allocateDirect(content.length + 100);
        try {
          int size = codec.decompress(direct(damaged), target);
          assertThat(size).isEqualTo(content.length);
          assertThat(bytes(target.flip())).as("byte %d", at).isEqualTo(content);
        } catch (CodecException e) {
          assertThat(target.position()).isZero();
        }
      }
    }
  }

  @Test
  void decompress_cutShort_isSeen() {
    byte[] compressed = bytes(compress(compressible(600)));
    for (int size = 0; size < compressed.length; size++) {
      ByteBuffer source = direct(Arrays.copyOf(compressed, size));
      ByteBuffer target = ByteBuffer.allocateDirect(700);
      assertThatThrownBy(() -> codec.decompress(source, target)).isInstanceOf(CodecException.class);
      assertThat(source.position()).isZero();
    }
  }

  @Test
  void compress_targetTooSmall_overflows() {
    ByteBuffer source = direct(incompressible(1000));
    ByteBuffer target = ByteBuffer.allocateDirect(999);
    assertThatThrownBy(() -> codec.compress(source, target))
        .isInstanceOf(BufferOverflowException.class);
    assertThat(source.position()).isZero();
    assertThat(target.position()).isZero();
  }

  @Test
  void decompress_targetTooSmall_isRefused() {
    ByteBuffer source = compress(compressible(1000));
    ByteBuffer target = ByteBuffer.allocateDirect(999);
    assertThatThrownBy(() -> codec.decompress(source, target)).isInstanceOf(CodecException.class);
    assertThat(source.position()).isZero();
    assertThat(target.position()).isZero();
  }

  @Test
  void buffers_notDirectOrReadOnly_areRefused() {
    ByteBuffer direct = ByteBuffer.allocateDirect(100);
    ByteBuffer heap = ByteBuffer.allocate(100);
    assertThatThrownBy(() -> codec.compress(heap, direct))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> codec.decompress(direct, heap))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> codec.compress(direct, direct.asReadOnlyBuffer()))
        .isInstanceOf(ReadOnlyBufferException.class);
  }

  @Test
  void maxCompressedSize_impossible_isRefused() {
    assertThatThrownBy(() -> codec.maxCompressedSize(-1))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(codec.maxCompressedSize(1 << 30)).isGreaterThanOrEqualTo(1 << 30);
  }

  @Test
  void codec_usedByManyThreads_mixesNothingUp() throws Exception {
    int threadCount = 8;
    ExecutorService threads = Executors.newFixedThreadPool(threadCount);
    try {
      List<Future<?>> done = new ArrayList<>();
      for (int t = 0; t < threadCount; t++) {
        byte[] content = compressible(10_000 + t);
        Arrays.fill(content, 0, 5000, (byte) t);
        done.add(
            threads.submit(
                () -> {
                  for (int i = 0; i < 200; i++) {
                    assertComesBack(content);
                  }
                  return null;
                }));
      }
      for (Future<?> future : done) {
        future.get();
      }
    } finally {
      threads.shutdownNow();
    }
  }
}
