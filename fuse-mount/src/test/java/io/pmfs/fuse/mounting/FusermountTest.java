package io.pmfs.fuse.mounting;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.pmfs.fuse.mounting.MountException.Reason;
import io.pmfs.posix.NoThreads;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Errors of mounts through programs that do not mount. */
final class FusermountTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);

  @TempDir private Path directory;

  private String program(String name, String script) throws IOException {
    Path file = Files.writeString(directory.resolve(name), "#!/bin/sh\n" + script + "\n");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
    return file.toString();
  }

  private static MountException failure(boolean allowOther, Duration timeout, String... programs) {
    MountSpec options =
        new MountSpec(Path.of("/mnt/ü"), "/s,r\\c", allowOther, false, false, Duration.ofDays(1));
    MountException failure =
        catchThrowableOfType(
            MountException.class, () -> new Fusermount(options, List.of(programs)).mount(timeout));
    assertThat(failure).isNotNull();
    assertThat(failure.getMessage()).startsWith("/mnt/ü cannot be mounted: ").doesNotContain("\n");
    return failure;
  }

  private static MountException failure(String... programs) {
    return failure(false, TIMEOUT, programs);
  }

  @Test
  void mount_programRefuses_saysWhatItSaidInOneLine() throws Exception {
    String program = program("f", "echo 'f: no write access'; echo 'f: to mountpoint' >&2; exit 1");

    MountException failure = failure(program);

    assertThat(failure).hasMessageEndingWith(": f: no write access; f: to mountpoint");
    assertThat(failure.reason()).isEqualTo(Reason.FAILED);
  }

  @ParameterizedTest
  @CsvSource({
    "mount failed: Operation not permitted, must be set-user-id root",
    "could not determine username, add this user to /etc/passwd"
  })
  void mount_programMayNotMount_isUnavailableWithRemedy(String message, String remedy)
      throws Exception {
    MountException failure = failure(program("f", "echo 'f: " + message + "' >&2; exit 1"));

    assertThat(failure).hasMessageContaining(remedy);
    assertThat(failure.reason()).isEqualTo(Reason.UNAVAILABLE);
  }

  @Test
  void mount_withoutExecution_asksForIt() throws Exception {
    String program = program("f", "echo \"$2\"; exit 1");
    MountSpec options =
        new MountSpec(Path.of("/mnt/x"), "/s", false, false, true, Duration.ofDays(1));

    assertThatThrownBy(() -> new Fusermount(options, List.of(program)).mount(TIMEOUT))
        .hasMessageContaining("ro,noexec,nosuid,nodev");
    assertThat(failure(program)).hasMessageContaining("ro,nosuid,nodev");
  }

  @Test
  void mount_programMayNotOpenTheDevice_isUnavailable() throws Exception {
    MountException failure =
        failure(program("f", "echo 'f: failed to open /dev/fuse: Permission denied' >&2; exit 1"));

    assertThat(failure).hasMessageEndingWith("failed to open /dev/fuse: Permission denied");
    assertThat(failure.reason()).isEqualTo(Reason.UNAVAILABLE);
  }

  /** Else the program mounts, and nobody answers there. */
  @Test
  void mount_withoutAThreadForTheAnswer_endsTheProgramAndItsSocket() throws Exception {
    Path mounted = directory.resolve("mounted");
    String program = program("f", "sleep 1; echo >'" + mounted + "'");
    try (NoThreads none = NoThreads.named("fusermount")) {
      assertThat(failure(program)).hasMessageContaining("native thread");
      assertThat(none.refused()).isOne();
    }
    assertThat(mounted).doesNotExist();
  }

  @Test
  void mount_programSaysNothing_saysItsStatus() throws Exception {
    assertThat(failure(program("f", "exit 3"))).hasMessageEndingWith("status 3 and no output");
    assertThat(failure(program("g", "kill -9 $$"))).hasMessageContaining("status 137");
  }

  @Test
  void mount_noProgram_namesThePackage() {
    MountException failure = failure("/nowhere/fusermount3", "/nowhere/fusermount");

    assertThat(failure).hasMessageContaining("not found; install the package fuse3");
    assertThat(failure.reason()).isEqualTo(Reason.UNAVAILABLE);
  }

  @Test
  void mount_onlyTheSecondProgram_isUsed() throws Exception {
    assertThat(failure("/nowhere/fusermount3", program("f", "echo second; exit 1")))
        .hasMessageEndingWith(": second");
  }

  @Test
  void mount_programIsNotExecutable_saysSo() throws Exception {
    Path file = Files.writeString(directory.resolve("f"), "");

    MountException failure = failure(file.toString());

    assertThat(failure).hasMessageEndingWith("cannot be run: EACCES");
    assertThat(failure.reason()).isEqualTo(Reason.UNAVAILABLE);
  }

  @Test
  void mount_programHangs_isKilled() throws Exception {
    Path pid = directory.resolve("pid");
    String program = program("f", "echo $$ >" + pid + "; exec sleep 1000");

    MountException failure = failure(false, Duration.ofSeconds(2), program);

    assertThat(failure).hasMessageEndingWith("did not finish within 2 s");
    assertThat(Path.of("/proc", Files.readString(pid).strip())).doesNotExist();
  }

  @Test
  void mount_program_getsOptionsSocketAndEnvironment() throws Exception {
    String program =
        program(
            "f",
            "printf '%s ' \"$@\"; echo; readlink /proc/self/fd/$_FUSE_COMMFD; echo $HOME; exit 1");
    String wanted =
        "-o ro,nosuid,nodev,default_permissions,max_read=1048576,subtype=pmfs,fsname=/s\\,r\\\\c"
            + " -- /mnt/ü; socket:[";

    assertThat(failure(program))
        .hasMessageContaining(wanted)
        .hasMessageEndingWith("]; " + System.getenv("HOME"));
    assertThat(failure(true, TIMEOUT, program))
        .hasMessageContaining("=1048576,allow_other,subtype");
  }

  @Test
  void mount_programEnds_isNoZombie() throws Exception {
    Path pid = directory.resolve("pid");

    failure(program("f", "echo $$ >" + pid));

    assertThat(Path.of("/proc", Files.readString(pid).strip())).doesNotExist();
  }
}
