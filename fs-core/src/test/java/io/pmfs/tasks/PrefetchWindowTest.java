package io.pmfs.tasks;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Windows of 100 bytes over files of 10 bytes, named by their inode; the margin is 25 bytes. */
final class PrefetchWindowTest {
  private static final int SIZE = 10;
  private final AtomicLong now = new AtomicLong();
  private final PrefetchWindow window = new PrefetchWindow(100, 0, now::get);
  private long next;

  /** Adds files of an order while there is room; returns how many have entered so far. */
  private long enter(long... order) {
    while (next < order.length && window.enter(next, order[(int) next], SIZE)) {
      next++;
    }
    return next;
  }

  private static long[] order(int count) {
    long[] order = new long[count];
    for (int i = 0; i < count; i++) {
      order[i] = 1000L + i;
    }
    return order;
  }

  private void readWhole(long number) {
    window.delivered(number, SIZE, 0, 6);
    window.delivered(number, SIZE, 6, 4);
  }

  private List<Long> left() {
    List<Long> left = new ArrayList<>();
    for (long number; (number = window.takeLeaving()) != 0; ) {
      left.add(number);
    }
    return left;
  }

  @Test
  void enter_withoutReaders_takesAWindowFull() {
    assertThat(enter(order(50))).isEqualTo(10);
    assertThat(window.usedBytes()).isEqualTo(100);
    assertThat(left()).isEmpty();
  }

  @Test
  void read_wholeFile_letsItLeaveAndTheNextIn() {
    enter(order(50));
    readWhole(1000);

    assertThat(window.enter(10, 1010, SIZE)).as("before it was dropped").isFalse();
    assertThat(left()).containsExactly(1000L);
    assertThat(enter(order(50))).isEqualTo(11);
  }

  @Test
  void read_ofTheEndFirst_leavesOnlyWhenAllWasRead() {
    enter(order(50));
    window.delivered(1000, SIZE, 8, 2);
    assertThat(left()).isEmpty();
    window.delivered(1000, SIZE, 0, 8);

    assertThat(left()).containsExactly(1000L);
  }

  @Test
  void read_ofTheBeginningTwice_leavesOnlyAtTheEnd() {
    enter(order(50));
    window.delivered(1000, SIZE, 0, 6);
    window.delivered(1000, SIZE, 0, 6);
    assertThat(left()).isEmpty();
    window.delivered(1000, SIZE, 6, 4);

    assertThat(left()).containsExactly(1000L);
  }

  @Test
  void position_pastTheMargin_leavesWhatWasSkipped() {
    enter(order(50));
    window.delivered(1002, SIZE, 0, 1);
    assertThat(left()).isEmpty();
    window.delivered(1003, SIZE, 0, 1);
    assertThat(left()).containsExactly(1000L);
    window.delivered(1001, SIZE, 0, 1);
    window.delivered(1005, SIZE, 0, 1);

    assertThat(left()).containsExactly(1001L, 1002L);
    assertThat(window.usedBytes()).isEqualTo(70);
  }

  @Test
  void opened_byTheKernel_leavesByTheMarginOnly() {
    enter(order(50));
    for (int i = 0; i < 4; i++) {
      window.opened(1000L + i);
    }

    assertThat(left()).containsExactly(1000L);
  }

  @Test
  void order_namingAFileAgainInTheWindow_keepsItForThat() {
    long[] order = {7, 8, 7, 8, 9};
    enter(order);
    assertThat(window.usedBytes()).isEqualTo(30);
    readWhole(7);
    readWhole(8);
    assertThat(left()).isEmpty();
    readWhole(7);
    assertThat(left()).containsExactly(7L);
    readWhole(8);
    readWhole(9);

    assertThat(left()).containsExactly(8L, 9L);
    assertThat(window.isRead()).isTrue();
  }

  @Test
  void opened_ofAFileNamedTwice_movesToTheSecond() {
    long[] order = {7, 8, 7, 8};
    enter(order);
    window.opened(7);
    window.opened(8);
    window.opened(7);
    assertThat(window.isRead()).isFalse();
    window.opened(8);

    assertThat(window.isRead()).isTrue();
  }

  @Test
  void readersAhead_ofTheWindow_letFilesPassAtOnce() {
    enter(order(50));
    for (int i = 0; i < 30; i++) {
      readWhole(1000L + i);
    }
    for (int round = 0; round < 40; round++) {
      left();
      enter(order(50));
    }

    assertThat(next).isEqualTo(40);
    assertThat(window.contains(1029)).isFalse();
    assertThat(window.contains(1030)).isTrue();
  }

  @Test
  void lateReader_ofAFileThatLeft_hasItLeaveAgain() {
    enter(order(50));
    readWhole(1000);
    assertThat(left()).containsExactly(1000L);
    window.delivered(1000, SIZE, 0, 3);
    assertThat(left()).isEmpty();
    window.delivered(1000, SIZE, 3, 7);

    assertThat(left()).containsExactly(1000L);
  }

  @Test
  void fileThatEntersAgain_beforeItWasDropped_stays() {
    long[] order = {7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 7};
    enter(order);
    assertThat(next).as("its bytes are there already").isEqualTo(11);
    readWhole(7);

    assertThat(left()).isEmpty();
    assertThat(window.contains(7)).isTrue();
  }

  @Test
  void fileLargerThanTheWindow_entersWhenItIsAlone() {
    assertThat(window.enter(0, 1, 50)).isTrue();
    assertThat(window.enter(1, 2, 1000)).isFalse();
    window.delivered(1, 50, 0, 50);
    left();

    assertThat(window.enter(1, 2, 1000)).isTrue();
    assertThat(window.enter(2, 3, 1)).isFalse();
  }

  @Test
  void manyTinyFiles_areBounded() {
    PrefetchWindow large = new PrefetchWindow(Long.MAX_VALUE, 0, now::get);
    long entered = 0;
    while (large.enter(entered, entered + 1, 1)) {
      entered++;
    }

    assertThat(entered).isEqualTo(PrefetchWindow.MOST_FILES);
  }

  private void readElsewhere(int files) {
    for (int i = 0; i < files; i++) {
      window.delivered(5000L + i, SIZE, 0, 1);
      window.delivered(5000L + i, SIZE, 1, 1);
    }
  }

  @Test
  void reader_ofSixteenOtherFiles_isElsewhere() {
    enter(order(50));
    readElsewhere(PrefetchWindow.FIRST_SUSPICION - 1);
    assertThat(window.isReaderElsewhere(1000)).isFalse();
    readElsewhere(PrefetchWindow.FIRST_SUSPICION);

    assertThat(window.isReaderElsewhere(1000)).isTrue();
    assertThat(window.isReaderElsewhere(0)).as("there is nothing else").isFalse();
  }

  @Test
  void reader_atTheVeryEndOfTheOrder_isElsewhereSooner() {
    enter(order(50));
    readElsewhere(2);

    assertThat(window.isReaderElsewhere(2)).isTrue();
  }

  @Test
  void reader_whoReadsOneOfTheWindow_isThere() {
    enter(order(50));
    readElsewhere(100);
    window.delivered(1001, SIZE, 0, 1);

    assertThat(window.isReaderElsewhere(1000)).isFalse();
  }

  @Test
  void reader_notFound_isLookedForLater() {
    enter(order(50));
    readElsewhere(PrefetchWindow.FIRST_SUSPICION);
    window.notFound();
    assertThat(window.isReaderElsewhere(1000)).isFalse();
    for (int i = 0; i < 2 * PrefetchWindow.FIRST_SUSPICION; i++) {
      assertThat(window.isReaderElsewhere(1000)).isFalse();
      window.delivered(7000L + i, SIZE, 0, 1);
    }

    assertThat(window.isReaderElsewhere(1000)).isTrue();
  }

  @Test
  void opened_filesElsewhere_countToo() {
    enter(order(50));
    for (int i = 0; i < PrefetchWindow.FIRST_SUSPICION; i++) {
      window.opened(5000L + i);
    }

    assertThat(window.isReaderElsewhere(1000)).isTrue();
    assertThat(window.isReadElsewhere(5003)).isTrue();
    assertThat(window.isReadElsewhere(1003)).isFalse();
  }

  @Test
  void jump_leavesAllAndGoesOnThere() {
    enter(order(50));
    window.jump(30);

    assertThat(left()).hasSize(10);
    assertThat(window.firstIndex()).isEqualTo(30);
    next = 30;
    assertThat(enter(order(50))).isEqualTo(40);
    assertThat(window.firstIndex()).isEqualTo(30);
  }

  @Test
  void firstIndex_isThatOfTheFirstThatHasNotLeft() {
    assertThat(window.firstIndex()).isZero();
    enter(order(50));
    readWhole(1001);
    assertThat(window.firstIndex()).isZero();
    readWhole(1000);
    assertThat(window.firstIndex()).isEqualTo(2);
  }

  @Test
  void fileThatIsGone_leavesWithAllItsEntries() {
    long[] order = {7, 8, 7};
    enter(order);
    window.gone(7);
    readWhole(8);

    assertThat(left()).containsExactlyInAnyOrder(7L, 8L);
    assertThat(window.usedBytes()).isZero();
    assertThat(window.isRead()).isTrue();
  }

  @Test
  void rest_isTheTimeSinceAFileOfTheWindowWasReadOrEntered() {
    now.set(100);
    enter(order(5));
    assertThat(window.restNanos()).isZero();
    now.set(150);
    window.delivered(5000, SIZE, 0, 1);
    assertThat(window.restNanos()).isEqualTo(50);
    window.delivered(1000, SIZE, 0, 1);
    assertThat(window.restNanos()).isZero();
  }
}
