package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The disk that other tests believe to fail does fail, and in the way that they believe. */
final class FaultyDiskIT {
  private static final byte[] CONTENT = new byte[100_000];

  private Scratch scratch;
  private FaultyDisk disk;

  @BeforeEach
  void create() {
    Machine.requireRoot();
    scratch = new Scratch();
    disk = FaultyDisk.create(scratch, "disk", "16M");
    Posix.write(file("kept"), 0, CONTENT);
  }

  @AfterEach
  void remove() {
    if (disk != null) {
      disk.close();
    }
    if (scratch != null) {
      scratch.close();
    }
  }

  private String file(String name) {
    return disk.directory().resolve(name).toString();
  }

  private String write(String name) {
    return Posix.outcome(
        Posix.withFile(
            file(name),
            Posix.O_WRONLY | Posix.O_CREAT,
            fd -> Posix.result(Posix.LIBC.pwrite(fd, CONTENT, CONTENT.length, 0))));
  }

  private String read(String name) {
    return Posix.outcome(Posix.readByte(file(name)));
  }

  @Test
  void fill_thenFree_refusesAndThenTakesWrites() {
    disk.fill();
    assertThat(write("new")).isEqualTo("ENOSPC");
    assertThat(read("kept")).isEqualTo("ok");
    disk.free();
    assertThat(write("new")).isEqualTo("ok");
  }

  @Test
  void turnReadOnly_untilRepaired_refusesWritesAlone() {
    disk.turnReadOnly();
    assertThat(write("new")).isEqualTo("EROFS");
    assertThat(read("kept")).isEqualTo("ok");
    disk.repair();
    assertThat(write("new")).isEqualTo("ok");
  }

  @Test
  void shutDown_untilRepaired_answersEioToAll() {
    Command.run("sync", "-f", disk.directory().toString()).expect(0);
    disk.shutDown();
    assertThat(read("kept")).isEqualTo("EIO");
    assertThat(write("new")).isEqualTo("EIO");
    disk.repair();
    assertThat(Posix.pread(file("kept"), CONTENT.length, 0)).isEqualTo(CONTENT);
    assertThat(write("new")).isEqualTo("ok");
  }

  @Test
  void failDevice_thenRecover_answersEioAndThenTheSameBytes() {
    Machine.dropCaches();
    disk.failDevice();
    assertThat(read("kept")).isEqualTo("EIO");
    disk.recoverDevice();
    assertThat(Posix.pread(file("kept"), CONTENT.length, 0)).isEqualTo(CONTENT);
    assertThat(write("new")).isEqualTo("ok");
  }

  @Test
  void failDevice_underAWrite_turnsReadOnlyUntilRepaired() {
    Machine.dropCaches();
    disk.failDevice();
    write("lost");
    Command.run("sync", "-f", disk.directory().toString());
    disk.recoverDevice();
    assertThat(write("new")).isEqualTo("EROFS");
    disk.repair();
    assertThat(Posix.pread(file("kept"), CONTENT.length, 0)).isEqualTo(CONTENT);
    assertThat(write("new")).isEqualTo("ok");
  }

  @Test
  void replace_byANewDisk_isEmptyAndWritable() {
    disk.replace();
    assertThat(read("kept")).isEqualTo("ENOENT");
    assertThat(write("new")).isEqualTo("ok");
  }

  @Test
  void close_leavesNeitherMountNorDevice() {
    Path directory = disk.directory();
    String image = scratch.root() + "/disk.img";
    disk.close();
    assertThat(Mounts.at(directory)).isFalse();
    assertThat(Command.run("losetup", "--associated", image).expect(0).out()).isEmpty();
    disk = FaultyDisk.create(scratch, "disk", "16M");
  }
}
