package io.pmfs.fuse.mounting;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.system.Shell;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The guard's actions for its inputs; test programs replace the system's. */
final class StaleMountGuardTest {
  private static final String DEAD = "echo \"stat: '$3': Transport endpoint is not connected\" >&2";
  private static final Path MOUNTPOINT = Path.of("/mnt/a b\n'\"$x\\ü-");

  @TempDir private Path directory;
  private Path calls;

  @BeforeEach
  void makePrograms() throws IOException {
    calls = directory.resolve("calls");
    program("fusermount3", "printf '%s|' \"$@\" >" + calls);
  }

  private void program(String name, String script) throws IOException {
    Path file = Files.writeString(directory.resolve(name), "#!/bin/sh\n" + script + "\n");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  private Process start() throws IOException {
    ProcessBuilder builder = new ProcessBuilder(StaleMountGuard.command(MOUNTPOINT));
    builder.environment().put("PATH", directory + ":" + System.getenv("PATH"));
    return builder.redirectErrorStream(true).start();
  }

  private static void await(Process process) throws InterruptedException {
    assertThat(process.waitFor(20, TimeUnit.SECONDS)).as("the guard ends").isTrue();
  }

  @Test
  void inputEnds_deadMount_isUnmountedLazily() throws Exception {
    program("stat", DEAD);
    Process process = start();
    process.getOutputStream().close();
    await(process);

    assertThat(Files.readString(calls)).isEqualTo("-u|-z|--|" + MOUNTPOINT + "|");
  }

  @Test
  void inputEnds_mountThatAnswers_isLeftAlone() throws Exception {
    program("stat", "exit 0");
    Process process = start();
    process.getOutputStream().close();
    await(process);

    assertThat(calls).doesNotExist();
  }

  /** The next job's mount, about to be served. */
  @Test
  void inputEnds_anotherMountOnThePath_isLeftAlone() throws Exception {
    program("stat", DEAD);
    Process process = start();
    try (OutputStream input = process.getOutputStream()) {
      input.write("0:999999\n".getBytes(US_ASCII));
    }
    await(process);

    assertThat(calls).doesNotExist();
  }

  @Test
  void inputEnds_deadMountThatIsOurs_isUnmounted() throws Exception {
    program("stat", DEAD);
    ProcessBuilder builder = new ProcessBuilder(StaleMountGuard.command(Path.of("/proc")));
    builder.environment().put("PATH", directory + ":" + System.getenv("PATH"));
    Process process = builder.start();
    try (OutputStream input = process.getOutputStream()) {
      input.write((SessionMount.deviceAt(Path.of("/proc")) + "\n").getBytes(US_ASCII));
    }
    await(process);

    assertThat(Files.readString(calls)).isEqualTo("-u|-z|--|/proc|");
  }

  @Test
  void signals_areIgnored() throws Exception {
    program("stat", DEAD);
    Process process = start();
    String ignoresTerm = "grep -Eq 'SigIgn:.*[4-7c-f][0-9a-f]{3}$' /proc/%1$d/status";
    Shell.run(
        directory,
        ("timeout 20 sh -c \"until "
                + ignoresTerm
                + "; do sleep 0.05; done\"; kill -TERM %1$d; kill -HUP %1$d")
            .formatted(process.pid()));
    assertThat(process.isAlive()).isTrue();
    process.getOutputStream().close();
    await(process);

    assertThat(calls).exists();
  }

  @Test
  void inputEnds_onlyFusermountOfLibfuse2_isUsed() throws Exception {
    program("stat", DEAD);
    Files.move(directory.resolve("fusermount3"), directory.resolve("fusermount"));
    program("fusermount3", "exit 127");
    Process process = start();
    process.getOutputStream().close();
    await(process);

    assertThat(Files.readString(calls)).startsWith("-u|-z|--|");
  }

  @Test
  void close_endsTheProcess(@TempDir Path mountpoint) throws Exception {
    StaleMountGuard guard = StaleMountGuard.start(mountpoint);
    ProcessHandle process = guard.process();
    assertThat(process.isAlive()).isTrue();

    guard.close();

    assertThat(process.isAlive()).isFalse();
  }
}
