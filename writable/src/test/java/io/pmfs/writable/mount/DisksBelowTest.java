package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Promise: the device numbers of file systems below the source may change. */
class DisksBelowTest {
  @TempDir Path directory;

  private final FakeCalls.Disk disk = new FakeCalls.Disk(7, "nfs4 server:/a");

  private Driver driver;

  @BeforeEach
  void open() throws Exception {
    driver = new Driver(directory);
    driver.calls.forgetBirths();
    mount("a", disk);
  }

  @AfterEach
  void close() {
    driver.close();
  }

  /** A file system with one file, below the source. */
  private void mount(String name, FakeCalls.Disk mounted) throws FsException {
    int root = driver.calls.openRoot(Driver.SOURCE);
    driver.calls.mkdir(root, Driver.name(name), 0755);
    atSource(name).disk = mounted;
    int top = driver.calls.openDirectory(root, Driver.name(name));
    int flags = OutputCalls.O_CREAT | OutputCalls.O_WRONLY;
    int file = driver.calls.open(top, Driver.name("file"), flags, 0644);
    driver.calls.write(file, Driver.bytes("old"), 0);
    driver.calls.close(file);
    driver.calls.close(top);
    driver.calls.close(root);
  }

  private FakeCalls.Node atSource(String name) {
    return Objects.requireNonNull(driver.calls.sourceRoot().children.get(Driver.name(name)));
  }

  private void drained() throws FsException {
    driver.drainAll();
    assertThat(driver.mount().drainStatus().conflicts()).isZero();
  }

  @Test
  void changes_ofADiskThatGetsAnotherNumber_reachIt() throws Exception {
    driver.put("a/file", "new");
    driver.chmod("a", 0700);
    driver.put("a/more", "more");
    disk.device = 8;
    assertThat(driver.read("a/file")).isEqualTo("new");
    drained();
    assertThat(driver.sourceTree())
        .containsEntry("a", "dir 700")
        .containsEntry("a/file", "file 644 new")
        .containsEntry("a/more", "file 644 more");
  }

  @Test
  void inodeNumber_afterAReboot_isTheSame() throws Exception {
    long before = driver.node("a/file").inode();
    disk.device = 8;
    driver.remount();
    assertThat(driver.node("a/file").inode()).isEqualTo(before);
  }

  /** As a daemon left it that knew device numbers only. */
  @Test
  void changes_ofAStateWithDeviceNumbers_reachTheDisk() throws Exception {
    disk.names = List.of();
    driver.put("a/file", "new");
    long before = driver.node("a/file").inode();
    driver.end();
    disk.names = List.of("nfs4 server:/a");
    driver.begin();
    disk.device = 8;
    driver.restart();
    assertThat(driver.node("a/file").inode()).isEqualTo(before);
    drained();
    assertThat(driver.sourceTree()).containsEntry("a/file", "file 644 new");
  }

  /** The kernel gives the number of a disk that is gone to the next one. */
  @Test
  void diskThatGetsTheNumberOfAnotherOne_isNotThatOne() throws Exception {
    long before = driver.node("a/file").inode();
    driver.put("a/file", "new");
    FakeCalls.Disk other = new FakeCalls.Disk(7, "nfs4 server:/b");
    disk.device = 8;
    mount("b", other);
    atSource("b").children.put(Driver.name("file"), sameNumber(other));
    assertThat(driver.node("b/file").inode()).isNotEqualTo(before);
    assertThat(driver.read("b/file")).isEqualTo("theirs");
    driver.remount();
    assertThat(driver.node("a/file").inode()).isEqualTo(before);
    drained();
    assertThat(driver.sourceTree())
        .containsEntry("a/file", "file 644 new")
        .containsEntry("b/file", "file 644 theirs");
  }

  /** As two file systems of one image, or of FUSE, have. */
  @Test
  void disksWithOneName_areNotMixed() throws Exception {
    FakeCalls.Disk copy = new FakeCalls.Disk(8, "ext4 id on b", "ext4 id");
    disk.names = List.of("ext4 id on a", "ext4 id");
    mount("b", copy);
    atSource("b").children.put(Driver.name("file"), sameNumber(copy));
    long first = driver.node("a/file").inode();
    long second = driver.node("b/file").inode();
    assertThat(second).isNotEqualTo(first);
    disk.device = 8;
    copy.device = 7;
    driver.remount();
    assertThat(driver.node("b/file").inode()).isEqualTo(second);
    assertThat(driver.node("a/file").inode()).isEqualTo(first);
  }

  /** Another file with the inode number and, as nothing has one here, the birth of a/file. */
  private FakeCalls.Node sameNumber(FakeCalls.Disk of) {
    FakeCalls.Node like = atSource("a").children.get(Driver.name("file"));
    FakeCalls.Node made =
        new FakeCalls.Node(Objects.requireNonNull(like).number, like.mode, like.birth);
    made.isSource = true;
    made.root = Driver.SOURCE;
    made.disk = of;
    made.content = "theirs".getBytes(StandardCharsets.ISO_8859_1);
    return made;
  }
}
