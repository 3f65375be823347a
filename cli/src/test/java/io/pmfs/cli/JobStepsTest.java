package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** {@code scripts/slurm/user/begin} in job scripts, with a fake srun. */
@Timeout(60)
final class JobStepsTest {
  private static final Path BEGIN =
      Path.of("").toAbsolutePath().resolve("../scripts/slurm/user/begin").normalize();

  private static final String STRICT = "set -euo pipefail; trap 'echo mine $?' EXIT; ";

  /** Pretends to mount until it is stopped. */
  private static final String WORKS = "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"";

  @TempDir private Path temporary;
  private Path source = Path.of("unset");
  private Path home = Path.of("unset");

  /** The output and exit status of a script. */
  private record Result(int status, String out, String err) {}

  @BeforeEach
  void make() throws IOException {
    source = Files.createDirectory(temporary.resolve("source"));
    home = Files.createDirectory(temporary.resolve("home"));
    program("srun", "while [[ $1 == --* ]]; do shift; done; exec \"$@\"");
    program("pmfs", WORKS);
  }

  private void program(String name, String line) throws IOException {
    Path bin = Files.createDirectories(temporary.resolve("bin"));
    Path program = Files.writeString(bin.resolve(name), "#!/bin/bash\n" + line + "\n");
    Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  /** No directory can be created in /proc. */
  private Result script(String text, String directory) throws Exception {
    Path out = temporary.resolve("out");
    Path err = temporary.resolve("err");
    ProcessBuilder builder =
        new ProcessBuilder("bash", "-c", text)
            .directory(Path.of(directory).toFile())
            .redirectOutput(out.toFile())
            .redirectError(err.toFile());
    builder.environment().clear();
    builder
        .environment()
        .putAll(
            Map.of(
                "PATH",
                temporary.resolve("bin") + ":" + System.getenv("PATH"),
                "HOME",
                home.toString(),
                "TMPDIR",
                temporary.toString(),
                "SLURM_JOB_ID",
                "7",
                "SLURMD_NODENAME",
                "n1"));
    int status = builder.start().waitFor();
    return new Result(status, Files.readString(out, UTF_8), Files.readString(err, UTF_8));
  }

  private String begin() {
    return ". " + BEGIN + " " + source + "; ";
  }

  @Test
  void begin_mount_isWherePmfsMountedIt() throws Exception {
    Result result = script(STRICT + begin() + "echo $PMFS_MOUNT; exit 3", temporary.toString());

    assertThat(result.status()).isEqualTo(3);
    assertThat(result.out()).matches(temporary + "/pmfs-7\\.\\w{6}\nmine 3\n");
    assertThat(result.err()).isEmpty();
  }

  @Test
  void begin_directoryThatCannotBeWritten_usesTheHomeDirectory() throws Exception {
    Result result = script(STRICT + begin() + "echo $PMFS_MOUNT; ls -A ~", "/proc");

    assertThat(result.out()).matches(temporary + "/pmfs-7(\\.\\w{6})\n\\.pmfs-7\\1\nmine 0\n");
    assertThat(home).isEmptyDirectory();
  }

  @Test
  void begin_noDirectoryToWrite_jobReadsTheSource() throws Exception {
    Result result = script(STRICT + "HOME=/proc; " + begin() + "echo $PMFS_MOUNT", "/proc");

    assertThat(result.status()).isZero();
    assertThat(result.out()).isEqualTo(source + "\nmine 0\n");
    assertThat(result.err())
        .matches("pmfs: /proc: no directory .* the job reads " + source + " directly\n");
  }

  @Test
  void begin_outsideOfAJob_readsTheSource() throws Exception {
    Result result = script(STRICT + "unset SLURM_JOB_ID; " + begin() + "echo $PMFS_MOUNT", "/tmp");

    assertThat(result.out()).isEqualTo(source + "\nmine 0\n");
    assertThat(result.err()).startsWith("pmfs: not in a Slurm job; ").hasLineCount(1);
  }

  @Test
  void begin_mountThatFails_jobReadsTheSource() throws Exception {
    program("pmfs", "exit 121");

    Result result = script(STRICT + begin() + "echo $PMFS_MOUNT; exit 3", temporary.toString());

    assertThat(result.out()).isEqualTo(source + "\nmine 3\n");
    assertThat(result.err()).startsWith("pmfs: not mounted on all nodes; ").hasLineCount(1);
  }

  /** Also for a step that starts while the mounts are being made. */
  @Test
  void begin_untilTheMountAnswers_isTheSource() throws Exception {
    program("pmfs", "echo $PMFS_MOUNT >" + temporary.resolve("seen") + "; " + WORKS);

    Result result = script(begin() + "cat seen; echo $PMFS_MOUNT", temporary.toString());

    assertThat(result.out()).matches(source + "\n" + temporary + "/pmfs-7\\.\\w{6}\n");
  }
}
