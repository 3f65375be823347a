package io.pmfs.compression;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class RawCodecTest extends CodecContract {
  @Override
  protected Codec create() {
    return new RawCodec();
  }

  @Override
  protected boolean seesDamage() {
    return false;
  }

  @Test
  void compress_anything_isTheSameBytes() {
    assertThat(codec.number()).isZero();
    assertThat(codec.name()).isEqualTo("raw");
    assertThat(bytes(compress(compressible(100)))).isEqualTo(compressible(100));
  }
}
