package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The tests with the tag {@code fsdax}, each in a virtual machine that has persistent memory. Their
 * reports lie below {@code target/fsdax}, where {@code scripts/test} counts them.
 */
final class FsdaxGuestIT {
  /** For a busy machine: of two idle cores it takes a sixth of that at most. */
  private static final int TIMEOUT_SECONDS = 900;

  /** Exit status of scripts/dax-vm where it cannot run. */
  private static final int SKIPPED = 77;

  private static final Path ROOT = Installation.launcherOfCheckout().resolve("../..").normalize();

  /**
   * Without a mount, which takes minutes there, on two of the three: the tier's own tests.
   *
   * @param modules whose tests run
   */
  @ParameterizedTest
  @CsvSource({
    "nvdimm, ext4, fs-core fuse-mount cli integration-tests",
    "nvdimm, xfs, fs-core fuse-mount",
    "virtio-pmem, ext4, fs-core"
  })
  void guest_withPersistentMemory_passesItsTests(String device, String fileSystem, String modules) {
    Path reports =
        ROOT.resolve("integration-tests/target/fsdax")
            .resolve(device + "-" + fileSystem)
            .resolve("failsafe-reports");
    List<String> line = new ArrayList<>(List.of(ROOT.resolve("scripts/dax-vm").toString()));
    line.addAll(List.of("--device", device, "--fs", fileSystem, "--out", reports.toString()));
    // Compiling well costs more there than it saves.
    line.addAll(List.of("--env", "JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1"));
    line.addAll(List.of("--timeout", Integer.toString(TIMEOUT_SECONDS), "--"));
    line.addAll(junit(reports, List.of(modules.split(" ", -1))));

    Command guest = Command.run(Map.of(), Duration.ofSeconds(TIMEOUT_SECONDS + 120), line);
    assumeTrue(guest.exit() != SKIPPED, () -> guest.err().strip());
    assertThat(guest.exit()).as("%s", guest.out()).isZero();
  }

  /** JUnit's own launcher, on the class path that these tests have here. */
  private static List<String> junit(Path reports, List<String> modules) {
    String java = Path.of(System.getProperty("java.home"), "bin/java").toString();
    List<String> line = new ArrayList<>(List.of(java, "-Xmx512m", "-XX:+UseSerialGC"));
    line.addAll(List.of("-cp", classPath(), "--add-modules", "jdk.nio.mapmode"));
    line.addAll(List.of("-Dpmfs.launcher=" + Installation.launcherOfCheckout()));
    line.addAll(List.of("org.junit.platform.console.ConsoleLauncher", "execute"));
    line.addAll(List.of("--disable-banner", "--details=tree", "--disable-ansi-colors"));
    line.addAll(List.of("--include-engine=junit-jupiter", "--include-classname=.*"));
    line.addAll(List.of("--include-tag=fsdax", "--fail-if-no-tests"));
    testClasses(modules).forEach(name -> line.add("--select-class=" + name));
    line.add("--reports-dir=" + reports);
    return line;
  }

  private static String classPath() {
    // Surefire's own property: java.class.path may be one JAR with a manifest.
    String given =
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    return given
        + Stream.of("fs-core", "fuse-mount", "cli")
            .map(module -> ":" + ROOT.resolve(module).resolve("target/test-classes"))
            .collect(Collectors.joining());
  }

  private static List<String> testClasses(List<String> modules) {
    return new ClassFileImporter()
            .importPaths(
                modules.stream()
                    .map(module -> ROOT.resolve(module).resolve("target/test-classes"))
                    .toList())
            .stream()
            .filter(FsdaxGuestIT::hasTheTag)
            .map(JavaClass::getName)
            .sorted()
            .toList();
  }

  private static boolean hasTheTag(JavaClass candidate) {
    return candidate
        .tryGetAnnotationOfType(Tag.class)
        .map(tag -> tag.value().equals("fsdax"))
        .orElse(false);
  }
}
