package io.pmfs.tier;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class DaxProbeTest {
  @TempDir private Path directory;

  @Test
  void probe_ordinaryDirectory_isEmulatedForAReasonAndLeavesNothing() throws Exception {
    TierStatus.Dax dax = DaxProbe.probe(directory);

    assertThat(dax.real()).isFalse();
    assertThat(dax.reason())
        .isEqualTo(
            "emulated: %s is not mounted on persistent memory with dax",
            Files.getFileStore(directory).type());
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void probe_missingDirectory_saysWhyItCouldNotTell() {
    TierStatus.Dax dax = DaxProbe.probe(directory.resolve("none"));

    assertThat(dax.real()).isFalse();
    assertThat(dax.reason()).startsWith("could not be probed: ");
  }
}
