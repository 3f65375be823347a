package io.pmfs.posix;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

final class ErrnoTest {
  @ParameterizedTest
  @EnumSource
  void of_ownNumber_isItself(Errno errno) {
    assertThat(Errno.of(errno.number())).isEqualTo(errno);
  }

  @ParameterizedTest
  @ValueSource(ints = {Integer.MIN_VALUE, -1, 0, 3, 123, Integer.MAX_VALUE})
  void of_unknownNumber_isEio(int number) {
    assertThat(Errno.of(number)).isEqualTo(Errno.EIO);
  }

  @Test
  void fsException_message_saysReasonAndWhat() {
    FsException e = new FsException(Errno.ENOENT, "a/b");

    assertThat(e.errno()).isEqualTo(Errno.ENOENT);
    assertThat(e).hasMessage("ENOENT: a/b").hasNoCause();
  }
}
