package io.pmfs.cli.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.daemon.report.MountReport;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class MountHoldersTest {
  private static final Path MOUNTPOINT = Path.of("/mnt/d");
  private static final int SELF = 9;

  @TempDir private Path root;

  @Test
  void of_eachKindOfUse_isNamed() throws Exception {
    link(1, "cwd", "/mnt/d/sub");
    link(2, "exe", "/mnt/d/bin/tool");
    link(3, "root", "/mnt/d");
    link(4, "fd/3", "/mnt/d/x y.jpg");
    Files.writeString(
        Files.createDirectories(root.resolve("proc/5")).resolve("maps"),
        """
        7f00-7f01 r--s 00000000 00:2a 5    /etc/passwd
        7f02-7f03 r--s 00000000 00:2a 5    /mnt/d/shard.tar
        """);
    link(6, "cwd", "/mnt/data");
    link(7, "fd/0", "/mnt/dd/x");

    assertThat(MountHolders.of(MOUNTPOINT, root, SELF))
        .containsExactlyInAnyOrder(
            "pid 1 (?) has /mnt/d/sub as its working directory",
            "pid 2 (?) has /mnt/d/bin/tool as its exe",
            "pid 3 (?) has /mnt/d as its root",
            "pid 4 (?) has /mnt/d/x y.jpg open",
            "pid 5 (?) has /mnt/d/shard.tar mapped");
  }

  @Test
  void of_realProcess_isFound(@TempDir Path directory) throws Exception {
    Path real = directory.toRealPath();
    try (RandomAccessFile open = new RandomAccessFile(real.resolve("f").toFile(), "rw")) {
      assertThat(open.length()).isZero();
      assertThat(MountHolders.of(real, Path.of("/"), SELF))
          .anyMatch(
              l ->
                  l.startsWith("pid " + ProcessHandle.current().pid() + " (java)")
                      && l.endsWith("has " + real.resolve("f") + " open"));
    }
  }

  /** Process 9 is the command, 8 the pmfs script that started it, 7 the user's shell. */
  @Test
  void of_ownProcesses_areLeftOutButNotTheCallersShell() throws Exception {
    for (int pid : new int[] {7, 8, 9}) {
      link(pid, "cwd", "/mnt/d");
    }
    process(9, 8, "java", "-cp", "x", "io.pmfs.cli.Main");
    process(8, 7, "/usr/bin/env-bash (pmfs) x", "--", "/usr/lib/pmfs/bin/pmfs-run", "--keeper");
    process(7, 1, "bash", "/home/ada/pmfs/job.sh");

    assertThat(MountHolders.of(MOUNTPOINT, root, SELF))
        .containsExactly("pid 7 (?) has /mnt/d as its working directory");
  }

  @Test
  void of_anotherCommandOfPmfs_isNamed() throws Exception {
    link(5, "cwd", "/mnt/d");
    process(5, 1, "bash", "/usr/bin/pmfs", "status", "--watch");

    assertThat(MountHolders.of(MOUNTPOINT, root, SELF)).hasSize(1);
  }

  /** A file on this machine's disk stands for one in a detached mount. */
  @Test
  void ofDetached_opensAndMappings_areCountedByFile(@TempDir Path disk) throws Exception {
    Path file = Files.writeString(disk.resolve("a.jpg"), "");
    long number = ((Number) Files.getAttribute(file, "unix:dev")).longValue();
    int major = (int) (number >>> 8) & 0xfff;
    int minor = (int) ((number & 0xff) | ((number >>> 12) & 0xfff00));
    String written = "%02x:%02x".formatted(major, minor);
    // This command inherits the descriptors of its caller.
    for (int pid : new int[] {1, 2, 3, SELF}) {
      link(pid, "fd/5", file.toString());
      write(pid, "fdinfo/5", "pos:\t0\nflags:\t0100000\nmnt_id:\t77\n");
      write(pid, "mountinfo", "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    }
    write(2, "maps", "7f00-7f01 r--s 00000000 " + written + " 5    /shard.tar\n");
    write(3, "mountinfo", "77 1 0:9 / /elsewhere rw - ext4 /dev/sda1 rw\n");

    MountReport.Detached seen = MountHolders.ofDetached(major + ":" + minor, root, SELF);

    assertThat(seen.openFiles()).as("a.jpg twice, shard.tar").isEqualTo(2);
    assertThat(seen.openBy())
        .containsExactlyInAnyOrder(
            "pid 1 (?) has " + file + " open", "pid 2 (?) has /shard.tar open");
    assertThat(MountHolders.ofDetached("0:4711", root, SELF).openFiles()).isZero();
  }

  private void write(int pid, String name, String text) throws Exception {
    Path file = root.resolve("proc/" + pid).resolve(name);
    Files.createDirectories(file.resolveSibling(""));
    Files.writeString(file, text);
  }

  @Test
  void of_withoutProc_isEmpty() {
    assertThat(MountHolders.of(MOUNTPOINT, root, SELF)).isEmpty();
  }

  private void process(int pid, int parent, String... words) throws Exception {
    Path process = Files.createDirectories(root.resolve("proc/" + pid));
    Files.writeString(process.resolve("cmdline"), String.join("\0", words) + "\0");
    Files.writeString(process.resolve("stat"), "%d (%s) S %d 1 1".formatted(pid, words[0], parent));
  }

  private void link(int pid, String name, String target) throws Exception {
    Path link = root.resolve("proc/" + pid).resolve(name);
    Files.createDirectories(link.resolveSibling(""));
    Files.createSymbolicLink(link, Path.of(target));
  }
}
