package io.pmfs.posix;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class AvailableMemoryTest {
  private static final long MIB = 1 << 20;

  @TempDir private Path root;

  private void write(String path, String text) throws IOException {
    Path file = root.resolve(path);
    Files.createDirectories(file.resolveSibling(""));
    Files.writeString(file, text, UTF_8);
  }

  private void machine(long mebibytes) throws IOException {
    write("proc/meminfo", "MemTotal: 1 kB\nMemAvailable:   " + mebibytes * 1024 + " kB\n");
  }

  private long mebibytes(long reader) {
    return new AvailableMemory(root).bytes(reader) / MIB;
  }

  @Test
  void thisMachine_hasSome() {
    assertThat(AvailableMemory.HERE.bytes(0)).isBetween(16 * MIB, 1L << 50);
    assertThat(AvailableMemory.HERE.bytes(ProcessHandle.current().pid()))
        .isBetween(16 * MIB, 1L << 50);
  }

  @Test
  void nothingKnown_isUnlimited() {
    assertThat(new AvailableMemory(root).bytes(7)).isEqualTo(MemoryGroup.UNLIMITED);
  }

  @Test
  void version2_leavesWhatIsFreeOrHoldsPagesOfFiles_inTheSmallestGroup() throws IOException {
    machine(1000);
    write("proc/7/cgroup", "0::/job/step\n");
    write("sys/fs/cgroup/job/step/memory.max", "max\n");
    write("sys/fs/cgroup/job/memory.max", 800 * MIB + "\n");
    write("sys/fs/cgroup/job/memory.current", 700 * MIB + "\n");
    write(
        "sys/fs/cgroup/job/memory.stat",
        "anon %d\nfile %d\nactive_file %d\ninactive_file %d\n"
            .formatted(400 * MIB, 300 * MIB, 100 * MIB, 150 * MIB));
    assertThat(mebibytes(7)).isEqualTo(350);
  }

  @Test
  void version1_isReadToo_alsoWithoutItsFigures() throws IOException {
    machine(1000);
    write("proc/7/cgroup", "4:memory:/slurm/job\n1:name=systemd:/\n0::/\n");
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write("sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", 600 * MIB + "\n");
    assertThat(mebibytes(7)).isEqualTo(600);
    write("sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", 590 * MIB + "\n");
    write(
        "sys/fs/cgroup/memory/slurm/job/memory.stat",
        "active_file 1\ntotal_active_file %d\ntotal_inactive_file %d\n"
            .formatted(2 * MIB, 3 * MIB));
    assertThat(mebibytes(7)).isEqualTo(15);
  }

  /** Names of groups are their owners' choice. */
  @Test
  void groupWhoseNameIsNoPath_doesNotCount() throws IOException {
    machine(1000);
    write("proc/7/cgroup", "0::/a\0b\n");
    assertThat(mebibytes(7)).isEqualTo(1000);
  }

  @Test
  void groupWhoseNameIsNotText_countsWithThoseAboveIt() throws IOException {
    machine(1000);
    write("sys/fs/cgroup/job/memory.max", 300 * MIB + "\n");
    write("proc/7/cgroup", "");
    Files.writeString(root.resolve("proc/7/cgroup"), "0::/job/\u00e5\n", ISO_8859_1);
    assertThat(mebibytes(7)).isEqualTo(300);
  }

  @Test
  void readerThatIsUnknownOrGone_hasWhatTheMachineHas() throws IOException {
    machine(1000);
    write("proc/7/cgroup", "0::/job\n");
    write("sys/fs/cgroup/job/memory.max", 300 * MIB + "\n");
    assertThat(mebibytes(7)).isEqualTo(300);
    assertThat(mebibytes(0)).isEqualTo(1000);
    assertThat(mebibytes(8)).isEqualTo(1000);
    machine(200);
    assertThat(mebibytes(7)).isEqualTo(200);
  }
}
