package io.pmfs.cache;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class CopierTest {
  private static final int ADA = 1000;
  private static final int BOB = 1001;
  private static final int EVE = 1002;

  private final Copier copier = new Copier(2);
  private final List<String> done = new CopyOnWriteArrayList<>();

  @AfterEach
  void close() {
    copier.close();
  }

  /** Work that blocks until released. */
  private final class Held implements Copier.Work {
    private final String name;
    private final long bytes;
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch release = new CountDownLatch(1);
    private final CountDownLatch ended = new CountDownLatch(1);

    Held(String name, long bytes) {
      this.name = name;
      this.bytes = bytes;
    }

    @Override
    public void run(ByteBuffer buffer, LongConsumer progress) {
      begun.countDown();
      await(release);
      done.add(name);
      ended.countDown();
    }

    @Override
    public void drop() {
      done.add("dropped " + name);
    }

    @Override
    public void giveUp() {
      done.add("gave up " + name);
    }

    @Override
    public long bytes() {
      return bytes;
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private Held add(int user, String name, long bytes) {
    Held work = new Held(name, bytes);
    copier.add(user, work);
    return work;
  }

  @Test
  void add_allThreadsAreBusy_goesOnWithTheUserWhoHasLeastUnderWay() {
    Held large = add(ADA, "ada's large", 1 << 30);
    await(large.begun);
    Held small = add(EVE, "eve's", 1);
    await(small.begun);
    Held second = add(ADA, "ada's second", 1);
    Held bobs = add(BOB, "bob's", 1 << 20);
    assertThat(copier.waiting()).isEqualTo(2);

    small.release.countDown();
    await(bobs.begun);
    assertThat(second.begun.getCount()).isEqualTo(1);
    bobs.release.countDown();
    await(bobs.ended);
    second.release.countDown();
    large.release.countDown();
    await(second.ended);
    await(large.ended);

    assertThat(done.subList(0, 2)).containsExactly("eve's", "bob's");
  }

  @Test
  void add_tooMuchWaits_isRefused_andOnlyForThatUser() {
    await(add(EVE, "1", 1).begun);
    await(add(EVE, "2", 1).begun);
    Copier.Place place = Copier.Place.WAITS;
    int added = 0;
    while (place == Copier.Place.WAITS) {
      place = copier.add(ADA, new Held("of ada", 1));
      added++;
    }

    assertThat(place).isEqualTo(Copier.Place.REFUSED);
    assertThat(added).isEqualTo(257);
    assertThat(copier.add(BOB, new Held("of bob", 1))).isEqualTo(Copier.Place.WAITS);
  }

  @Test
  void close_dropsWhatWaits() {
    await(add(EVE, "1", 1).begun);
    await(add(EVE, "2", 1).begun);
    add(ADA, "of ada", 1);
    copier.close();

    assertThat(done).containsExactly("dropped of ada");
    assertThat(copier.add(ADA, new Held("late", 1))).isEqualTo(Copier.Place.REFUSED);
  }

  @Test
  void replaceHanging_sourceDoesNotAnswer_othersGoOn_andThatUserIsRefusedIfAllHang() {
    List<Held> hanging = new ArrayList<>();
    try (Copier many = new Copier(Copier.THREADS)) {
      for (int user : List.of(ADA, BOB)) {
        for (int i = 0; i < Copier.THREADS; i++) {
          Held work = new Held("of " + user, 1);
          many.add(user, work);
          hanging.add(work);
        }
      }
      Held another = new Held("eve's", 1);
      assertThat(many.add(EVE, another)).isEqualTo(Copier.Place.WAITS);

      // The threads of the second user begin when those of the first are replaced.
      Await.until(
          "hanging threads are replaced",
          () -> {
            many.replaceHanging(System.nanoTime());
            return another.begun.getCount() == 0 && count("gave up of") >= 2 * 48;
          });
      another.release.countDown();
      await(another.ended);

      assertThat(many.add(ADA, new Held("more", 1))).isEqualTo(Copier.Place.REFUSED);
      hanging.forEach(work -> work.release.countDown());
      Await.until("nothing runs", () -> many.running() == 0);
      Held again = new Held("again", 1);
      assertThat(many.add(ADA, again)).isNotEqualTo(Copier.Place.REFUSED);
      await(again.begun);
      again.release.countDown();
    }
    assertThat(count("dropped")).isEqualTo(2 * 16);
  }

  private long count(String what) {
    return done.stream().filter(one -> one.startsWith(what)).count();
  }
}
