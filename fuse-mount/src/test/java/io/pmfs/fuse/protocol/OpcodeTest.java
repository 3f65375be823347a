package io.pmfs.fuse.protocol;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

final class OpcodeTest {
  @ParameterizedTest
  @EnumSource
  void of_itsNumber_isTheOpcode(Opcode opcode) {
    assertThat(Opcode.of(opcode.number())).isSameAs(opcode);
  }

  @Test
  void numbers_ofAll_areDistinct() {
    assertThat(Arrays.stream(Opcode.values()).map(Opcode::number)).doesNotHaveDuplicates();
  }

  // 7 and 19 were never assigned; 41 answers a notification that we do not send; 4096 is CUSE.
  @ParameterizedTest
  @ValueSource(ints = {Integer.MIN_VALUE, -1, 0, 7, 19, 41, 54, 4096, Integer.MAX_VALUE})
  void of_aNumberWithoutName_isNull(int number) {
    assertThat(Opcode.of(number)).isNull();
  }

  @Test
  void isAnswered_isFalseForThoseThatTheKernelForgetsAtOnce() {
    assertThat(Arrays.stream(Opcode.values()).filter(opcode -> !opcode.isAnswered()))
        .containsExactly(Opcode.FORGET, Opcode.INTERRUPT, Opcode.BATCH_FORGET);
  }
}
