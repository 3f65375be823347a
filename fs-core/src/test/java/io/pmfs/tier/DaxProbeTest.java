package io.pmfs.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.posix.BlockDevice;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A machine simulated in a directory: /proc and /sys for the probed directory. */
final class DaxProbeTest {
  @TempDir private Path temporary;
  private Path directory;
  private Path root;

  @BeforeEach
  void makeDirectories() throws IOException {
    directory = Files.createDirectory(temporary.resolve("probed"));
    root = Files.createDirectories(temporary.resolve("root/proc/self")).resolve("../..");
  }

  /** The number of the file system's device in the format of proc(5). */
  private String device() throws IOException {
    long number = ((Number) Files.getAttribute(directory, "unix:dev")).longValue();
    return ((number >>> 8) & 0xfff) + ":" + ((number & 0xff) | ((number >>> 12) & 0xffffff00L));
  }

  private void mountinfo(String... lines) throws IOException {
    Files.write(root.resolve("proc/self/mountinfo"), List.of(lines));
  }

  /** A device in sysfs, and the link by which it is found. */
  private void sysfs(String place, String queue, String dax) throws IOException {
    Path device = Files.createDirectories(root.resolve("sys/devices/" + place));
    Files.createDirectories(root.resolve("sys/devices/" + queue));
    Files.writeString(root.resolve("sys/devices/" + queue + "/dax"), dax);
    Path links = Files.createDirectories(root.resolve("sys/dev/block"));
    Files.createSymbolicLink(links.resolve(device()), device.toRealPath());
  }

  private DaxEvidence probe() throws IOException {
    return DaxProbe.probe(directory, DaxFiles.NONE, root);
  }

  @Test
  void probe_ordinaryDirectory_isNotRealAndLeavesNothing() throws Exception {
    DaxEvidence evidence = DaxProbe.probe(directory, DaxFiles.NONE, Path.of("/"));

    assertThat(evidence.isReal()).isFalse();
    assertThat(evidence.attribute()).isNull();
    assertThat(Objects.requireNonNull(evidence.fileSystem()).type())
        .isEqualTo(Files.getFileStore(directory).type());
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void probe_missingDirectory_fails() {
    assertThatThrownBy(() -> DaxProbe.probe(directory.resolve("none"), DaxFiles.NONE, root))
        .isInstanceOf(IOException.class);
  }

  @Test
  void probe_pmemWithoutDax_isFoundByItsNumber() throws Exception {
    mountinfo(
        "1 0 1:1 / / rw,relatime - ext4 /dev/sda1 rw",
        "nonsense",
        "2 1 %s / /mnt/p\\040m rw,noatime shared:1 - xfs /dev/root rw,dax=inode"
            .formatted(device()));
    sysfs("LNXSYSTM:00/ndbus0/region0/pmem1", "LNXSYSTM:00/ndbus0/region0/pmem1/queue", "1\n");

    assertThat(probe().verdict().reason())
        .isEqualTo(
            "not DAX: xfs on /dev/pmem1 mounted with dax=inode; mount it with -o dax=always");
  }

  @Test
  void probe_partitionOfVirtioPmem_hasTheQueueOfItsDisk() throws Exception {
    mountinfo("2 1 %s / /mnt rw - ext4 /dev/pmem0p1 rw".formatted(device()));
    sysfs("pci0000:00/virtio1/ndbus0/pmem0/pmem0p1", "pci0000:00/virtio1/ndbus0/pmem0/queue", "1");

    BlockDevice found =
        Objects.requireNonNull(Objects.requireNonNull(probe().fileSystem()).device());
    assertThat(found).isEqualTo(new BlockDevice("pmem0p1", true, true, false));
    assertThat(found.isPmem()).isTrue();
  }

  @Test
  void probe_memmap_isSeenByItsPlace() throws Exception {
    mountinfo("2 1 %s / /mnt rw - ext4 /dev/pmem0 rw".formatted(device()));
    sysfs("platform/e820_pmem/ndbus0/pmem0", "platform/e820_pmem/ndbus0/pmem0/queue", "0\n");

    assertThat(Objects.requireNonNull(probe().fileSystem()).device())
        .isEqualTo(new BlockDevice("pmem0", false, false, true));
  }

  @Test
  void probe_withoutSysfs_knowsTheSourceOnly() throws Exception {
    mountinfo("2 1 %s / /mnt rw - ext4 /dev/vda1 rw".formatted(device()));

    assertThat(probe().verdict().reason()).isEqualTo("not DAX: ext4 on /dev/vda1");
  }

  @Test
  void probe_withoutItsMountInTheTable_isUnknown() throws Exception {
    mountinfo("1 0 1:1 / / rw,relatime - ext4 /dev/sda1 rw");
    assertThat(probe().fileSystem()).isNull();

    Files.delete(root.resolve("proc/self/mountinfo"));
    assertThat(probe().fileSystem()).isNull();
  }
}
