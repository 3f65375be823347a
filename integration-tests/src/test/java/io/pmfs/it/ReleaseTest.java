package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.yaml.snakeyaml.Yaml;

/**
 * {@code scripts/release} in a small repository, in which scripts/package only pretends to build.
 */
final class ReleaseTest {
  private static final Path SCRIPTS = Path.of("../scripts").toAbsolutePath().normalize();
  private static final Pattern SCRIPT = Pattern.compile("scripts/[\\w-]+");

  @TempDir private Path checkout;

  @BeforeEach
  void makeRepository() throws IOException {
    write("pom.xml", "<project>\n  <version>1.2.0</version>\n  <version>9</version>\n</project>\n");
    write("cli/pom.xml", "<project>\n    <version>1.2.0</version>\n</project>\n");
    write(".gitignore", "target/\n");
    write(
        "CHANGELOG.md",
        """
        # Changelog

        ## [1.2.0] - 2026-12-01

        ### Added

        - The second.

        ## [1.1.0] - 2026-11-01

        - The first.
        """);
    write(
        "scripts/package",
        """
        #!/bin/sh
        mkdir -p distribution/target && cd distribution/target || exit 1
        echo "packages $*" >pmfs_1.2.0.deb && echo rest >other && sha256sum pmfs_1.2.0.deb >SHA256SUMS
        """);
    write("scripts/release", Files.readString(SCRIPTS.resolve("release")));
    for (String script : List.of("package", "release")) {
      assertThat(checkout.resolve("scripts/" + script).toFile().setExecutable(true)).isTrue();
    }
    git("init", "-q");
    commit();
    git("tag", "v1.2.0");
  }

  private void write(String file, String text) throws IOException {
    Path path = checkout.resolve(file);
    Files.createDirectories(path.resolveSibling("."));
    Files.writeString(path, text);
  }

  private void commit() {
    git("add", ".");
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "a change");
  }

  private void git(String... words) {
    run(Stream.concat(Stream.of("git", "-C", checkout.toString()), Stream.of(words))).expect(0);
  }

  private Command release(String... words) {
    String script = checkout.resolve("scripts/release").toString();
    return run(Stream.concat(Stream.of(script), Stream.of(words)));
  }

  private static Command run(Stream<String> line) {
    return Command.run(Map.of(), Command.DEADLINE, line.toList());
  }

  @Test
  void release_ofATag_hasThePackagesAndTheNotesOfTheVersion() throws IOException {
    release("--", "--java", "JDK").expect(0);

    Path directory = checkout.resolve("target/release/1.2.0");
    try (Stream<Path> files = Files.list(directory)) {
      assertThat(files.map(file -> String.valueOf(file.getFileName())))
          .containsExactlyInAnyOrder("pmfs_1.2.0.deb", "SHA256SUMS", "NOTES.md");
    }
    assertThat(directory.resolve("NOTES.md")).hasContent("### Added\n\n- The second.");
    assertThat(directory.resolve("pmfs_1.2.0.deb")).hasContent("packages --java JDK");
  }

  @Test
  void dryRun_printsTheNotesAndBuildsNothing() {
    Command dry = release("--dry-run", "v1.2.0").expect(0);

    assertThat(dry.out()).contains("1.2.0 is ready", "- The second.").doesNotContain("The first");
    assertThat(checkout.resolve("distribution")).doesNotExist();
  }

  @ParameterizedTest
  @CsvSource({
    "cli/pom.xml, 1.2.0, 1.2.1-SNAPSHOT, POMs have other versions: 1 1.2.1-SNAPSHOT",
    "CHANGELOG.md, 2026-12-01, Unreleased, CHANGELOG.md: no text below",
    "CHANGELOG.md, - The second., '', the tag v1.2.0 is on another commit"
  })
  void checkout_thatIsNoRelease_isRefusedWithItsReason(
      String file, String right, String wrong, String reason) throws IOException {
    write(file, Files.readString(checkout.resolve(file)).replace(right, wrong));
    Command withChanges = release("1.2.0");
    commit();
    Command committed = release("1.2.0");

    assertThat(withChanges.exit()).isEqualTo(1);
    assertThat(withChanges.err()).contains("the tree has changes");
    assertThat(committed.exit()).isEqualTo(1);
    assertThat(committed.err()).contains(reason).doesNotContain("the tree has changes");
    assertThat(checkout.resolve("distribution")).doesNotExist();
  }

  @ParameterizedTest
  @CsvSource({"1.2", "1.2.0-SNAPSHOT", "--upload"})
  void wrongUsage_isStatus2(String word) {
    assertThat(release(word).exit()).isEqualTo(2);
  }

  /** The forge runs what everybody runs. */
  @ParameterizedTest
  @CsvSource({"test.yml, scripts/test", "release.yml, scripts/release"})
  void workflow_runsOneScriptOfTheCheckout(String file, String script) throws IOException {
    String text =
        Files.readString(SCRIPTS.resolveSibling(".github").resolve("workflows").resolve(file));

    Map<String, Object> workflow = new Yaml().load(text);
    assertThat(workflow).containsKey("jobs");
    assertThat(SCRIPT.matcher(text).results().map(found -> found.group())).containsOnly(script);
    assertThat(SCRIPTS.resolveSibling(script)).isExecutable();
  }
}
