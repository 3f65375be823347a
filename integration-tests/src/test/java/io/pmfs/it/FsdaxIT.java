package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Mounts with a tier on a file system with DAX, which the environment variable PMEM_DIR names. */
@Tag("fsdax")
final class FsdaxIT {
  private static final int MIB = 1 << 20;

  private Installation pmfs;
  private Path memory;
  private Dataset dataset;

  @BeforeEach
  void install() throws IOException {
    String place = System.getenv("PMEM_DIR");
    assumeTrue(place != null, "needs PMEM_DIR to name a directory on a file system with DAX");
    Machine.requireFuse();
    Machine.requireRoot();
    pmfs = new Installation();
    memory = Files.createTempDirectory(Path.of(place), "pmfs-it-");
    dataset = Dataset.create(pmfs.directory("source"), 20_000, 5 * MIB + 1, 3000, 2 * MIB);
  }

  @AfterEach
  void remove() {
    if (pmfs != null) {
      pmfs.close();
    }
    if (memory != null) {
      Faults.delete(memory);
    }
  }

  private MountedPmfs mount(String... options) {
    return mountOn(memory.toString(), options);
  }

  private MountedPmfs mountOn(String place, String... options) {
    String[] all =
        Stream.concat(Stream.of("--tier", "pm:" + place), Stream.of(options))
            .toArray(String[]::new);
    return pmfs.mount(Duration.ofMinutes(9), dataset.root(), all);
  }

  private Path copy(int size) throws IOException {
    return Installation.files(memory).stream()
        .filter(file -> file.toString().contains("/copies/") && file.toFile().length() == size)
        .findFirst()
        .orElseThrow();
  }

  /** Passthrough from the first copy on, small ones included; nothing is in a bundle. */
  @Test
  void auto_onMemory_isPassthroughAtOnce() throws IOException {
    try (MountedPmfs mount = mount("--require-dax")) {
      Status fresh = mount.status();
      assertThat(fresh.flag("tiers.0.dax.real")).isTrue();
      assertThat(fresh.text("tiers.0.dax.reason")).containsPattern("^(ext4|xfs) on /dev/pmem");
      assertThat(fresh.text("readMode")).isEqualTo("passthrough");
      assertThat(fresh.text("readModeReason")).contains("mapped memory");
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(4);
      assertThat(copy(3000)).isNotEmptyFile();
      Machine.dropCaches();
      long asked = mount.status().number("reads.requests");
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().number("reads.requests")).as("read by the kernel").isEqualTo(asked);
    }
  }

  /** What the daemon answers, it answers from the mapping; a copy that is cut short is no error. */
  @Test
  void pageCache_onMemory_isRightAlsoWhenACopyIsCutShort() throws IOException {
    try (MountedPmfs mount = mount("--read-mode", "page-cache")) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(4);
      Machine.dropCaches();
      dataset.assertEqualBelow(mount.mountpoint());
      String maps = Files.readString(Path.of("/proc/" + mount.pid() + "/maps"));
      assertThat(maps).as("the daemon maps the copy").contains(copy(5 * MIB + 1).toString());
      Faults.truncate(copy(5 * MIB + 1), MIB);
      Machine.dropCaches();
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().number("reads.errors")).isZero();
      assertThat(mount.status().number("staging.mismatches")).isPositive();
    }
  }

  /** Copies are in the device's memory alone, which the next daemon maps again. */
  @Test
  void pool_onADevice_isRealAndKeepsItsCopies() {
    String device = System.getenv("PMEM_DEVICE");
    assumeTrue(
        device != null && !device.isEmpty(), "needs PMEM_DEVICE to name a devdax device to format");
    try (MountedPmfs mount = mountOn(device, "--require-dax", "--format")) {
      assertThat(mount.status().flag("tiers.0.dax.real")).isTrue();
      assertThat(mount.status().text("tiers.0.dax.reason")).startsWith("dax device");
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(4);
    }
    try (MountedPmfs mount = mountOn(device, "--require-dax")) {
      Machine.dropCaches();
      dataset.assertEqualBelow(mount.mountpoint());
      Status status = mount.status();
      assertThat(status.number("tiers.0.copies")).isEqualTo(4);
      assertThat(status.number("sourceOperations.reads")).isZero();
      assertThat(status.number("staging.mismatches")).isZero();
    }
  }
}
