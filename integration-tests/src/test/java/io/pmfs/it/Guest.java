package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * JUnit in the virtual machine of {@code scripts/dax-vm}, with the classes that were compiled here.
 * Its reports lie below {@code target/fsdax}, where {@code scripts/test} counts them.
 */
final class Guest {
  /** Of whose tests a guest can run some. */
  static final List<String> MODULES = List.of("fs-core", "fuse-mount", "integration-tests");

  static final Path ROOT = Installation.launcherOfCheckout().resolve("../..").normalize();

  static final String JAVA = Path.of(System.getProperty("java.home"), "bin/java").toString();

  /** Exit status of scripts/dax-vm where it cannot run. */
  private static final int SKIPPED = 77;

  private Guest() {}

  /**
   * Runs tests in a machine of its own, which has all that they need: one that cannot run there is
   * a failure. Skipped where there can be no machine.
   *
   * @param name of the directory of its reports
   * @param machine options of scripts/dax-vm
   * @param java further options of Java
   * @param selection options of JUnit's launcher
   */
  static void run(
      String name,
      Duration limit,
      List<String> machine,
      List<String> java,
      List<String> selection) {
    Path reports =
        ROOT.resolve("integration-tests/target/fsdax").resolve(name).resolve("failsafe-reports");
    List<String> line = new ArrayList<>(List.of(ROOT.resolve("scripts/dax-vm").toString()));
    line.addAll(machine);
    line.addAll(List.of("--out", reports.toString()));
    // Compiling well costs more there than it saves.
    line.addAll(List.of("--env", "JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1"));
    line.addAll(List.of("--env", "PMFS_REQUIRE_FUSE=1"));
    line.addAll(List.of("--timeout", Long.toString(limit.toSeconds()), "--"));
    line.addAll(junit(JAVA, java));
    line.addAll(selection);
    line.add("--reports-dir=" + reports);

    Command guest = Command.run(Map.of(), limit.plusMinutes(2), line);
    assumeTrue(guest.exit() != SKIPPED, () -> guest.err().strip());
    assertThat(guest.exit()).as("%s", guest.out()).isZero();
    // A class that requires something before all of its tests is aborted, and they do not count.
    assertThat(guest.out()).contains(" 0 containers aborted ", " 0 tests aborted ");
  }

  /** JUnit's own launcher, on the class path that these tests have here. */
  static List<String> junit(String java, List<String> options) {
    List<String> line = new ArrayList<>(List.of(java, "-Xmx512m", "-XX:+UseSerialGC"));
    line.addAll(List.of("-cp", classPath(), "--add-modules", "jdk.nio.mapmode"));
    // As in fuse-mount/pom.xml.
    line.add("--add-opens=java.base/sun.nio.ch=ALL-UNNAMED");
    line.add("--add-opens=java.base/java.io=ALL-UNNAMED");
    line.add("--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED");
    line.addAll(List.of("-Dpmfs.launcher=" + Installation.launcherOfCheckout()));
    line.addAll(options);
    line.addAll(List.of("org.junit.platform.console.ConsoleLauncher", "execute"));
    line.addAll(List.of("--disable-banner", "--details=testfeed", "--disable-ansi-colors"));
    line.addAll(List.of("--include-engine=junit-jupiter", "--include-classname=.*"));
    line.add("--fail-if-no-tests");
    return line;
  }

  /** That of these tests, with those of other modules; without entries that do not exist. */
  static String classPath() {
    // Surefire's own property: java.class.path may be one JAR with a manifest.
    String given =
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    return Stream.concat(
            Stream.of(given.split(File.pathSeparator, -1)).map(Path::of),
            MODULES.stream().map(module -> ROOT.resolve(module).resolve("target/test-classes")))
        .filter(Files::exists)
        .map(Path::toString)
        .collect(Collectors.joining(File.pathSeparator));
  }
}
