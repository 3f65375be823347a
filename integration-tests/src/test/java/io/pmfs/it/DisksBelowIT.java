package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Another file system is mounted below the source of a writable mount. */
final class DisksBelowIT {
  @Installed(byRoot = true)
  private Installation pmfs;

  private Path source;
  private Path disk;
  private Path image;

  @BeforeEach
  void makeSource() throws IOException {
    Machine.requireCommand("mkfs.ext4");
    Machine.requireLoopDevice();
    source = pmfs.directory("source");
    disk = Files.createDirectory(source.resolve("disk"));
    image = image("image");
    Command.run("mkfs.ext4", "-q", "-F", image.toString()).expect(0);
    mountDisk();
    Files.writeString(disk.resolve("file"), "as it was\n");
  }

  @AfterEach
  void unmountDisk() {
    Command.run("umount", "-l", disk.toString());
  }

  private Path image(String name) {
    Path made = pmfs.scratch().root().resolve(name);
    Command.run("truncate", "-s", "32M", made.toString()).expect(0);
    return made;
  }

  private void mountDisk() {
    // The kernel frees the device when the mount ends, also that of a killed test.
    try (LoopDevice device = LoopDevice.of(image)) {
      Command.run("mount", device.path().toString(), disk.toString()).expect(0);
    }
  }

  private static Command shell(MountedPmfs mount, String script) {
    return Command.run("sh", "-euc", "cd -- \"$1\"; " + script, "-", mount.mountpoint().toString());
  }

  private String device() {
    return Command.run("stat", "-c", "%d", disk.toString()).expect(0).out();
  }

  @Test
  void changes_leftForADisk_arriveThoughItHasAnotherDeviceNumber() throws IOException {
    MountedPmfs mount = pmfs.mount(source, "--writable", "--allow-other", "--drain-rate", "1M");
    String number = shell(mount, "stat -c %i disk/file").expect(0).out();
    shell(
            mount,
            "head -c 20M /dev/urandom >large; echo more >>disk/file; chmod 700 disk;"
                + " mkdir disk/d; echo new >disk/d/new")
        .expect(0);
    pmfs.run("umount", "--no-drain", mount.mountpoint().toString()).expect(4);
    mount.ended();
    assertThat(disk.resolve("file")).hasContent("as it was\n");

    String before = device();
    Command.run("umount", disk.toString()).expect(0);
    try (LoopDevice taken = LoopDevice.of(image("other"))) {
      mountDisk();
      assertThat(device()).as("with %s taken", taken.path()).isNotEqualTo(before);
    }
    try (MountedPmfs again = pmfs.mount(source, "--writable", "--allow-other")) {
      assertThat(shell(again, "stat -c %i disk/file").expect(0).out()).isEqualTo(number);
      shell(again, "cat disk/file disk/d/new; stat -c %a disk").expect(0);
      pmfs.run("drain", again.mountpoint().toString()).expect(0);
    }
    assertThat(disk.resolve("file")).hasContent("as it was\nmore\n");
    assertThat(disk.resolve("d/new")).hasContent("new\n");
    assertThat(Command.run("stat", "-c", "%a", disk.toString()).out()).isEqualTo("700\n");
  }
}
