package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.DrainStatus.Failure;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Promise: a change that the source refuses for good is the only one that it does not get, and the
 * mount shows what the source has instead.
 */
class RefusedTest {
  private static final int OTHERS_GROUP = 77;
  private static final Instant TIME = Instant.ofEpochSecond(1_600_000_000);

  @TempDir Path directory;

  private Driver driver;

  @BeforeEach
  void open() throws Exception {
    driver = new Driver(directory);
    driver.put("a", "content");
    driver.drainAll();
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private void refuse(String refused) {
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals(refused)) {
              throw new FsException(Errno.EPERM, refused);
            }
          }
        });
  }

  private void set(
      @Nullable Integer mode,
      @Nullable Integer uid,
      @Nullable Integer gid,
      @Nullable Instant modified)
      throws Exception {
    driver
        .mount()
        .setAttributes(
            driver.node("a").inode(),
            new NewAttributes(mode, uid, gid, null, modified, modified, 0, false),
            driver.caller());
  }

  private FakeCalls.Node source() {
    return Objects.requireNonNull(driver.calls.sourceRoot().children.get(Driver.name("a")));
  }

  private void assertGivenUpOnce() {
    assertThat(driver.mount().drainStatus().failures())
        .extracting(Failure::path)
        .containsExactly("a");
    assertThat(driver.mount().drainStatus().refused()).isOne();
  }

  private void assertMountIsSource() throws Exception {
    Attributes shown = driver.node("a").attributes();
    assertThat(shown.mode()).isEqualTo(source().mode);
    assertThat(shown.uid()).isEqualTo(source().uid);
    assertThat(shown.gid()).isEqualTo(source().gid);
    assertThat(shown.modificationTime()).isEqualTo(source().modified);
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  @Test
  void changesBesideARefusedOne_areMade() throws Exception {
    refuse("chown");
    set(0600, null, null, null);
    set(null, null, OTHERS_GROUP, null);
    set(null, null, null, TIME);
    driver.put("later", "");
    driver.drainAll();
    assertThat(source().mode & 07777).isEqualTo(0600);
    assertThat(source().modified).isEqualTo(TIME);
    assertThat(source().gid).isZero();
    assertGivenUpOnce();
    assertMountIsSource();
    assertThat(driver.sourceTree()).containsKey("later");
  }

  @Test
  void contentBehindARefusedChange_arrives() throws Exception {
    refuse("chmod");
    set(0600, null, null, null);
    set(null, null, OTHERS_GROUP, null);
    driver.append("a", " and more");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 content and more");
    assertThat(source().gid).isEqualTo(OTHERS_GROUP);
    assertMountIsSource();
  }

  @Test
  void changeAfterTheRefusal_isShown() throws Exception {
    refuse("chown");
    set(null, null, OTHERS_GROUP, null);
    driver.drainAll();
    refuse("nothing");
    set(null, null, OTHERS_GROUP, null);
    driver.drainAll();
    assertThat(source().gid).isEqualTo(OTHERS_GROUP);
    assertMountIsSource();
  }

  @Test
  void ownerOfAFileThatGrew_arrives() throws Exception {
    driver.append("a", "+");
    set(null, 5, OTHERS_GROUP, null);
    driver.drainAll();
    assertThat(source().uid).isEqualTo(5);
    assertThat(source().gid).isEqualTo(OTHERS_GROUP);
    assertMountIsSource();
  }
}
