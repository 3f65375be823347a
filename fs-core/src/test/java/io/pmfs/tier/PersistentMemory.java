package io.pmfs.tier;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Where tests of tag {@code fsdax} find a file system that is mounted with DAX. */
public final class PersistentMemory {
  private PersistentMemory() {}

  /** A new directory below {@code $PMEM_DIR}; without that the test is skipped. */
  public static Path directory() throws IOException {
    String place = System.getenv("PMEM_DIR");
    assumeTrue(place != null, "needs PMEM_DIR to name a directory on a file system with DAX");
    return Files.createTempDirectory(Path.of(place), "pmfs-test-");
  }
}
