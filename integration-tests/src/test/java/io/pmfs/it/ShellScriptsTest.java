package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * The scripts around jobs, of which root runs some on any user's words, and that of releases, as
 * shellcheck sees them.
 */
final class ShellScriptsTest {
  private static final Path SCRIPTS =
      Installation.launcherOfCheckout().resolveSibling(".").normalize();

  @Test
  void scripts_ofJobsAndReleases_haveNoFindings() throws IOException {
    Machine.requireCommand("shellcheck");
    List<String> line = new ArrayList<>(List.of("shellcheck", "-x", "-S", "warning", "--"));
    line.add(SCRIPTS.resolve("pmfs-run").toString());
    line.add(SCRIPTS.resolve("release").toString());
    try (Stream<Path> files = Files.walk(SCRIPTS.resolve("slurm"))) {
      files.filter(Files::isRegularFile).map(Path::toString).sorted().forEach(line::add);
    }
    // Paths in the scripts' directives are relative to the checkout.
    List<String> there =
        new ArrayList<>(List.of("env", "-C", SCRIPTS.resolveSibling("").toString()));
    there.addAll(line);
    Command checked = Command.run(there.toArray(String[]::new));
    assertThat(checked.exit()).as("%s", checked.out()).isZero();
  }
}
