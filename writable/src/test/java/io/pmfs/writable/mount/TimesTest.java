package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
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

  @Test
  void timesOfNewNodes_areThoseOfTheSource() throws Exception {
    driver.mkdir("empty");
    driver.symlink("target", "link");
    driver.mknod("pipe", 0010644);
    driver.drainAll();
    assertAgree("empty");
    assertAgree("link");
    assertAgree("pipe");
  }

  @Test
  void timesOfNodesThatWereChangedSince_areThoseOfTheSource() throws Exception {
    driver.mkdir("d");
    driver.mkdir("e");
    driver.mkdir("f");
    driver.symlink("target", "link");
    driver.put("a", "x");
    driver.rename("d", "moved", 0);
    driver.rename("e", "f", OutputCalls.RENAME_EXCHANGE);
    driver.link("link", "linked");
    driver.chmod("a", 0600);
    driver.drainAll();
    assertAgree("moved");
    assertAgree("e");
    assertAgree("f");
    assertAgree("linked");
    assertAgree("a");
  }

  @Test
  void timeOfADirectory_inUnitsOfTwoSeconds_isThatOfTheSource() throws Exception {
    driver.calls.setCoarse(2);
    driver.mkdir("d");
    driver.put("d/a", "x");
    touch("d", Instant.ofEpochSecond(1_000_000_001, 500));
    driver.put("d/b", "x");
    driver.drainAll();
    assertAgree("d");
  }

  @Test
  void timeOfADirectory_inWhichAFileIsCreatedDuringItsStep_isNotSetBack() throws Exception {
    Instant[] now = {Instant.ofEpochSecond(1_000_000_000)};
    driver.close();
    driver = new Driver(directory.resolve("clock"), 0, () -> now[0]);
    driver.calls.setCoarse();
    driver.mkdir("d");
    List<WritableFileSystem.Opened> created = new ArrayList<>();
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void after(String call, FileName name) throws FsException {
            if (created.isEmpty() && call.equals("utimes") && name.equals(Driver.name("d"))) {
              now[0] = now[0].plusSeconds(100);
              created.add(driver.create("d/a"));
            }
          }
        });
    driver.drainAll();
    assertThat(shown("d")).isEqualTo(now[0]);
    driver.close(created.get(0));
    driver.drainAll();
    assertThat(shown("d")).isEqualTo(now[0]);
    assertAgree("d");
  }
}
