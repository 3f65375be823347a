package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.writable.WritableFileSystem.NewAttributes;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Promise: the mount shows the times that the source can keep, once the source has the file. */
class TimesTest {
  private static final Instant LATE = Instant.parse("2500-01-01T00:00:00.5Z");

  @TempDir Path directory;

  private Driver driver;

  @BeforeEach
  void open() throws Exception {
    driver = new Driver(directory);
    driver.calls.setCoarse();
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private void touch(String path, Instant time) throws Exception {
    driver
        .mount()
        .setAttributes(
            driver.node(path).inode(),
            new NewAttributes(null, null, null, null, time, time, 0, false),
            driver.caller());
  }

  private Instant shown(String path) throws Exception {
    return driver.node(path).attributes().modificationTime();
  }

  private void assertAgree(String name) throws Exception {
    FakeCalls.Node there =
        Objects.requireNonNull(driver.calls.sourceRoot().children.get(Driver.name(name)));
    assertThat(shown(name)).isEqualTo(there.modified);
    assertThat(driver.node(name).attributes().accessTime()).isEqualTo(there.accessed);
  }

  @Test
  void timesOfNewFiles_areThoseOfTheSource() throws Exception {
    driver.mkdir("d");
    driver.put("d/in", "x");
    driver.put("a", "x");
    driver.symlink("a", "l");
    driver.drainAll();
    assertAgree("d");
    assertAgree("a");
    driver.append("a", "+");
    driver.drainAll();
    assertAgree("a");
  }

  @Test
  void timesThatAreTooLate_areThoseOfTheSource() throws Exception {
    driver.mkdir("d");
    driver.put("a", "x");
    driver.drainAll();
    touch("a", LATE);
    touch("d", LATE);
    assertThat(shown("a")).isEqualTo(LATE);
    driver.drainAll();
    assertThat(shown("a")).isBefore(LATE);
    assertAgree("a");
    assertAgree("d");
  }

  @Test
  void timesThatAreGivenMeanwhile_stay() throws Exception {
    driver.put("a", "x");
    touch("a", LATE);
    driver.mkdir("between");
    driver.append("a", "+");
    driver.mkdir("last");
    touch("a", LATE);
    driver.mount().step();
    assertThat(shown("a")).isEqualTo(LATE);
    driver.drainAll();
    assertAgree("a");
  }
}
