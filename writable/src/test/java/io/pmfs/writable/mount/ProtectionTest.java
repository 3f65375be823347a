package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.Protection;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Set;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Promise: what chattr(1) forbids at the source is refused at the call, and nothing is stuck. */
class ProtectionTest {
  @TempDir Path directory;

  private Driver driver;

  @BeforeEach
  void open() throws Exception {
    driver = new Driver(directory);
    driver.mkdir("d");
    driver.put("d/file", "content");
    driver.put("other", "other");
    driver.drainAll();
  }

  @AfterEach
  void close() throws FsException {
    driver.drainAll();
    assertThat(driver.mount().drainStatus().failures()).isEmpty();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
    driver.close();
  }

  private FakeCalls.Node atSource(String path) {
    FakeCalls.Node node = driver.calls.sourceRoot();
    for (String name : path.split("/", -1)) {
      node = Objects.requireNonNull(node.children.get(Driver.name(name)));
    }
    return node;
  }

  /** As another program on the source does; the mount looks there again. */
  private void protect(String path, Protection protection) throws FsException {
    FakeCalls.Node node = atSource(path);
    node.protection = protection;
    node.changed = node.changed.plusSeconds(1);
    driver.restart();
    driver.mount().attributes(driver.node(path).inode());
  }

  /**
   * The source refuses what the file's attributes forbid, and a change of these shows in its time.
   */
  @Test
  void change_refusedWhileTheFileWasImmutable_isNoConflictLater() throws Exception {
    driver.put("other", "another");
    FakeCalls.Node node = atSource("other");
    node.protection = Protection.IMMUTABLE;
    node.changed = node.changed.plusSeconds(1);
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            boolean isTouched = Set.of("rename", "open").contains(call);
            if (isTouched && name.equals(Driver.name("other"))) {
              throw new FsException(Errno.EPERM, call);
            }
          }
        });
    driver.drainAll();
    assertThat(driver.mount().drainStatus().refused()).isOne();
    driver.calls.watch(new FakeCalls.Watcher() {});
    driver.restart();
    node.protection = Protection.NONE;
    node.changed = node.changed.plusSeconds(1);
    driver.mount().retry(Driver.name("other"));
    driver.drainAll();
    assertThat(driver.mount().drainStatus().conflicts()).isZero();
    assertThat(driver.sourceTree()).containsEntry("other", "file 644 another");
    assertThat(atSource("other")).isNotSameAs(node); // It was replaced as a whole.
  }

  private static void assertRefused(ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EPERM))
        .hasMessageContaining("at the source");
  }

  @Test
  void immutableFile_isLeftAsItIs() throws Exception {
    protect("d/file", Protection.IMMUTABLE);
    long inode = driver.node("d/file").inode();
    for (int flags :
        new int[] {OutputCalls.O_WRONLY, OutputCalls.O_WRONLY | OutputCalls.O_APPEND}) {
      assertRefused(() -> driver.mount().open(inode, flags, driver.caller()));
    }
    assertRefused(() -> driver.truncate("d/file", 1));
    assertRefused(() -> driver.chmod("d/file", 0600));
    assertRefused(() -> driver.rename("d/file", "moved", 0));
    assertRefused(() -> driver.rename("other", "d/file", 0));
    assertRefused(() -> driver.link("d/file", "link"));
    assertRefused(() -> driver.unlink("d/file"));
    assertRefused(
        () ->
            driver
                .mount()
                .setExtendedAttribute(
                    inode, Driver.name("user.a"), new byte[1], 0, driver.caller()));
    assertThat(driver.read("d/file")).isEqualTo("content");
  }

  @Test
  void appendOnlyFile_grows() throws Exception {
    protect("d/file", Protection.APPEND_ONLY);
    long inode = driver.node("d/file").inode();
    int append = OutputCalls.O_WRONLY | OutputCalls.O_APPEND;
    assertRefused(() -> driver.mount().open(inode, OutputCalls.O_WRONLY, driver.caller()));
    assertRefused(() -> driver.mount().open(inode, append | OutputCalls.O_TRUNC, driver.caller()));
    assertRefused(() -> driver.truncate("d/file", 1));
    assertRefused(() -> driver.unlink("d/file"));
    assertThatCode(
            () -> {
              long handle = driver.mount().open(inode, append, driver.caller()).handle();
              driver
                  .mount()
                  .write(inode, handle, 0, Driver.bytes(" and more"), true, false, driver.caller());
              driver.mount().flush(inode, handle, driver.caller());
              driver.mount().release(inode, handle);
            })
        .doesNotThrowAnyException();
    assertThat(driver.read("d/file")).isEqualTo("content and more");
  }

  @Test
  void immutableDirectory_keepsItsNames() throws Exception {
    protect("d", Protection.IMMUTABLE);
    assertRefused(() -> driver.put("d/new", "new"));
    assertRefused(() -> driver.mkdir("d/new"));
    assertRefused(() -> driver.link("other", "d/new"));
    assertRefused(() -> driver.rename("other", "d/new", 0));
    assertRefused(() -> driver.rename("d/file", "new", 0));
    assertRefused(() -> driver.unlink("d/file"));
    assertRefused(() -> driver.rename("d", "e", 0));
    driver.append("d/file", " and more");
    assertThat(driver.read("d/file")).isEqualTo("content and more");
  }

  @Test
  void appendOnlyDirectory_getsNames() throws Exception {
    protect("d", Protection.APPEND_ONLY);
    driver.put("d/new", "new");
    assertRefused(() -> driver.unlink("d/file"));
    assertRefused(() -> driver.unlink("d/new"));
    assertRefused(() -> driver.rename("d/file", "d/other", 0));
  }

  @Test
  void protection_survivesTheProcessAndGoesWithTheSource() throws Exception {
    protect("d/file", Protection.IMMUTABLE);
    driver.restart();
    assertRefused(() -> driver.unlink("d/file"));
    protect("d/file", Protection.NONE);
    driver.unlink("d/file");
  }

  @Test
  void renamesAndLinksUnderAnotherProject_areSaidAtOnce() throws Exception {
    driver.mkdir("e");
    driver.mkdir("e/below");
    driver.drainAll();
    atSource("d").project = 1;
    atSource("e").project = 2;
    atSource("e/below").project = 2;
    driver.restart();
    for (String to : new String[] {"e/file", "e/below/file"}) {
      assertThatThrownBy(() -> driver.rename("d/file", to, 0))
          .isInstanceOfSatisfying(
              FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EXDEV));
      assertThatThrownBy(() -> driver.link("d/file", to))
          .isInstanceOfSatisfying(
              FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EXDEV));
    }
    assertThatThrownBy(() -> driver.rename("d", "e/d", 0))
        .isInstanceOfSatisfying(
            FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EXDEV));
    driver.rename("d/file", "d/moved", 0);
    driver.rename("e/below", "below", 0); // Nothing counts there.
    driver.rename("below", "e/back", 0);
  }

  /** A file is remembered below the name that it had first, or got by a rename. */
  @Test
  void linkOfAFileWhoseFirstDirectoryWasRemoved_isMade() throws Exception {
    driver.mkdir("gone");
    driver.put("gone/file", "content");
    driver.drainAll();
    atSource("gone").project = 1;
    atSource("d").project = 1;
    driver.restart();
    driver.link("gone/file", "d/kept");
    driver.drainAll();
    driver.unlink("gone/file");
    driver.rmdir("gone");
    driver.link("d/kept", "d/before");
    driver.drainAll();
    driver.link("d/kept", "d/after");
    driver.restart();
    driver.link("d/kept", "d/later");
    driver.link("d/later", "elsewhere");
  }

  /** chattr(1) changes a file's time of change, and nothing else. */
  @Test
  void fileThatIsProtectedWhileItIsWritten_isNotTakenForAnothers() throws Exception {
    long inode = driver.node("d/file").inode();
    long handle = driver.mount().open(inode, OutputCalls.O_WRONLY, driver.caller()).handle();
    FakeCalls.Node node = atSource("d/file");
    node.protection = Protection.APPEND_ONLY;
    node.changed = node.changed.plusSeconds(1);
    driver.mount().write(inode, handle, 0, Driver.bytes("CON"), false, false, driver.caller());
    driver.mount().flush(inode, handle, driver.caller());
    driver.mount().release(inode, handle);
    driver.drainAll();
    assertThat(driver.mount().drainStatus().conflicts()).isZero();
    assertThat(driver.read("d/file")).isEqualTo("CONtent");
  }
}
