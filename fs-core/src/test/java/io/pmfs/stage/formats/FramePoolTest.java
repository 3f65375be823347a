package io.pmfs.stage.formats;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.compression.ZstdCodec;
import io.pmfs.memory.BufferPool;
import io.pmfs.memory.DirectMemory;
import io.pmfs.memory.FramePool;
import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class FramePoolTest {
  private static final int FRAME = 16 * 1024;

  private final ZstdCodec codec = new ZstdCodec(1);
  private final FramePool pool = new FramePool(new BufferPool(3 * FRAME, 1 << 20));
  private final FramedContent content = content();
  private final FramedContent other = content();

  private FramedContent content() {
    return new FramedContent(
        new Frames() {
          @Override
          public void readFrame(int frame, ByteBuffer destination) {
            throw new UnsupportedOperationException();
          }

          @Override
          public int checksum(int frame) {
            throw new UnsupportedOperationException();
          }
        },
        codec,
        10L * FRAME,
        FRAME,
        new DirectMemory());
  }

  @AfterEach
  void close() {
    codec.close();
  }

  private void keep(FramedContent of, int frame) {
    BufferPool.Loan loan = Objects.requireNonNull(pool.lend(FRAME));
    loan.buffer().putInt(0, frame);
    pool.put(of, frame, loan);
    loan.release();
  }

  private boolean has(FramedContent of, int frame) {
    BufferPool.Loan loan = pool.get(of, frame);
    if (loan == null) {
      return false;
    }
    assertThat(loan.buffer().getInt(0)).isEqualTo(frame);
    loan.release();
    return true;
  }

  @Test
  void get_ofAnotherContent_isNotThere() {
    keep(content, 1);
    assertThat(has(content, 1)).isTrue();
    assertThat(has(content, 2)).isFalse();
    assertThat(has(other, 1)).isFalse();
  }

  @Test
  void lend_withAllMemoryUsed_dropsWhatWasUsedLeastRecently() {
    keep(content, 1);
    keep(content, 2);
    keep(content, 3);
    assertThat(has(content, 1)).isTrue();
    keep(content, 4);
    assertThat(has(content, 2)).isFalse();
    assertThat(has(content, 1)).isTrue();
    assertThat(has(content, 3)).isTrue();
  }

  @Test
  void lend_withAllMemoryBorrowed_givesNoneAndTouchesNone() {
    for (int frame = 0; frame < 3; frame++) {
      keep(content, frame);
    }
    BufferPool.Loan first = Objects.requireNonNull(pool.get(content, 0));
    BufferPool.Loan second = Objects.requireNonNull(pool.get(content, 1));
    BufferPool.Loan third = Objects.requireNonNull(pool.get(content, 2));
    assertThat(pool.lend(FRAME)).isNull();
    assertThat(first.buffer().getInt(0)).isZero();
    assertThat(second.buffer().getInt(0)).isEqualTo(1);
    assertThat(third.buffer().getInt(0)).isEqualTo(2);
    second.release();
    BufferPool.Loan lent = Objects.requireNonNull(pool.lend(FRAME));
    lent.buffer().putInt(0, 99);
    assertThat(first.buffer().getInt(0)).isZero();
    assertThat(third.buffer().getInt(0)).isEqualTo(2);
    lent.release();
    first.release();
    third.release();
    assertThat(pool.isWhole()).isTrue();
  }

  @Test
  void take_withAllMemoryBorrowed_waitsForIt() throws Exception {
    BufferPool.Loan all = Objects.requireNonNull(pool.lend(3 * FRAME));
    CompletableFuture<BufferPool.Loan> waiting =
        CompletableFuture.supplyAsync(() -> pool.take(FRAME));
    assertThat(waiting).isNotCompleted();

    all.release();
    waiting.get(30, TimeUnit.SECONDS).release();
    assertThat(pool.isWhole()).isTrue();
  }

  @Test
  void put_ofAFrameThatIsThere_keepsTheFirst() {
    keep(content, 1);
    keep(content, 1);
    assertThat(pool.isWhole()).isTrue();
  }

  @Test
  void remove_ofAContent_leavesTheOthers() {
    for (int frameCount : new int[] {2, 1000}) {
      keep(content, 1);
      keep(other, 1);
      pool.remove(content, frameCount);
      assertThat(has(content, 1)).isFalse();
      assertThat(has(other, 1)).isTrue();
    }
    assertThat(pool.isWhole()).isTrue();
  }
}
