package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class DeviceForAllTest {
  @TempDir Path directory;

  private Path device;
  private Path holders;

  @BeforeEach
  void make() throws IOException {
    device = Files.createFile(directory.resolve("device"));
    holders = directory.resolve("holders");
    Files.setPosixFilePermissions(device, PosixFilePermissions.fromString("rw-------"));
  }

  private DeviceForAll open() {
    return new DeviceForAll(device, holders);
  }

  private int mode() {
    return Posix.stat(device.toString()).permissions();
  }

  @Test
  void close_ofTheFirst_leavesTheSecondWhatItNeeds() {
    DeviceForAll first = open();
    DeviceForAll second = open();
    assertThat(mode()).isEqualTo(0666);
    first.close();
    assertThat(mode()).isEqualTo(0666);
    second.close();
    assertThat(mode()).isEqualTo(0600);
  }

  @Test
  void open_afterAKilledProcess_givesBackWhatThatOneFound() throws IOException {
    open();
    Path left;
    try (var files = Files.list(holders)) {
      left = files.filter(Scratch::isOne).findFirst().orElseThrow();
    }
    // The number and the start of no process that runs.
    Path killed = holders.resolve(TestRun.PREFIX + TestRun.place() + ".4999999.1.1");
    Files.move(left, killed);
    open().close();
    assertThat(mode()).isEqualTo(0600);
    assertThat(killed).doesNotExist();
  }
}
