package io.pmfs.cache;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cache.CacheMessage.Kind;
import java.nio.ByteBuffer;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

final class CacheMessageTest {
  private static final long SEED = 20261125;

  @ParameterizedTest
  @EnumSource(Kind.class)
  void parse_encoded_isTheSame(Kind kind) {
    CacheMessage message =
        new CacheMessage(kind, 1, Long.MAX_VALUE, 3, kind == Kind.REPORT ? "{}" : "");

    assertThat(CacheMessage.parse(ByteBuffer.wrap(message.encoded()))).isEqualTo(message);
  }

  @Test
  void parse_anyBytes_givesAMessageOrNone() {
    Random random = new Random(SEED);
    int messages = 0;
    for (int i = 0; i < 200_000; i++) {
      byte[] bytes = new CacheMessage(Kind.ASK, 1, 2, 3).encoded();
      if (random.nextInt(4) == 0) {
        bytes = new byte[random.nextInt(64)];
        random.nextBytes(bytes);
      } else {
        bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
      }
      CacheMessage message = CacheMessage.parse(ByteBuffer.wrap(bytes));
      if (message != null) {
        messages++;
        assertThat(message.id()).isNotNegative();
        assertThat(message.handle()).isNotNegative();
        assertThat(message.bytes()).isNotNegative();
        assertThat(message.encoded()).isEqualTo(bytes);
      }
    }
    assertThat(messages).isBetween(1, 199_999);
  }
}
