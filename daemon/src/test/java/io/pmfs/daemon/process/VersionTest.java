package io.pmfs.daemon.process;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The version, and scripts/commit in temporary checkouts. */
final class VersionTest {
  private static final Path SCRIPT = Path.of("../scripts/commit");

  @TempDir private Path temporary;
  private Path checkout;

  @BeforeEach
  void copyScript() throws IOException {
    checkout = temporary.toRealPath().resolve("checkout");
    Files.createDirectories(checkout.resolve("scripts"));
    Files.copy(SCRIPT, checkout.resolve("scripts/commit"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"5f4f736", "5f4f736-dirty"})
  void commit_ofGit_isKnown(String commit) {
    assertThat(Version.commitIn(commit + "\n")).isEqualTo(commit);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "\n", "fatal: not a git repository"})
  void commit_notOfGit_isAbsent(String text) {
    assertThat(Version.commitIn(text)).isNull();
  }

  @Test
  void withCommit_ofThisBuild_hasBoth() {
    String commit = Version.commit();
    assertThat(Version.withCommit())
        .isEqualTo(Version.get() + (commit == null ? "" : " (" + commit + ")"));
  }

  @Test
  void script_inACheckout_printsItsCommit() throws Exception {
    makeCommit(checkout);
    String head = run(checkout, "git", "rev-parse", "HEAD").substring(0, 7);

    assertThat(run(checkout, "scripts/commit")).isEqualTo(head + "\n");

    Files.writeString(checkout.resolve("new"), "");
    assertThat(run(checkout, "scripts/commit")).isEqualTo(head + "-dirty\n");
    assertThat(run(checkout, "scripts/commit", "target/commit")).isEmpty();
    assertThat(Files.readString(checkout.resolve("target/commit"))).isEqualTo(head + "-dirty\n");
  }

  @Test
  void script_outsideOfACheckout_printsNothing() throws Exception {
    assertThat(run(checkout, "scripts/commit")).isEmpty();
  }

  @Test
  void script_ofSourcesInAnotherCheckout_printsNothing() throws Exception {
    makeCommit(temporary);

    assertThat(run(checkout, "scripts/commit")).isEmpty();
  }

  private static void makeCommit(Path directory) throws Exception {
    run(directory, "git", "init", "-q");
    run(directory, "git", "add", ".");
    run(
        directory,
        "git",
        "-c",
        "user.name=ada",
        "-c",
        "user.email=ada@example.org",
        "commit",
        "-q",
        "-m",
        "all");
  }

  private static String run(Path directory, String... command) throws Exception {
    assumeTrue(Files.isExecutable(Path.of("/usr/bin/git")), "needs git");
    Process process =
        new ProcessBuilder(command).directory(directory.toFile()).redirectErrorStream(true).start();
    process.getOutputStream().close();
    String output = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    return output;
  }
}
