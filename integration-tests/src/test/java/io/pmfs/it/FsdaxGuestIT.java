package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import io.pmfs.posix.OnRequest;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
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

  private static final List<String> MODULES = List.of("fs-core", "fuse-mount", "integration-tests");

  private static final Path ROOT = Installation.launcherOfCheckout().resolve("../..").normalize();

  /**
   * What takes few minutes in all.
   *
   * @param classes whose tests run
   */
  @ParameterizedTest
  @OnRequest(value = "vm", what = "in virtual machines with persistent memory")
  @CsvSource({
    "nvdimm, ext4, DaxProbeFsdaxTest FsdaxTierTest ZeroCopyIT",
    "virtio-pmem, ext4, DaxProbeFsdaxTest"
  })
  void guest_withPersistentMemory_passesItsTests(String device, String fileSystem, String classes) {
    run(device, fileSystem, "short", classes);
  }

  /** The rest of them. */
  @ParameterizedTest
  @OnRequest(value = "vm", what = "in virtual machines with persistent memory")
  @CsvSource({
    "nvdimm, ext4, DaxAttributeTest PoolMappingTest FsdaxIT DevdaxTierTest",
    "nvdimm, xfs, DaxProbeFsdaxTest DaxAttributeTest PoolMappingTest FsdaxTierTest ZeroCopyIT",
    "virtio-pmem, ext4, DaxAttributeTest"
  })
  void guest_withPersistentMemory_passesLongerTests(
      String device, String fileSystem, String classes) {
    run(device, fileSystem, "long", classes);
  }

  private static void run(String device, String fileSystem, String part, String classes) {
    Path reports =
        ROOT.resolve("integration-tests/target/fsdax")
            .resolve(String.join("-", device, fileSystem, part))
            .resolve("failsafe-reports");
    List<String> line = new ArrayList<>(List.of(ROOT.resolve("scripts/dax-vm").toString()));
    line.addAll(List.of("--device", device, "--fs", fileSystem, "--out", reports.toString()));
    if (device.equals("nvdimm")) {
      line.addAll(List.of("--devdax", "128"));
    }
    // Enough for an XFS that lays files out for mappings of 2 MiB.
    line.addAll(List.of("--size", part.equals("long") ? "1024" : "512"));
    // Compiling well costs more there than it saves.
    line.addAll(List.of("--env", "JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1"));
    line.addAll(List.of("--timeout", Integer.toString(TIMEOUT_SECONDS), "--"));
    line.addAll(junit(reports, List.of(classes.split(" ", -1))));

    Command guest = Command.run(Map.of(), Duration.ofSeconds(TIMEOUT_SECONDS + 120), line);
    assumeTrue(guest.exit() != SKIPPED, () -> guest.err().strip());
    assertThat(guest.exit()).as("%s", guest.out()).isZero();
  }

  /** JUnit's own launcher, on the class path that these tests have here. */
  private static List<String> junit(Path reports, List<String> classes) {
    String java = Path.of(System.getProperty("java.home"), "bin/java").toString();
    List<String> line = new ArrayList<>(List.of(java, "-Xmx512m", "-XX:+UseSerialGC"));
    line.addAll(List.of("-cp", classPath(), "--add-modules", "jdk.nio.mapmode"));
    // As in fuse-mount/pom.xml.
    line.add("--add-opens=java.base/sun.nio.ch=ALL-UNNAMED");
    line.add("--add-opens=java.base/java.io=ALL-UNNAMED");
    line.add("--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED");
    line.addAll(List.of("-Dpmfs.launcher=" + Installation.launcherOfCheckout()));
    line.addAll(List.of("org.junit.platform.console.ConsoleLauncher", "execute"));
    line.addAll(List.of("--disable-banner", "--details=tree", "--disable-ansi-colors"));
    line.addAll(List.of("--include-engine=junit-jupiter", "--include-classname=.*"));
    line.addAll(List.of("--include-tag=fsdax", "--fail-if-no-tests"));
    testClasses(classes).forEach(name -> line.add("--select-class=" + name));
    line.add("--reports-dir=" + reports);
    return line;
  }

  /** That of these tests, with those of other modules. */
  static String classPath() {
    // Surefire's own property: java.class.path may be one JAR with a manifest.
    String given =
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    return given
        + MODULES.stream()
            .map(module -> ":" + ROOT.resolve(module).resolve("target/test-classes"))
            .collect(Collectors.joining());
  }

  private static List<String> testClasses(List<String> simpleNames) {
    return new ClassFileImporter()
            .importPaths(
                MODULES.stream()
                    .map(module -> ROOT.resolve(module).resolve("target/test-classes"))
                    .toList())
            .stream()
            .filter(FsdaxGuestIT::hasTheTag)
            .filter(test -> simpleNames.contains(test.getSimpleName()))
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
