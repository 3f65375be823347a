package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What scripts/test makes of what it runs, in a checkout whose Maven and scripts are invented. */
final class TestScriptTest {
  private static final String REPORT =
      """
      <testsuite>
        <testcase classname="io.pmfs.GoodTest" name="works"/>
        %s
      </testsuite>
      """;

  private static final String LEFT_OUT =
      "<testcase classname='io.pmfs.it.LongIT' name='long'>"
          + "<skipped message='takes long; -Dpmfs.cluster=all runs it'/></testcase>";

  private static final String SKIPPED =
      "<testcase classname='io.pmfs.it.RootIT' name='asks'><skipped message='needs"
          + " root'/></testcase>";

  private static final String SAYS_WHAT = "echo \"ran $0 $*\"\n";

  @TempDir private Path checkout;
  @TempDir private Path elsewhere;

  @BeforeEach
  void invent() throws IOException {
    Path real = Installation.launcherOfCheckout().resolveSibling(".").normalize();
    Files.createDirectories(checkout.resolve("scripts"));
    for (String name : List.of("test", "TestSummary.java")) {
      Files.copy(real.resolve(name), checkout.resolve("scripts").resolve(name));
    }
    // What this one prints are variables.
    script("scripts/container-engine", "exit 0");
    for (String name : List.of("install-requirements", "package", "power-cuts")) {
      script("scripts/" + name, SAYS_WHAT);
    }
    script(
        "scripts/endurance",
        SAYS_WHAT
            + "echo 'endurance, JNR: 60 s, 3 kills, 9 reads by 4 readers, 0 failures, longest read"
            + " 1234 ms'");
    maven(0, "");
  }

  private void script(String name, String body) throws IOException {
    Path script = checkout.resolve(name);
    Files.createDirectories(script.getParent());
    Files.writeString(script, "#!/bin/sh\n" + body + "\n");
    Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  private void maven(int status, String tests) throws IOException {
    Path report = checkout.resolve("m/target/surefire-reports/TEST-a.xml");
    script(
        "bin/mvn",
        SAYS_WHAT
            + "mkdir -p %s && cat >%s <<'END'\n%sEND\nexit %d"
                .formatted(report.getParent(), report, REPORT.formatted(tests), status));
  }

  private Command run(String... arguments) {
    List<String> line = new ArrayList<>(List.of(checkout.resolve("scripts/test").toString()));
    line.addAll(List.of(arguments));
    String path = checkout.resolve("bin") + ":" + System.getenv("PATH");
    if (Machine.isRoot()) {
      // What it mounts ends with it.
      line.addAll(0, List.of("unshare", "--mount", "--propagation", "private"));
    }
    return Command.run(Map.of("PATH", path), Duration.ofMinutes(2), line);
  }

  private static String row(Command ran) {
    return ran.out().lines().filter(line -> line.startsWith("| ")).findFirst().orElse("");
  }

  @Test
  void shortRun_namesWhatItLeavesOutAndPasses() throws IOException {
    maven(0, LEFT_OUT + SKIPPED);
    Command ran = run().expect(0);
    assertThat(ran.out())
        .contains("left out: takes long; -Dpmfs.cluster=all runs it: LongIT 1")
        .contains("skipped: needs root\n  RootIT.asks")
        .contains("1 passed, 0 failed, 1 skipped, 1 left out")
        .doesNotContain("power-cuts", "container-engine", "-Dpmfs.cluster=all verify");
  }

  @Test
  void shortRun_withAFailure_fails() throws IOException {
    maven(1, "");
    run().expect(1);
    maven(0, "<testcase classname='io.pmfs.BadTest' name='breaks'><failure/></testcase>");
    assertThat(run().expect(1).out()).contains("failed: BadTest.breaks");
  }

  @Test
  void shortRun_mountOfItsTests_isLeftBehind() throws IOException {
    assertThat(runWithMountAt("pmfs-it-$PMFS_TEST_RUN-x").expect(1).err())
        .matches(
            "(?s).*test: FAILED: mounts left behind: \\S*/pmfs-it-\\d+-x \\(fuse[.]pmfs\\)\n.*");
  }

  @Test
  void shortRun_mountOfOthers_isNoConcernOfIt() throws IOException {
    runWithMountAt("pmfs-it-1-x").expect(0);
    runWithMountAt("pmfs-run.x").expect(0);
  }

  /** Nothing answers there: the kernel mounts it all the same. */
  private Command runWithMountAt(String name) throws IOException {
    Machine.requireFuse();
    Machine.requireRoot();
    maven(0, "");
    Path real = checkout.resolve("bin/mvn");
    Path others = checkout.resolve("bin/reports");
    Files.move(real, others, StandardCopyOption.REPLACE_EXISTING);
    script(
        "bin/mvn",
        "place=%s/%s; mkdir -p $place; exec 3<>/dev/fuse; ".formatted(elsewhere, name)
            + "mount -n -i -t fuse.pmfs -o fd=3,rootmode=40000,user_id=0,group_id=0 pmfs $place ||"
            + " exit; "
            + "exec %s".formatted(others));
    return run();
  }

  @Test
  void all_runsEachStageAndEndsWithTheRow() {
    Command ran = run("--all").expect(0);
    assertThat(ran.out())
        .contains("-Dpmfs.cluster=all", "-Dpmfs.vm=all", "-Dpmfs.modes=all", "-Dpmfs.cases=all")
        .contains("-Dpmfs.large=all")
        .contains("package --check-reproducible", "--tier pm:/dev/dax0.0 20", "endurance 60");
    assertThat(row(ran))
        .contains("| 1 passed, 0 failed, 0 skipped |", "| 0:00 h |", "| 1234 ms endurance JNR |");
  }

  @Test
  void all_onlyOneStage_runsThatAndSaysSoInTheRow() {
    Command ran = run("--all", "--only", "power cuts*XFS").expect(0);
    assertThat(ran.out())
        .contains("power-cuts --fs xfs 20")
        .doesNotContain("--tier", "endurance 60", "package --check");
    assertThat(row(ran)).contains("| power cuts of XFS | no tests |");
    assertThat(run("--all", "--only", "no such").expect(2).err()).contains("no such stage");
    assertThat(run("--only", "endurance").expect(2).err()).contains("works only with --all");
  }

  @Test
  void all_withAFailingStage_runsTheLaterOnesAndFails() throws IOException {
    maven(1, "");
    script("scripts/power-cuts", "exit 1");
    Command ran = run("--all").expect(1);
    assertThat(ran.out()).contains("scripts/endurance 60\n");
    assertThat(row(ran)).contains("; failed: mvn verify,power cuts of ssd:/pmem/tier,");
  }

  @Test
  void all_withAStageThatCannotRun_failsUnlessThatIsAllowed() throws IOException {
    script("scripts/power-cuts", "echo 'power-cuts: skipped: no qemu' >&2; exit 77");
    Command ran = run("--all").expect(1);
    assertThat(ran.out())
        .contains("not run: power cuts of pm:/pmem/tier: power-cuts: skipped: no qemu");
    assertThat(row(ran)).contains(", 5 not run");
    run("--all", "--allow-missing").expect(0);
  }

  @Test
  void all_withASkippedTest_countsItAsNotRun() throws IOException {
    maven(0, SKIPPED);
    assertThat(run("--all").expect(1).out()).contains("not run: tests: needs root");
    run("--all", "--allow-missing").expect(0);
  }

  @Test
  void all_withATestThatItLeavesOut_fails() throws IOException {
    maven(0, LEFT_OUT);
    assertThat(run("--all", "--allow-missing").expect(1).out())
        .contains("tests that --all leaves out");
  }
}
