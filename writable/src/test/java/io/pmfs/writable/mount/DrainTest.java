package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Promise: a drain ends when the source has everything, and says so. */
@Timeout(120)
class DrainTest {
  private static final int PROGRAMS = 8;
  private static final int DRAINS = 250;

  @TempDir Path directory;

  /** The last change is made at any moment of a look. */
  @Test
  void drain_whileTheLastChangeIsMade_isTrue() throws Exception {
    ExecutorService programs = Executors.newFixedThreadPool(PROGRAMS);
    try (Driver driver = new Driver(directory, 1, InstantSource.system())) {
      List<Future<?>> draining = new ArrayList<>();
      for (int i = 0; i < PROGRAMS; i++) {
        String name = "program " + i;
        draining.add(programs.submit(() -> drainAgainAndAgain(driver, name)));
      }
      for (Future<?> one : draining) {
        one.get();
      }
    } finally {
      programs.shutdownNow();
    }
  }

  private static Void drainAgainAndAgain(Driver driver, String name) throws Exception {
    for (int i = 0; i < DRAINS; i++) {
      driver.mkdir(name + " " + i);
      assertThat(driver.mount().drain(20_000)).as("%s, drain %d", name, i).isTrue();
    }
    return null;
  }
}
