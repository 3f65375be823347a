package io.pmfs.tier;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Locations of persistent memory for tests with the tag {@code fsdax}. */
public final class PersistentMemory {
  private PersistentMemory() {}

  /** A new directory below {@code $PMEM_DIR}; if this is not set, the test is skipped. */
  public static Path directory() throws IOException {
    String place = System.getenv("PMEM_DIR");
    assumeTrue(place != null, "needs PMEM_DIR to name a directory on a file system with DAX");
    return Files.createTempDirectory(Path.of(place), "pmfs-test-");
  }

  /** The devdax device {@code $PMEM_DEVICE}; if this is not set, the test is skipped. */
  public static Path device() {
    String device = System.getenv("PMEM_DEVICE");
    assumeTrue(
        device != null && !device.isEmpty(),
        "needs PMEM_DEVICE to name a devdax device to overwrite");
    return Path.of(device);
  }

  /** Whether the file system aligns files to 2 MiB: XFS does if it was created for that. */
  public static boolean alignsFiles() throws IOException {
    String place = System.getenv("PMEM_DIR");
    return Files.readAllLines(Path.of("/proc/self/mounts")).stream()
        .map(line -> line.split(" ", -1))
        .noneMatch(
            fields ->
                place.startsWith(fields[1])
                    && fields[2].equals("xfs")
                    && !fields[3].contains("sunit=4096"));
  }
}
