package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** An error that a thread of the mount meets in a call ends nothing: it goes on. */
@Timeout(300)
class ErrorsTest {
  private static final long DRAIN_MILLIS = 20_000;

  /** The pause after so many is of 3 s, and the next one of 6 s. */
  private static final int ATTEMPTS_OF_SECONDS = 6;

  private static final List<Error> ERRORS =
      List.of(
          new OutOfMemoryError("unable to create native thread"),
          new OutOfMemoryError("Java heap space"),
          new OutOfMemoryError("Cannot reserve 1048576 bytes of direct buffer memory"),
          new StackOverflowError(),
          new NoClassDefFoundError("io/pmfs/Nothing"));

  @TempDir Path directory;

  private static void makeChanges(Driver driver) throws Exception {
    driver.mkdir("d");
    driver.put("d/a", "content");
    driver.put("b", "more");
    driver.rename("b", "d/c", 0);
    driver.chmod("d/c", 0600);
    driver.put("d/a", "other content");
    driver.unlink("d/c");
    driver.put("last", "end");
  }

  /**
   * Lets each call at the source throw, one of them each time; returns whether there were so many.
   */
  private boolean runWith(int at, boolean isBefore) throws Exception {
    AtomicInteger count = new AtomicInteger();
    Error error = ERRORS.get(at % ERRORS.size());
    try (Driver driver =
        new Driver(directory.resolve(at + " " + isBefore), 2, InstantSource.system())) {
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) {
              if (isBefore) {
                fall();
              }
            }

            @Override
            public void after(String call, FileName name) {
              if (!isBefore) {
                fall();
              }
            }

            private void fall() {
              if (count.getAndIncrement() == at) {
                throw error;
              }
            }
          });
      makeChanges(driver);
      Map<String, String> wanted = driver.tree();
      assertThat(driver.mount().drain(DRAIN_MILLIS))
          .as("call %d: %s; %s", at, error, driver.mount().drainStatus().failures())
          .isTrue();
      assertThat(driver.sourceTree()).as("call %d: %s", at, error).isEqualTo(wanted);
      // The committer says that it goes on after it has gone on.
      Await.until("no failure", () -> driver.mount().drainStatus().failures().isEmpty());
      assertThat(driver.temporaries()).as("call %d: %s", at, error).isEmpty();
    }
    return count.get() > at;
  }

  @Test
  void error_beforeAnyCallAtTheSource_doesNotEndTheCommitter() throws Exception {
    int at = 0;
    while (runWith(at, true)) {
      at++;
    }
    assertThat(at).isGreaterThan(10);
  }

  @Test
  void error_afterAnyCallAtTheSource_doesNotEndTheCommitter() throws Exception {
    int at = 0;
    while (runWith(at, false)) {
      at++;
    }
    assertThat(at).isGreaterThan(10);
  }

  /** While it lasts, the status says so, with a reason. */
  @Test
  void error_thatStays_isAFailureInTheStatus() throws Exception {
    try (Driver driver = new Driver(directory, 2, InstantSource.system())) {
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) {
              throw new NoClassDefFoundError("io/pmfs/Nothing");
            }
          });
      driver.put("a", "content");
      assertThat(driver.mount().drain(DRAIN_MILLIS)).isFalse();
      assertThat(driver.mount().drainStatus().refused()).isPositive();
      assertThat(driver.mount().drainStatus().failures().get(0).reason())
          .contains("NoClassDefFoundError: io/pmfs/Nothing");
      driver.calls.watch(new FakeCalls.Watcher() {});
      assertThat(driver.mount().drain(DRAIN_MILLIS)).isTrue();
    }
  }

  /** The pauses between attempts grow, but not for who asks for the source's answer. */
  @Test
  void drain_afterManyRefusals_hasItsAnswerAtOnce() throws Exception {
    try (Driver driver = new Driver(directory, 2, InstantSource.system())) {
      AtomicInteger attempts = new AtomicInteger();
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) {
              attempts.incrementAndGet();
              throw new NoClassDefFoundError("io/pmfs/Nothing");
            }
          });
      driver.put("a", "content");
      Await.until("seconds pass", () -> attempts.get() >= ATTEMPTS_OF_SECONDS);
      for (int i = 0; i < 2; i++) {
        long begin = System.nanoTime();
        assertThat(driver.mount().drain(DRAIN_MILLIS)).isFalse();
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(2));
      }
    }
  }

  /** The tables have what an error kept from being known. */
  @Test
  void error_whenTheTablesAreSynced_losesNothing() throws Exception {
    for (int at = 0; at < 5; at++) {
      try (Driver driver = new Driver(directory.resolve("sync " + at), 2, InstantSource.system())) {
        int wanted = at;
        AtomicInteger count = new AtomicInteger();
        driver.mkdir("first"); // Numbers are reserved, and that is synced.
        driver
            .mount()
            .afterSyncs(
                () -> {
                  if (count.getAndIncrement() == wanted) {
                    throw new OutOfMemoryError("Java heap space");
                  }
                });
        makeChanges(driver);
        Map<String, String> tree = driver.tree();
        assertThat(driver.mount().drain(DRAIN_MILLIS)).as("sync %d", at).isTrue();
        assertThat(driver.sourceTree()).as("sync %d", at).isEqualTo(tree);
      }
    }
  }
}
