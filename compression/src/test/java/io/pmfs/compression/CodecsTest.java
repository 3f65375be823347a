package io.pmfs.compression;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class CodecsTest {
  @Test
  void codecs_areFoundByNumberAndName() {
    try (Codecs codecs = new Codecs(3)) {
      assertThat(codecs.byNumber(0)).isInstanceOf(RawCodec.class);
      assertThat(codecs.byNumber(1)).isInstanceOf(ZstdCodec.class).isSameAs(codecs.byName("zstd"));
      assertThat(codecs.byName("raw")).isInstanceOf(RawCodec.class);
      assertThat(codecs.byNumber(2)).isNull();
      assertThat(codecs.byName("lz4")).isNull();
    }
  }
}
