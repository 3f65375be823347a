package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.OnRequest;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
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

  /** What fails because of the emulator (QEMU 7.2), and why. */
  private static final List<Pattern> OF_THE_EMULATOR =
      List.of(
          // It has no openat2(2); pmfs then opens each component by itself.
          Pattern.compile(":openat2=true:|OPENAT2"),
          // It gives only the first of several descriptors, without MSG_CTRUNC.
          Pattern.compile("DescriptorSocketTest:receive_twoFilesInAMessage_failsAndKeepsNone"),
          // It ignores MADV_POPULATE_READ.
          Pattern.compile("PoolFileTest:check_fileCutShort_saysSoBeforeASignalDoes"));

  private static final Pattern FAILED = Pattern.compile("(?m)^ {2}JUnit Jupiter:(.*)$");
  private static final Pattern SUCCESSFUL = Pattern.compile("\\[ +(\\d+) tests successful +]");

  private static boolean isRegistered;

  @TempDir private Path directory;
  private CleanDebian machine;

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

  @AfterEach
  void remove() {
    if (machine != null) {
      machine.run("umount -a -l -t fuse.pmfs");
      machine.close();
    }
  }

  @Test
  void tar_onArm64_mountsServesAndStages() throws IOException {
    machine.copyIn(CleanDebian.built("64.tar.gz", "scripts/package"), "/pmfs.tar.gz");
    machine.expect("tar -xzf /pmfs.tar.gz && ln -s /pmfs-*/bin/pmfs /usr/bin/pmfs");
    machine.expect(
        "mkdir -p /source /mnt/a && for i in $(seq 200); do mkdir -p /source/$((i % 9));"
            + " seq $((i * 50)) >/source/$((i % 9))/$i; done");

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

    String out =
        machine
            .run(
                "java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "
                    + classPath
                    + " --add-modules jdk.nio.mapmode"
                    + " --add-opens=java.base/sun.nio.ch=ALL-UNNAMED"
                    + " --add-opens=java.base/java.io=ALL-UNNAMED"
                    + " --add-exports=java.base/jdk.internal.misc=ALL-UNNAMED"
                    + " org.junit.platform.console.ConsoleLauncher execute --disable-banner"
                    + " --disable-ansi-colors --details=summary --include-engine=junit-jupiter"
                    + " --exclude-tag=fsdax --select-package=io.pmfs.fuse.system"
                    + " --select-package=io.pmfs.fuse.protocol"
                    + " --select-package=io.pmfs.compression 2>&1")
            .out();

    Matcher successful = SUCCESSFUL.matcher(out);
    assertThat(successful.find()).as(out).isTrue();
    assertThat(Integer.parseInt(successful.group(1))).isGreaterThan(200);
    assertThat(FAILED.matcher(out).results().map(result -> result.group(1)))
        .as(out)
        .allMatch(name -> OF_THE_EMULATOR.stream().anyMatch(p -> p.matcher(name).find()));
  }
}
