package io.pmfs.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The tests of benchmarks/cluster-model, which are written in Python as it is. */
final class ClusterModelTest {
  /** As the scripts ask for, with room for machines of other years. */
  private static final String NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 10))";

  @Test
  @Timeout(600)
  @OnRequest(value = "cluster", what = "the model of clusters")
  void clusterModel_againstClosedForms_agrees() throws Exception {
    assumeTrue(
        hasPython(), "no python3 of 3.10 or newer: scripts/install-requirements test installs it");
    Process tests = python("-m", "unittest", "discover", "-s", "tests");
    String said = new String(tests.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(tests.waitFor()).as(said).isZero();
    // Where it finds nothing, discovery ends well, too.
    assertThat(said).containsPattern("Ran [1-9][0-9]* tests");
  }

  private static boolean hasPython() throws InterruptedException {
    try {
      return python("-c", NEW_ENOUGH).waitFor() == 0;
    } catch (IOException e) {
      return false;
    }
  }

  /** Runs in the module's directory, where Maven runs tests. */
  private static Process python(String... arguments) throws IOException {
    ProcessBuilder builder = new ProcessBuilder("python3").redirectErrorStream(true);
    builder.command().addAll(List.of(arguments));
    builder.environment().putAll(Map.of("PYTHONPATH", ".", "PYTHONDONTWRITEBYTECODE", "1"));
    return builder.start();
  }
}
