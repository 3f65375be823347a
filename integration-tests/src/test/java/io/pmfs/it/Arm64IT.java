package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.OnRequest;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The tar.gz and the tests of native calls on a Debian for AArch64, whose programs qemu-user
 * emulates on the kernel of this machine. docs/testing.md says what that cannot show.
 */
@Tag("docker")
@OnRequest(value = "package", what = "AArch64, emulated")
final class Arm64IT {
  /** Exit status of REGISTER if another registration is in use. */
  private static final int IS_THERE = 3;

  /** Has the kernel start programs for AArch64 by the emulator, also in containers (flag F). */
  private static final String REGISTER =
      """
      PATH=$PATH:/usr/sbin:/sbin
      emulator=$(command -v qemu-aarch64-static) && command -v arch-test >/dev/null ||
        { echo 'no qemu-aarch64-static or arch-test: scripts/install-requirements package' >&2; exit 1; }
      cd /proc/sys/fs/binfmt_misc || exit 1
      [ -e register ] || mount -t binfmt_misc binfmt_misc . || exit 1
      cd /proc/sys/fs/binfmt_misc
      ! arch-test arm64 >/dev/null 2>&1 || exit 3
      echo ':pmfs-test-arm64:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff:'$emulator:FP >register
      """;

  private static final String UNREGISTER = "echo -1 >/proc/sys/fs/binfmt_misc/pmfs-test-arm64";

  private static final List<String> NATIVE_CALLS =
      List.of(
          "--exclude-tag=fsdax",
          "--select-package=io.pmfs.fuse.system",
          "--select-package=io.pmfs.fuse.protocol",
          "--select-package=io.pmfs.compression");

  /** What the emulator (QEMU 7.2) lacks, and how tests end that need it. */
  private static final Map<String, Pattern> LACKING =
      Map.of(
          "openat2(2); pmfs then opens each component by itself",
          Pattern.compile("openat2=true > .*=FAILED: io.pmfs.posix.FsException: ENOSYS: "),
          "MSG_CTRUNC for the second of two descriptors",
          Pattern.compile("receive_twoFilesInAMessage_failsAndKeepsNone.*=FAILED"),
          "MADV_POPULATE_READ",
          Pattern.compile("check_fileCutShort_saysSoBeforeASignalDoes.*=FAILED"),
          "instructions that write cache lines back",
          Pattern.compile("writeBack_anyRange_keepsWhatIsThere.*=ABORTED"));

  /** A line of JUnit's about a test's end, and the next one, which says why it did not pass. */
  private static final Pattern RESULT =
      Pattern.compile("(?m)^JUnit Jupiter > (.+) :: (SUCCESSFUL|FAILED|ABORTED)$(\\R\\t\\S.*)?");

  private static final Duration DEADLINE = Duration.ofMinutes(10);

  private static boolean isRegistered;

  @TempDir private Path directory;
  @AutoClose private CleanDebian machine;

  @BeforeAll
  static void register() {
    Containers.require();
    Command command = Command.run("bash", "-c", REGISTER);
    isRegistered = command.exit() == 0;
    assumeTrue(isRegistered || command.exit() == IS_THERE, command.err().strip());
  }

  @AfterAll
  static void unregister() {
    if (isRegistered) {
      Command.run("bash", "-c", UNREGISTER).expect(0);
    }
  }

  @BeforeEach
  void start() {
    machine = CleanDebian.arm64();
    assertThat(machine.expect("uname -m")).isEqualTo("aarch64\n");
  }

  @Test
  void tar_onArm64_mountsServesAndStages() throws IOException {
    machine.copyIn(CleanDebian.built("64.tar.gz", "scripts/package"), "/pmfs.tar.gz");
    machine.expect("tar -xzf /pmfs.tar.gz && ln -s /pmfs-*/bin/pmfs /usr/bin/pmfs");
    // Emulated, an archive of classes takes longer than it saves: this is the mark of an attempt.
    machine.expect("cd /pmfs-*/lib/pmfs && touch classes.jsa");
    machine.expect(
        "mkdir -p /source/{0..8} /mnt/a && mawk 'BEGIN { for (i = 1; i <= 200; i++) {"
            + " f = \"/source/\" i % 9 \"/\" i; for (j = 1; j <= i * 50; j++) print j >f; close(f)"
            + " } }'");

    assertThat(machine.expect("pmfs --version")).startsWith("pmfs ");
    assertThat(machine.run("pmfs doctor"))
        .satisfies(doctor -> assertThat(doctor.exit()).as(doctor.out()).isZero())
        .satisfies(doctor -> assertThat(doctor.out()).containsPattern("ok +architecture +aarch64"));
    machine.expect("pmfs mount --tier ssd:/tier:1G --keep-free 0 /source /mnt/a");
    machine.expect("diff -r /source /mnt/a");
    machine.expect("pmfs stage /mnt/a && pmfs stage --check /mnt/a");
    machine.expect("diff -r /source /mnt/a && pmfs verify /mnt/a");
    machine.expect("pmfs umount /mnt/a && ! mountpoint -q /mnt/a");
  }

  @Test
  void nativeCalls_onArm64_passTheirTests() {
    Path classes = directory.resolve("classes.tar");
    String classPath = Guest.classPath();
    List<String> pack = new ArrayList<>(List.of("tar", "-cPf", classes.toString(), "--"));
    pack.addAll(List.of(classPath.split(File.pathSeparator, -1)));
    Command.run(pack.toArray(String[]::new)).expect(0);
    machine.copyIn(classes, "/classes.tar");
    machine.expect("tar -xPf /classes.tar && rm /classes.tar");

    Map<String, String> here =
        results(Command.run(Map.of(), DEADLINE, nativeCalls(Guest.JAVA)).expect(0));
    Map<String, String> there = results(machine.run(String.join(" ", nativeCalls("java"))));

    assertThat(there.keySet()).isNotEmpty().isEqualTo(here.keySet());
    Set<Map.Entry<String, String>> different = new HashSet<>(there.entrySet());
    different.removeAll(here.entrySet());
    LACKING.forEach(
        (what, tests) -> {
          int before = different.size();
          different.removeIf(test -> tests.matcher(test.toString()).find());
          System.out.printf("aarch64: without %s: %d%n", what, before - different.size());
          assertThat(different.size()).as("tests without %s", what).isLessThan(before);
        });
    assertThat(different).as("of %d tests", there.size()).isEmpty();
  }

  private static List<String> nativeCalls(String java) {
    List<String> line = new ArrayList<>(Guest.junit(java, List.of("-XX:TieredStopAtLevel=1")));
    line.addAll(NATIVE_CALLS);
    return line;
  }

  /** The tests by name, each with its status and the reason if it did not pass. */
  private static Map<String, String> results(Command junit) {
    return RESULT
        .matcher(junit.out())
        .results()
        .collect(
            Collectors.toMap(
                test -> test.group(1),
                test ->
                    test.group(2)
                        + Objects.toString(test.group(3), "").replaceFirst("\\R\\t", ": ")));
  }
}
