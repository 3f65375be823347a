package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** After a drain the source is what the mount shows, in all that programs can see. */
final class SameTreeIT {
  private static final long MOST_SECONDS = 300;

  /** Of a mount, of the programs on it and of their drain, on a machine with other work. */
  private static final Duration LONGEST = Duration.ofMinutes(20);

  private static final String PROGRAMS =
      Path.of("src/test/writable/programs.sh").toAbsolutePath().toString();

  @Installed(byRoot = true)
  private Installation pmfs;

  private Path source;

  @BeforeEach
  void makeSource() {
    source = pmfs.directory("source");
  }

  private MountedPmfs mount(String... options) {
    List<String> all = new ArrayList<>(List.of("--writable", "--allow-other"));
    all.addAll(List.of(options));
    return pmfs.mount(LONGEST, source, all.toArray(String[]::new));
  }

  private static void shell(MountedPmfs mount, String script) {
    Command.run("sh", "-euc", "cd -- \"$1\"; " + script, "-", mount.mountpoint().toString())
        .expect(0);
  }

  private void assertSame(MountedPmfs mount) {
    pmfs.run(LONGEST, "drain", mount.mountpoint().toString()).expect(0);
    assertThat(mount.status().number("outputs.conflicts")).isZero();
    WholeTree.assertSourceEquals(source, mount);
  }

  /** Directories get other times at the source with each name that comes there. */
  @Test
  @OnRequest("cases")
  void times_ofDirectories_areThoseOfTheMount() throws Exception {
    Files.createDirectories(source.resolve("before/deep"));
    Files.writeString(source.resolve("before/deep/file"), "x");
    shellAtSource("touch -d @1000 before/deep/file; touch -d @2000.5 before/deep before");
    try (MountedPmfs mount = mount()) {
      shell(
          mount,
          """
          mkdir empty given left; touch -d @1000000000.123456789 given
          mkdir -p a/b/c; echo x >a/b/c/file; mv a/b/c/file left/; touch -d @900000000 left
          echo y >>before/deep/file
          mkdir gone; rmdir gone
          mkdir t; python3 -c 'import os; f = os.open("t/x", os.O_CREAT|os.O_RDWR); os.unlink("t/x")'
          mkdir m1 m2; touch m1/f; mv m1 m2/m
          """);
      assertThat(
              Command.run("stat", "-c", "%Y", mount.path("before"), mount.path("before/deep"))
                  .out())
          .isEqualTo("2000\n2000\n");
      assertSame(mount);
      shell(mount, "printf z | dd of=before/deep/file conv=notrunc status=none; chmod 700 empty");
      assertSame(mount);
      assertThat(Command.run("stat", "-c", "%Y", source.resolve("before/deep").toString()).out())
          .isEqualTo("2000\n");
    }
  }

  private void shellAtSource(String script) {
    Command.run("sh", "-euc", "cd -- \"$1\"; " + script, "-", source.toString()).expect(0);
  }

  @Test
  @OnRequest("cases")
  void holes_areThoseOfTheMount() {
    try (MountedPmfs mount = mount()) {
      shell(
          mount,
          """
          truncate -s 10M hole; printf x | dd of=hole bs=1 seek=5M conv=notrunc status=none
          dd if=/dev/zero of=zeros bs=64k count=4 status=none
          fallocate -l 3M room; : >kept; fallocate -n -l 3M kept; printf x >>kept
          head -c 2M /dev/urandom >punched; fallocate -p -o 512k -l 1M punched
          head -c 2M /dev/urandom >zeroed; fallocate -z -o 512k -l 1M zeroed
          """);
      assertSameHoles(mount);
      assertThat(WholeTree.of(source).data("room")).isEmpty();
      shell(
          mount,
          "fallocate -p -o 4k -l 64k zeros; fallocate -o 8M -l 1M room; truncate -s 20M punched;"
              + " printf x >>hole; ln zeros other; printf x >>zeros");
      assertSameHoles(mount);
    }
  }

  private void assertSameHoles(MountedPmfs mount) {
    assertSame(mount);
    WholeTree there = WholeTree.of(source);
    WholeTree shown = WholeTree.of(mount.mountpoint());
    for (String name : List.of("hole", "zeros", "punched")) {
      assertThat(there.data(name)).as(name).isEqualTo(shown.data(name)).isNotEmpty();
    }
  }

  /** What fits nowhere else lies in a hidden directory of the source. */
  @Test
  void dataAtTheSource_leaveNothingThere() {
    try (MountedPmfs mount = mount("--tier", "ssd:" + pmfs.tier() + ":1M")) {
      shell(mount, "for i in 1 2 3; do head -c 3M /dev/urandom >f$i; done; mkdir d");
      assertSame(mount);
      assertThat(Installation.files(source)).allMatch(file -> !file.toString().contains(".pmfs-"));
    }
  }

  @Test
  void treeOfEachKind_thatIsCopiedIn_isTheSame() {
    PosixTree tree = PosixTree.create(pmfs.directory("tree"));
    try (MountedPmfs mount = mount()) {
      shell(
          mount,
          "cp -a %1$s/types %1$s/names . ; cp -a --sparse=always %1$s/data ."
              .formatted(tree.root()));
      assertSame(mount);
    }
  }

  @Test
  void randomChanges_arriveAll() throws Exception {
    try (MountedPmfs mount = mount()) {
      for (int round = 0; round < 2; round++) {
        load(mount, 100 + round, 300, 0);
        assertSame(mount);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {11, 12, 13, 14, 15, 16})
  @OnRequest("large")
  void randomChanges_whileTheDaemonIsKilled_arriveAll(long seed) throws Exception {
    pmfs.environment("PMFS_CRASH_LIMIT", "1000");
    try (MountedPmfs mount = mount("--tier", "ssd:" + pmfs.tier() + (seed % 2 == 0 ? ":2M" : ""))) {
      for (int round = 0; round < 3; round++) {
        load(mount, 100 * seed + round, 3000, 4);
        assertSame(mount);
      }
    }
  }

  static Stream<String> programs() {
    return Command.run(PROGRAMS, "--list").expect(0).out().lines();
  }

  /** Databases, compilers, benchmarks and stressors, which check themselves what they read. */
  @ParameterizedTest
  @MethodSource("programs")
  @OnRequest("large")
  void whatProgramsWrote_arrives(String program) {
    Map<String, String> environment = Map.of("TMPDIR", pmfs.directory("logs").toString());
    try (MountedPmfs mount = mount()) {
      List<String> line =
          List.of(PROGRAMS, "--keep", "--only", program, mount.mountpoint().toString());
      Command run = Command.run(environment, LONGEST, line);
      assumeFalse(run.out().contains("not installed"), program + " is not installed");
      run.expect(0);
      assertSame(mount);
    }
  }

  private void load(MountedPmfs mount, long seed, int changes, int kills)
      throws IOException, InterruptedException {
    Path output = pmfs.scratch().root().resolve("load");
    Process load = RandomLoad.start(mount.mountpoint(), seed, changes, output);
    Random random = new Random(seed);
    for (int i = 0; i < kills; i++) {
      Thread.sleep(random.nextInt(1500));
      long daemon = mount.daemon();
      mount.killDaemon();
      mount.awaitSuccessor(daemon);
    }
    boolean isOver = load.waitFor(MOST_SECONDS, TimeUnit.SECONDS);
    load.destroyForcibly();
    assertThat(isOver).as("the load ends").isTrue();
    assertThat(load.exitValue()).as("seed %d: %s", seed, Files.readString(output)).isZero();
  }
}
