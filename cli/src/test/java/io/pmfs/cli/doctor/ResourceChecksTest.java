package io.pmfs.cli.doctor;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ResourceChecksTest {
  @TempDir private Path root;

  @Test
  void limits_ofFilesAndLockedMemory_areTheHardOnes() throws Exception {
    write(
        "proc/self/limits",
        """
        Limit                     Soft Limit           Hard Limit           Units
        Max locked memory         65536                8388608              bytes
        Max open files            1024                 2048                 files
        """);

    assertThat(find("open files").text()).isEqualTo("2048: raise it to 4096 (ulimit -Hn)");
    assertThat(find("open files").grade()).isEqualTo(Finding.Grade.WARN);
    assertThat(find("locked memory").text()).startsWith("8.0 MiB");
  }

  @Test
  void limits_unreadable_areNotKnown() throws Exception {
    write("proc/self/limits", "Max open files\n");

    assertThat(find("open files").grade()).isEqualTo(Finding.Grade.WARN);
    assertThat(find("open files").text()).startsWith("limit not known");
  }

  @Test
  void memory_withoutGroup_hasNoLimit() throws Exception {
    assertThat(find("cgroup memory").grade()).isEqualTo(Finding.Grade.OK);
    write("proc/self/cgroup", "0::/\n");
    assertThat(find("cgroup memory").text()).isEqualTo("no limit");
  }

  @Test
  void memory_ofSecondVersion_isTheLeastOnTheWayUp() throws Exception {
    write("proc/self/cgroup", "0::/job/step\n");
    write("sys/fs/cgroup/job/step/memory.max", "max\n");
    write("sys/fs/cgroup/job/memory.max", "268435456\n");

    assertThat(find("cgroup memory").grade()).isEqualTo(Finding.Grade.WARN);
    assertThat(find("cgroup memory").text())
        .startsWith("256 MiB for all processes")
        .contains("PMFS_HEAP");
  }

  @Test
  void memory_ofFirstVersion_isReadToo() throws Exception {
    write("proc/self/cgroup", "12:cpu,cpuacct:/\n4:memory:/slurm/job_1\n1:name=systemd:/\n");
    write("sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes", "1073741824\n");
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");

    assertThat(find("cgroup memory").grade()).isEqualTo(Finding.Grade.OK);
    assertThat(find("cgroup memory").text()).startsWith("1.0 GiB for all");
  }

  @Test
  void memory_ofAGroupOutsideOfTheHierarchy_endsTheSearch() throws Exception {
    write("proc/self/cgroup", "0::/../../../../elsewhere\n");

    assertThat(find("cgroup memory").text()).isEqualTo("no limit");
  }

  @Test
  void clock_isSeenToBeSet() throws Exception {
    assertThat(find("clock").grade()).isEqualTo(Finding.Grade.WARN);
    write("run/systemd/timesync/synchronized", "");
    assertThat(find("clock").grade()).isEqualTo(Finding.Grade.OK);
  }

  private Finding find(String subject) {
    return new ResourceChecks(root)
        .run().stream().filter(f -> f.subject().equals(subject)).findFirst().orElseThrow();
  }

  private void write(String path, String text) throws IOException {
    Path file = root.resolve(path);
    Files.createDirectories(file.resolveSibling(""));
    Files.writeString(file, text, UTF_8);
  }
}
