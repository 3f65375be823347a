package io.pmfs.fuse.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.tier.PersistentMemory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The size of the kernel's mappings of pools on persistent memory, 2 MiB or a page, determined from
 * faults: smaps(5) does not count such memory.
 */
@Tag("fsdax")
final class PoolMappingTest {
  private static final int MIB = 1 << 20;
  private static final int SIZE = 64 * MIB;

  /** One for each 2 MiB, and some that the JVM may cause; there would be 16,384 for pages. */
  private static final long FEW = 4L * SIZE / (2 * MIB);

  @Test
  void poolOnFsdax_isMappedInPiecesOf2MiB() throws Exception {
    Path directory = PersistentMemory.directory();
    assumeTrue(
        PersistentMemory.alignsFiles(),
        "XFS aligns files to 2 MiB only if it was made with mkfs.xfs -d su=2m,sw=1");
    try {
      // The next allocation starts where this one ends.
      Files.write(directory.resolve("small"), new byte[5000]);
      Path path = directory.resolve("a.pool");
      PoolFile.create(path, SIZE);
      assertMappedInPiecesOf2MiB(path);
    } finally {
      Shell.run(directory, "rm -rf \"$PWD\"");
    }
  }

  @Test
  void poolOnADevice_isMappedInPiecesOf2MiB() throws Exception {
    assertMappedInPiecesOf2MiB(PersistentMemory.device());
  }

  private static void assertMappedInPiecesOf2MiB(Path path) throws IOException {
    try (PoolFile pool = PoolFile.open(path)) {
      assertThat(pool.dax().real()).isTrue();
      assertThat(PageFaults.ofWriting(pool.slice(0, SIZE))).as("faults of writing").isLessThan(FEW);
    }
    try (PoolFile pool = PoolFile.open(path)) {
      assertThat(PageFaults.ofReading(pool.slice(0, SIZE))).as("faults of reading").isLessThan(FEW);
    }
  }

  /** Without huge pages: otherwise the tests above could not fail. */
  @Test
  void poolOnTmpfs_isMappedInPages() throws Exception {
    Path directory = Files.createTempDirectory(Path.of("/dev/shm"), "pmfs");
    try {
      Path path = directory.resolve("a.pool");
      PoolFile.create(path, SIZE);
      try (PoolFile pool = PoolFile.open(path)) {
        assertThat(pool.dax().real()).isFalse();
        assertThat(PageFaults.ofWriting(pool.slice(0, SIZE))).isGreaterThan(FEW);
      }
    } finally {
      Shell.run(directory, "rm -rf \"$PWD\"");
    }
  }
}
