package io.pmfs.tier;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.BlockDevice;
import io.pmfs.posix.MountedFileSystem;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Every reason that status can show. */
final class DaxEvidenceTest {
  private static final BlockDevice PMEM = new BlockDevice("pmem0", true, false, false);

  private static MountedFileSystem on(@Nullable BlockDevice device, String type, String options) {
    String source = device == null ? type : "/dev/" + device.name();
    return new MountedFileSystem(type, source, List.of(options.split(",", -1)), device);
  }

  private static String refused(@Nullable Boolean attribute, @Nullable MountedFileSystem place) {
    DaxEvidence evidence = new DaxEvidence(false, attribute, place);
    assertThat(evidence.isReal()).isFalse();
    assertThat(evidence.verdict().real()).isFalse();
    assertThat(evidence.isDirect()).isEqualTo(Boolean.TRUE.equals(attribute));
    return evidence.verdict().reason();
  }

  @Test
  void verdict_mappedWithMapSync_isReal() {
    DaxEvidence evidence = new DaxEvidence(true, true, on(PMEM, "ext4", "rw,dax=always"));

    assertThat(evidence.isDirect()).isTrue();
    assertThat(evidence.verdict()).isEqualTo(new DaxVerdict(true, "ext4 on /dev/pmem0"));
  }

  @Test
  void verdict_mappedWithMapSyncAndNothingElseKnown_isReal() {
    DaxEvidence evidence = new DaxEvidence(true, null, null);

    assertThat(evidence.isDirect()).isTrue();
    assertThat(evidence.verdict()).isEqualTo(new DaxVerdict(true, "mapped with MAP_SYNC"));
  }

  @Test
  void verdict_memorySetAside_isRealAndSaysThatItIsVolatile() {
    BlockDevice device = new BlockDevice("pmem0", true, false, true);

    assertThat(new DaxEvidence(true, true, on(device, "xfs", "rw")).verdict())
        .isEqualTo(
            new DaxVerdict(
                true,
                "xfs on /dev/pmem0, memory set aside by memmap=, which is lost at power-off"));
  }

  @Test
  void verdict_virtio_isDirectWithoutMapSync() {
    BlockDevice device = new BlockDevice("pmem0", true, true, false);

    assertThat(refused(true, on(device, "ext4", "rw,dax=always")))
        .isEqualTo("DAX, but without MAP_SYNC (virtio-pmem)");
  }

  @Test
  void verdict_directOnSomethingElse_namesIt() {
    assertThat(refused(true, on(null, "virtiofs", "rw,dax")))
        .isEqualTo("DAX, but without MAP_SYNC (virtiofs)");
    assertThat(refused(true, null)).isEqualTo("DAX, but without MAP_SYNC (unknown file system)");
  }

  @ParameterizedTest
  @ValueSource(strings = {"tmpfs", "ramfs", "hugetlbfs"})
  void verdict_memoryFileSystem_isEmulated(String type) {
    assertThat(refused(false, on(null, type, "rw"))).isEqualTo("emulated: " + type);
  }

  @Test
  void verdict_fileSystemWithoutDevice_namesIt() {
    assertThat(refused(false, on(null, "overlay", "rw"))).isEqualTo("not DAX: overlay");
  }

  @Test
  void verdict_disk_isNotPersistentMemory() {
    BlockDevice disk = new BlockDevice("vda", false, true, false);

    assertThat(refused(false, on(disk, "ext4", "rw")))
        .isEqualTo("not persistent memory: ext4 on /dev/vda");
  }

  @Test
  void verdict_namespaceInAnotherMode_saysTheCommand() {
    BlockDevice sector = new BlockDevice("pmem0s", false, false, false);

    assertThat(refused(false, on(sector, "ext4", "rw")))
        .isEqualTo(
            "not DAX: the namespace of /dev/pmem0s is not in mode fsdax; create one with"
                + " ndctl create-namespace --mode=fsdax");
  }

  @ParameterizedTest
  @CsvSource({
    "'rw,relatime', without dax",
    "'rw,dax=inode', with dax=inode",
    "'rw,dax=never', with dax=never"
  })
  void verdict_memoryMountedWithoutDax_saysTheOption(String options, String how) {
    assertThat(refused(false, on(PMEM, "ext4", options)))
        .isEqualTo("not DAX: ext4 on /dev/pmem0 mounted %s; mount it with -o dax=always", how);
    assertThat(refused(null, on(PMEM, "xfs", options))).contains("mount it with -o dax=always");
  }

  @ParameterizedTest
  @ValueSource(strings = {"dax", "dax=always"})
  void verdict_mountedWithDaxInVain_pointsToTheLog(String option) {
    assertThat(refused(false, on(PMEM, "xfs", "rw," + option)))
        .isEqualTo(
            "not DAX: xfs on /dev/pmem0, although mounted with %s; see the kernel's"
                + " log for the reason",
            option);
  }

  @Test
  void verdict_mountedWithDaxAndNothingElseKnown_isUnknown() {
    assertThat(refused(null, on(PMEM, "ext4", "rw,dax=always")))
        .isEqualTo(
            "not known to be DAX: ext4 on /dev/pmem0 mounted with dax=always refuses MAP_SYNC");
  }

  @Test
  void verdict_fileSystemWithoutDax_namesThoseThatHaveIt() {
    assertThat(refused(false, on(PMEM, "f2fs", "rw")))
        .isEqualTo("not DAX: f2fs on /dev/pmem0 does not support it; use ext4 or xfs");
  }

  @Test
  void verdict_deviceOfWhichNothingIsTold_isUnknown() {
    BlockDevice device = new BlockDevice("sda", null, false, false);

    assertThat(refused(false, on(device, "ext4", "rw")))
        .isEqualTo("not DAX: ext4 on /dev/sda; /sys does not say whether it supports DAX");
  }

  @Test
  void verdict_nothingKnown_saysSo() {
    assertThat(refused(null, null))
        .isEqualTo(
            "probably not DAX: MAP_SYNC is refused, and /proc/self/mountinfo does not"
                + " show the file system");
  }
}
