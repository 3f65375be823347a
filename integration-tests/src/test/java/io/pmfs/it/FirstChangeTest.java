package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The first change of docs/changing.md, applied to this checkout. */
final class FirstChangeTest {
  private static final Path ROOT = Path.of("").toAbsolutePath().resolve("..").normalize();
  private static final Pattern PATCH = Pattern.compile("(?s)\n```diff\n(.*?)```\n");

  @TempDir private Path temporary;

  private Path patch() throws Exception {
    Matcher found = PATCH.matcher(Files.readString(ROOT.resolve("docs/changing.md"), UTF_8));
    assertThat(found.find()).isTrue();
    return Files.writeString(temporary.resolve("threads.patch"), found.group(1), UTF_8);
  }

  private static String run(Path directory, String... command) throws Exception {
    Process process =
        new ProcessBuilder(command).directory(directory.toFile()).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertThat(process.waitFor()).as("%s\n%s", String.join(" ", command), output).isZero();
    return output;
  }

  @Test
  void patch_ofThePage_applies() throws Exception {
    run(ROOT, "git", "apply", "--check", patch().toString());
  }

  /** Compiles most modules, which takes minutes. */
  @Test
  @OnRequest(value = "large", what = "the commands of docs/changing.md")
  void patch_appliedToACopy_passesTheTestsOfThePage() throws Exception {
    Path copy = temporary.resolve("pmfs");
    run(temporary, "git", "clone", "-q", ROOT.toString(), copy.toString());
    run(copy, "git", "apply", patch().toString());

    run(
        copy,
        "mvn",
        "-q",
        "-B",
        "-Dpmfs.noPackages",
        "-pl",
        "cli",
        "-am",
        "test",
        "-Dtest=CommandsTest,MistakesTest",
        "-Dsurefire.failIfNoSpecifiedTests=false");
  }
}
