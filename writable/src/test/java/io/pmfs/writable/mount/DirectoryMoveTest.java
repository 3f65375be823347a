package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Promise: as long as the source does not say whether it moved a directory, programs do not take
 * the directory for an empty one.
 */
class DirectoryMoveTest {
  @TempDir Path directory;

  private Driver driver;
  private long moved;
  private long link;
  private boolean isFailing;

  /** The source moves a directory, fails at once, and is back before pmfs has asked again. */
  @BeforeEach
  void move() throws Exception {
    driver = new Driver(directory);
    driver.mkdir("old");
    driver.mkdir("old/taken");
    driver.put("old/file", "text");
    driver.drainAll();
    int root = driver.calls.openRoot(Driver.SOURCE);
    int old = driver.calls.openDirectory(root, Driver.name("old"));
    driver.calls.symlink(Driver.name("target"), old, Driver.name("link"));
    link = driver.node("old/link").inode();
    driver.remount(); // Nothing is listed.
    driver.rename("old", "new", 0);
    moved = driver.node("new").inode();
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void after(String call, FileName name) throws FsException {
            isFailing |= call.equals("rename");
            fail();
          }

          @Override
          public void looking(FileName name) throws FsException {
            fail();
          }
        });
    assertThatThrownBy(() -> driver.mount().attempt()).hasMessageContaining("EIO");
    assertThat(driver.sourceTree()).containsEntry("new/taken", "dir 755");
    isFailing = false;
  }

  private void fail() throws FsException {
    if (isFailing) {
      throw new FsException(Errno.EIO, "the source fails");
    }
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private void mkdir() throws FsException {
    driver.mount().mkdir(moved, Driver.name("taken"), 0755, driver.caller());
  }

  private void assertDrained() throws FsException {
    driver.drainAll();
    assertThatThrownBy(this::mkdir).hasMessageContaining("EEXIST");
    assertThat(driver.tree())
        .containsEntry("new/taken", "dir 755")
        .containsEntry("new/file", "file 644 text");
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
    assertThat(driver.mount().drainStatus().failures()).isEmpty();
  }

  @Test
  void name_isNotFree() throws Exception {
    assertThatThrownBy(this::mkdir).hasMessageContaining("EIO");
    assertDrained();
  }

  @Test
  void names_areNotMissing() throws Exception {
    assertThatThrownBy(() -> driver.mount().lookup(moved, Driver.name("file")))
        .hasMessageContaining("EIO");
    assertThatThrownBy(() -> driver.mount().list(moved, 0, entry -> true))
        .hasMessageContaining("EIO");
    assertThatThrownBy(() -> driver.mount().readSymbolicLink(link)).hasMessageContaining("EIO");
    assertDrained();
    assertThat(driver.mount().readSymbolicLink(link)).hasToString("target");
  }
}
