package io.pmfs.it;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** {@code pmfs bugreport} of real daemons: one that runs, one that hangs, one that was killed. */
final class BugreportIT {
  private static final String SECRET = "hunter2-of-the-cluster";

  @Installed private Installation pmfs;
  private Path source;

  @BeforeEach
  void makeSource() throws IOException {
    pmfs.environment("PMFS_CLUSTER_SECRET", SECRET);
    source = pmfs.directory("source");
    Files.write(source.resolve("name-in-the-dataset"), new byte[100_000]);
  }

  /** The folder of the unpacked archive. */
  private Path report(String name) throws IOException {
    Path file = pmfs.scratch().root().resolve(name + ".tar.gz");
    Command made = pmfs.run("bugreport", "-o", file.toString()).expect(0);
    assertThat(made.out()).contains("nothing was sent");
    assertThat(Command.run("stat", "-c", "%a", file.toString()).out()).isEqualTo("600\n");
    Path directory = pmfs.directory(name);
    Command.run("tar", "-xzf", file.toString(), "-C", directory.toString()).expect(0);
    try (Stream<Path> folders = Files.list(directory)) {
      return folders.findFirst().orElseThrow();
    }
  }

  private static List<String> files(Path report) throws IOException {
    try (Stream<Path> all = Files.walk(report)) {
      return all.filter(Files::isRegularFile).map(f -> report.relativize(f).toString()).toList();
    }
  }

  private static String text(Path file) {
    try {
      return new String(Files.readAllBytes(file), ISO_8859_1);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void assertNoSecret(Path report) throws IOException {
    for (String file : files(report)) {
      assertThat(text(report.resolve(file))).as(file).doesNotContain("hunter2");
    }
  }

  @Test
  @OnRequest("cases")
  void bugreport_ofAMountAndItsKilledDaemon_hasWhatCanBeGot() throws Exception {
    MountedPmfs mount = pmfs.mount(source);
    Files.readAllBytes(mount.mountpoint().resolve("name-in-the-dataset"));
    mount.awaitCopies(1);

    Path whole = report("whole");
    assertThat(text(whole.resolve("problems.txt"))).isEqualTo("none\n");
    assertThat(files(whole))
        .contains(
            "README.txt",
            "doctor.json",
            "machine/system.txt",
            "mounts/1-mnt/status.json",
            "mounts/1-mnt/metrics.txt",
            "mounts/1-mnt/configuration.json");
    assertThat(text(whole.resolve("mounts/1-mnt/threads.txt"))).contains("\"control-", "    at ");
    assertThat(text(whole.resolve("mounts/1-mnt/kernel-threads.txt"))).contains("/comm: java");
    assertThat(text(whole.resolve("mounts/1-mnt/environment.txt"))).contains("PMFS_RUNTIME_DIR=");
    assertThat(text(whole.resolve("mounts/1-mnt/daemon.log"))).contains(" mounted on ");
    assertThat(text(whole.resolve("machine/mount-table.txt"))).contains("fuse.pmfs");
    assertThat(text(whole.resolve("mounts/1-mnt/tiers.txt")))
        .contains("  4 directories, 3 files, ", " bytes, largest 100000,")
        .doesNotContain("name-in-the-dataset");
    assertNoSecret(whole);

    mount.kill9();
    Path dead = report("dead");
    assertThat(text(dead.resolve("problems.txt"))).contains("has no daemon");
    assertThat(text(dead.resolve("mounts/1-mnt/daemon.log"))).contains(" mounted on ");
    assertNoSecret(dead);
    MountedPmfs.detach(pmfs.mountpoint());
  }

  /** And of one that is broken off meanwhile. */
  @Test
  @OnRequest("jobs")
  void bugreport_ofAHungDaemon_hasTheKernelsView() throws Exception {
    MountedPmfs mount = pmfs.mount(source);
    Command.run("kill", "-STOP", Long.toString(mount.daemon())).expect(0);
    Path hung = report("hung");
    Path file = pmfs.scratch().root().resolve("broken-off.tar.gz");
    Process broken =
        pmfs.start(ProcessBuilder.Redirect.DISCARD, "bugreport", "-o", file.toString());
    Await.until("it has begun", Duration.ofSeconds(30), () -> Files.exists(file));
    Command.run("kill", "-INT", Long.toString(broken.pid())).expect(0);
    assertThat(broken.waitFor()).isEqualTo(130);
    assertThat(file).doesNotExist();
    Command.run("kill", "-CONT", Long.toString(mount.daemon())).expect(0);
    assertThat(text(hung.resolve("problems.txt"))).contains("version.json: no answer within");
    assertThat(text(hung.resolve("mounts/1-mnt/kernel-threads.txt"))).contains("T (stopped)");
    assertNoSecret(hung);
    mount.close();
  }
}
