package io.pmfs.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.tier.DirectPool;
import org.junit.jupiter.api.Test;

final class DirectMemoryTest {
  private static final int MIB = 1 << 20;

  @Test
  void new_takesNothingFromTheSystem() {
    long before = DirectPool.bytes();
    DirectMemory memory = new DirectMemory();
    memory.readers(512 * MIB);

    assertThat(DirectPool.bytes()).isEqualTo(before);
  }

  @Test
  void pools_allLent_areTheFixedSumAndTheReaders() {
    long before = DirectPool.bytes();
    DirectMemory memory = new DirectMemory(DirectMemory.FIXED_BYTES + 8 * MIB);
    lendAll(memory.readers(8 * MIB));
    lendAll(memory.tasks());
    lendAll(memory.fetch());
    lendAll(memory.store());
    lendAll(memory.scratch());
    while (memory.frames().lend(MIB) != null) {
      // All of it.
    }

    assertThat(DirectPool.bytes() - before)
        .isEqualTo(
            DirectMemory.FIXED_BYTES
                + 8 * MIB
                - DirectMemory.THREADS_BYTES
                - DirectMemory.PEERS_BYTES);
  }

  private static void lendAll(BufferPool pool) {
    while (pool.tryAcquire(MIB) != null) {
      // All of it.
    }
  }

  @Test
  void readers_moreThanJavaHas_getWhatThereIs() {
    BufferPool readers = new DirectMemory(DirectMemory.FIXED_BYTES + 8 * MIB).readers(64 * MIB);

    for (int i = 0; i < 8; i++) {
      assertThat(readers.tryAcquire(MIB)).isNotNull();
    }
    assertThat(readers.tryAcquire(1)).isNull();
  }

  @Test
  void readers_tasksHaveAllOfTheirs_areNotConcerned() {
    DirectMemory memory = new DirectMemory();
    BufferPool readers = memory.readers(8 * MIB);
    lendAll(memory.tasks());

    assertThat(readers.tryAcquire(8 * MIB / 8)).isNotNull();
  }

  @Test
  void new_lessThanTheFixedSum_isAnError() {
    assertThatThrownBy(() -> new DirectMemory(DirectMemory.FIXED_BYTES - 1))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
