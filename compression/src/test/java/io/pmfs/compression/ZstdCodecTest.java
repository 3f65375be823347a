package io.pmfs.compression;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ZstdCodecTest extends CodecContract {
  @TempDir Path directory;

  @Override
  protected ZstdCodec create() {
    return new ZstdCodec(3);
  }

  @Test
  void compress_compressible_saves() {
    assertThat(codec.number()).isEqualTo(1);
    assertThat(compress(compressible(100_000)).remaining()).isLessThan(60_000);
  }

  @Test
  void create_impossibleLevel_isRefused() {
    assertThatThrownBy(() -> new ZstdCodec(23)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void maxCompressedSize_aboveBuffers_isRefused() {
    assertThatThrownBy(() -> codec.maxCompressedSize(Integer.MAX_VALUE))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void use_afterClose_fails() {
    ByteBuffer compressed = compress(compressible(100));
    codec.close();
    codec.close();
    assertThatThrownBy(() -> compress(new byte[1])).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> codec.decompress(compressed, ByteBuffer.allocateDirect(100)))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void zstdProgram_bothWays_agrees() throws Exception {
    ZstdProgram.assume();
    byte[] content = compressible(300_000);
    Path ours = directory.resolve("ours.zst");
    Path theirs = directory.resolve("theirs");
    Files.write(ours, bytes(compress(content)));
    ZstdProgram.run("-q", "-d", ours.toString(), "-o", theirs.toString());
    assertThat(Files.readAllBytes(theirs)).isEqualTo(content);
    ZstdProgram.run("-q", "--check", theirs.toString());
    ByteBuffer target = ByteBuffer.allocateDirect(content.length);
    codec.decompress(direct(Files.readAllBytes(directory.resolve("theirs.zst"))), target);
    assertThat(bytes(target.flip())).isEqualTo(content);
  }
}
