package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.posix.Requested;
import io.pmfs.writable.DrainStatus.Failure;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/**
 * Promise: whatever the source answers to a change of whatever kind, other changes go on, the
 * change is named, and the user gets out: by the source's accepting it, by trying again, or by
 * giving it up. The table in docs/usage.md says which answer means what.
 */
class RefusalKindsTest {
  private static final Path TABLE = Path.of("../docs/usage.md");
  private static final List<Errno> ERRORS =
      List.of(
          Errno.EPERM,
          Errno.EACCES,
          Errno.EXDEV,
          Errno.ENAMETOOLONG,
          Errno.EINVAL,
          Errno.EILSEQ,
          Errno.EFBIG,
          Errno.EROFS,
          Errno.EOPNOTSUPP,
          Errno.EMLINK,
          Errno.ERANGE,
          Errno.E2BIG,
          Errno.EIO,
          Errno.ESTALE,
          Errno.ETIMEDOUT,
          Errno.ENOSPC,
          Errno.EDQUOT,
          Errno.EHOSTDOWN,
          Errno.EBUSY,
          Errno.ENOMEM);

  /** One that passes by itself and one that does not; all of them take minutes. */
  private static final List<Errno> TRIED =
      Requested.is("large") ? ERRORS : List.of(Errno.EPERM, Errno.ENOSPC);

  /** Names that only changes have which are not refused. */
  private static final List<String> OTHERS = List.of("free", "free-link", "old", "other");

  @TempDir Path directory;

  /** A change by a program. */
  private interface Making {
    void make(Driver driver) throws FsException;
  }

  /** A kind of change, as the table calls it, and the call at the source that makes it. */
  private record Kind(String name, String call, Making making) {}

  private static final List<Kind> KINDS =
      List.of(
          new Kind("content of a file", "write", driver -> driver.put("victim", "new")),
          new Kind("directory", "mkdir", driver -> driver.mkdir("victim")),
          new Kind("symbolic link", "symlink", driver -> driver.symlink("target", "victim")),
          new Kind("removal of a file", "unlink", driver -> driver.unlink("f")),
          new Kind("removal of a directory", "rmdir", driver -> driver.rmdir("empty")),
          new Kind("rename", "rename", driver -> driver.rename("f", "victim", 0)),
          new Kind("link", "link", driver -> driver.link("f", "victim")),
          new Kind("mode, owner, times", "chmod", driver -> driver.chmod("f", 0600)),
          new Kind("extended attribute", "setxattr", RefusalKindsTest::setExtended),
          new Kind("pipe, socket, device", "mknod", RefusalKindsTest::mknod));

  private static void setExtended(Driver driver) throws FsException {
    driver
        .mount()
        .setExtendedAttribute(
            driver.node("f").inode(), Driver.name("user.a"), new byte[] {1}, 0, driver.caller());
  }

  private static void mknod(Driver driver) throws FsException {
    driver.mount().mknod(1, Driver.name("victim"), 0010644, 0, driver.caller());
  }

  // ---- the table

  private static String outcome(Driver driver) {
    List<Failure> failures = driver.mount().drainStatus().failures();
    if (failures.isEmpty()) {
      return "nothing";
    }
    assertThat(failures).hasSize(1);
    Failure failure = failures.get(0);
    assertThat(failure.path()).isIn("victim", "f", "empty");
    return failure.reason().startsWith("given up: ")
        ? "given up"
        : failure.isAside() ? "set aside" : "tried again";
  }

  private Driver prepared(String name) throws FsException {
    Driver driver = new Driver(directory.resolve(name));
    driver.put("f", "content");
    driver.put("old", "checkpoint");
    driver.mkdir("empty");
    driver.mkdir("other");
    driver.drainAll();
    return driver;
  }

  private static void refuse(Driver driver, Kind kind, Errno errno) {
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals(kind.call()) && !OTHERS.contains(name.toString())) {
              throw new FsException(errno, call);
            }
          }
        });
  }

  /** What is neither refused nor depends on it. */
  private static void makeOthers(Driver driver) throws FsException {
    driver.mkdir("other/free");
    driver.symlink("x", "other/free-link");
    driver.unlink("old");
    driver.chmod("other", 0711);
  }

  private static void assertOthers(Driver driver) throws FsException {
    assertThat(driver.sourceTree())
        .containsKeys("other/free", "other/free-link")
        .doesNotContainKey("old")
        .containsEntry("other", "dir 711");
  }

  private Map<String, Map<String, List<Errno>>> found() throws Exception {
    Map<String, Map<String, List<Errno>>> found = new LinkedHashMap<>();
    for (Kind kind : KINDS) {
      for (Errno errno : ERRORS) {
        try (Driver driver = prepared(kind.name() + errno)) {
          refuse(driver, kind, errno);
          kind.making().make(driver);
          driver.drainAll();
          found
              .computeIfAbsent(kind.name(), key -> new LinkedHashMap<>())
              .computeIfAbsent(outcome(driver), key -> new ArrayList<>())
              .add(errno);
        }
      }
    }
    return found;
  }

  private static String cell(List<Errno> errors) {
    return errors.isEmpty() ? "-" : String.join(" ", errors.stream().map(Errno::name).toList());
  }

  /** The document says what happens. */
  @Test
  void table_isTrue() throws Exception {
    List<String> lines = Files.readAllLines(TABLE);
    List<String> rows = new ArrayList<>();
    found()
        .forEach(
            (kind, outcomes) -> {
              assertThat(outcomes).doesNotContainKey("nothing");
              rows.add(
                  "| %s | %s | %s |"
                      .formatted(
                          kind,
                          cell(outcomes.getOrDefault("given up", List.of())),
                          cell(outcomes.getOrDefault("set aside", List.of()))));
            });
    assertThat(lines).containsAll(rows);
  }

  // ---- the ways out

  @TestFactory
  List<DynamicTest> refusal_keepsNothingElseBack_andHasAWayOut() {
    List<DynamicTest> tests = new ArrayList<>();
    for (Kind kind : KINDS) {
      for (Errno errno : TRIED) {
        tests.add(DynamicTest.dynamicTest(kind.name() + ": " + errno, () -> retried(kind, errno)));
        tests.add(
            DynamicTest.dynamicTest(
                kind.name() + ": " + errno + ", drop", () -> dropped(kind, errno)));
      }
    }
    return tests;
  }

  private void retried(Kind kind, Errno errno) throws Exception {
    try (Driver driver = prepared("retry " + kind.name() + errno)) {
      refuse(driver, kind, errno);
      kind.making().make(driver);
      makeOthers(driver);
      driver.drainAll();
      assertOthers(driver);
      assertThat(driver.mount().drain(0)).isFalse();
      assertThat(driver.mount().drainStatus().refused()).isOne();
      driver.restart();
      assertThat(driver.mount().drainStatus().refused()).isOne();
      driver.calls.watch(new FakeCalls.Watcher() {});
      driver.mount().retry(Driver.name(""));
      driver.drainAll();
      assertThat(driver.sourceTree()).isEqualTo(driver.tree());
      assertThat(driver.mount().drainStatus().waitingChanges()).isZero();
      assertThat(driver.temporaries()).isEmpty();
    }
  }

  private void dropped(Kind kind, Errno errno) throws Exception {
    try (Driver driver = prepared("drop " + kind.name() + errno)) {
      refuse(driver, kind, errno);
      kind.making().make(driver);
      makeOthers(driver);
      driver.drainAll();
      boolean isGivenUp = outcome(driver).equals("given up");
      List<String> dropped = driver.mount().drop(Driver.name(""));
      assertThat(dropped).hasSize(isGivenUp ? 0 : 1);
      driver.calls.watch(new FakeCalls.Watcher() {});
      driver.drainAll();
      assertThat(driver.sourceTree()).isEqualTo(driver.tree());
      assertThat(driver.mount().drainStatus().waitingChanges()).isZero();
      assertThat(driver.mount().drainStatus().dirtyBytes()).isZero();
      assertThat(driver.temporaries()).isEmpty();
      assertThat(driver.mount().drainStatus().refused()).isEqualTo(isGivenUp ? 1 : 0);
      // The names are free again.
      driver.put("victim", "after");
      driver.put("f", "again");
      driver.drainAll();
      assertThat(driver.sourceTree()).isEqualTo(driver.tree());
    }
  }
}
