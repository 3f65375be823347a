package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.OnRequest;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** A file beyond the sizes that fit an int and one mapping. */
@ParameterizedClass
@EnumSource
final class LargeFileIT {
  private static final long GIB = 1L << 30;

  @Parameter BridgeMode mode;

  @Test
  @OnRequest(value = "large", what = "a file of 5 GiB")
  void file_ofFiveGib_isStagedAndServedFromItsCopy() {
    mode.runsInEveryRunIf(BridgeMode.PAGE_CACHE);
    mode.require();
    try (Installation pmfs = new Installation()) {
      Path source = pmfs.directory("source");
      assumeTrue(source.toFile().getUsableSpace() > 12 * GIB, "needs 12 GiB of temporary space");
      PosixTree.SPARSE_DATA.forEach(
          (at, size) -> Posix.write(source + "/file", at, PosixTree.content("sparse@" + at, size)));
      try (MountedPmfs mount = mode.mount(pmfs, Duration.ofMinutes(4), source)) {
        assertServed(mount);
        mount.awaitCopies(1, Duration.ofMinutes(3));
      }
      try (MountedPmfs mount = mode.mount(pmfs, Duration.ofMinutes(4), source)) {
        assertServed(mount);
        Status status = mount.status();
        assertThat(status.number("sourceOperations.reads")).as("%s", status).isZero();
        mode.assertUsed(mount, "file");
        assertServed(mount);
      }
    }
  }

  private static void assertServed(MountedPmfs mount) {
    String file = mount.path("file");
    assertThat(Posix.stat(file).size()).isEqualTo(PosixTree.SPARSE_SIZE);
    for (long at : PosixTree.sorted(PosixTree.SPARSE_DATA)) {
      long offset = Math.max(0, at - 1000);
      assertThat(Posix.pread(file, 200_000, offset))
          .as("at %d", offset)
          .matches(got -> Arrays.equals(got, PosixTree.sparseContent(offset, 200_000)));
    }
    assertThat(Posix.pread(file, 10, PosixTree.SPARSE_SIZE)).isEmpty();
  }
}
