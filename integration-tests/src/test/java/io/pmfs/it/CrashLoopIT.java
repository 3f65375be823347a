package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What readers find after a daemon has died too often: the source itself, but only where nobody may
 * read more than before.
 */
final class CrashLoopIT {
  private static final Duration PATIENCE = Duration.ofMinutes(2);
  private static final int FILES = 30;

  @Installed(byRoot = true)
  private Installation pmfs;

  private Dataset dataset;
  private Path closed;

  @BeforeEach
  void makeSource() throws IOException {
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(FILES, 50_000));
    closed = dataset.root().resolve("closed");
    Files.writeString(closed, "of root's");
    Files.setPosixFilePermissions(closed, PosixFilePermissions.fromString("rw-------"));
    pmfs.environment("PMFS_CRASH_LIMIT", "0");
  }

  private Path log(MountedPmfs mount) {
    return Path.of(mount.status().text("logFile"));
  }

  private static String read(Path file) {
    return new String(Dataset.read(file), UTF_8);
  }

  /** Kills the daemon, and waits until the supervisor has done what it does then, and ended. */
  private static void crash(MountedPmfs mount) {
    mount.killDaemon();
    Await.until("the supervisor ended", PATIENCE, () -> !mount.isSupervised());
    mount.ended();
  }

  private List<String> records() {
    return Installation.files(pmfs.scratch().root().resolve("run")).stream()
        .map(Path::toString)
        .filter(file -> file.endsWith(".standin"))
        .toList();
  }

  @Test
  void crashLoop_ofAMountForAll_readersGoOnFromTheSource() throws Exception {
    pmfs.environment("PMFS_CRASH_LIMIT", "1");
    String place = pmfs.mountpoint().toString();
    MountedPmfs mount = pmfs.mount(dataset.root(), "--allow-other");
    dataset.assertEqualBelow(mount.mountpoint());
    mount.awaitCopies(FILES);
    Path log = log(mount);
    AtomicBoolean ends = new AtomicBoolean();
    AtomicInteger missing = new AtomicInteger();
    Thread reader =
        DaemonThread.of(
            "reader",
            () -> {
              Path file = mount.mountpoint().resolve(dataset.items().get(3).name());
              while (!ends.get()) {
                try (var open = Files.newInputStream(file)) {
                  open.read();
                } catch (NoSuchFileException e) {
                  missing.incrementAndGet();
                } catch (IOException e) {
                  // It asked the daemon that died.
                }
              }
            });
    reader.start();
    long first = mount.daemon();
    mount.killDaemon();
    mount.awaitSuccessor(first);
    crash(mount);
    ends.set(true);
    reader.join();

    assertThat(missing).as("how often the directory was empty").hasValue(0);
    dataset.assertEqualBelow(mount.mountpoint());
    assertThat(Mounts.count(mount.mountpoint())).isEqualTo(1);
    assertThat(Mounts.options(mount.mountpoint())).startsWith("ro,nosuid,nodev");
    assertThat(Command.run("touch", place + "/new").err()).contains("Read-only file system");
    assertThat(OtherUser.run("cat", place + "/" + dataset.items().get(0).name()).exit()).isZero();
    assertThat(OtherUser.run("cat", place + "/closed").err()).contains("Permission denied");
    assertThat(read(log))
        .containsOnlyOnce(
            "the daemon died 2 times in 60 s: its source is mounted in its place, read-only and"
                + " without copies: "
                + place);
    assertStatusSaysIt(log);
    assertCommandsSayIt();

    assertThat(pmfs.run("umount", place).expect(0).err()).isEmpty();
    assertThat(Mounts.at(mount.mountpoint())).isFalse();
    assertThat(mount.mountpoint()).isEmptyDirectory();
    assertThat(records()).isEmpty();
    assertThat(pmfs.run("status").expect(0).out()).contains("No mounts.");
    try (MountedPmfs again = pmfs.mount(dataset.root(), "--allow-other")) {
      dataset.assertEqualBelow(again.mountpoint());
      assertThat(again.status().number("sourceOperations.reads")).as("copies are used").isZero();
    }
  }

  private void assertStatusSaysIt(Path log) {
    String place = pmfs.mountpoint().toString();
    for (List<String> what :
        List.of(
            List.of("status", place), List.of("status"), List.of("status", place + "/part-000"))) {
      Command status = pmfs.run(what.toArray(String[]::new)).expect(4);
      assertThat(status.out())
          .startsWith(dataset.root() + " on " + place + "\n")
          .contains("died 2 times within a minute")
          .contains("no copies are used")
          .contains("pmfs umount " + place);
      assertThat(status.err()).contains(place + ": all reads go to the source: its daemon died");
    }
    Status json = Status.parse(pmfs.run("status", "--json", place).expect(4).out());
    assertThat(json.text("bridge")).isEqualTo("none");
    assertThat(json.number("pid")).isZero();
    assertThat(json.text("source")).isEqualTo(dataset.root().toString());
    assertThat(json.text("engagement.state")).isEqualTo("source-only");
    assertThat(json.text("logFile")).isEqualTo(log.toString());
  }

  private void assertCommandsSayIt() {
    String place = pmfs.mountpoint().toString();
    assertThat(pmfs.run("stage", place).expect(3).err())
        .contains("the source itself is mounted here");
    assertThat(pmfs.run("upgrade", place).expect(3).err())
        .contains("the source itself is mounted here");
    String[] mounting = pmfs.mountArguments(dataset.root(), pmfs.mountpoint());
    assertThat(pmfs.run(mounting).expect(2).err())
        .contains("the source itself is mounted here")
        .contains("pmfs umount " + place);
    dataset.assertEqualBelow(pmfs.mountpoint());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "closed to others     |                     | without --allow-other it is closed",
        "writable             | --writable          | it is writable",
        "tar files            | --source-form=tar   | it shows the content of tar files",
        "replaced by another  |                     | is not the directory that was mounted",
        "away                 |                     | cannot be opened: ENOENT",
        "partly mounted       |                     | /inner is mounted below its source",
        "silent               |                     | cannot be opened: not done within 15 s"
      })
  void crashLoop_whereRightsOrContentWouldDiffer_isUnmounted(
      String what, String option, String reason) throws Exception {
    // All end in one way; "away" and "silent" are a source that cannot be opened.
    Requested.assume("cases", !List.of("away", "silent", "tar files").contains(what), "");
    Path source = dataset.root();
    Path aside = source.resolveSibling("aside");
    if (what.equals("tar files")) {
      source = pmfs.directory("tar");
      Command.run(
              "tar",
              "-cf",
              source.resolve("x.tar").toString(),
              "-C",
              dataset.root().toString(),
              ".")
          .expect(0);
    }
    if (what.equals("partly mounted")) {
      Path inner = Files.createDirectory(source.resolve("inner"));
      Command.run("mount", "-t", "tmpfs", "inner", inner.toString()).expect(0);
    }
    List<String> options = new ArrayList<>();
    if (option != null) {
      options.add(option);
    }
    if (!what.equals("closed to others")) {
      options.add("--allow-other");
    }
    MountedPmfs mount = pmfs.mount(source, options.toArray(String[]::new));
    Path log = log(mount);
    Process silent = null;
    try {
      switch (what) {
        case "replaced by another" -> {
          Files.move(source, aside);
          Dataset.create(source, Dataset.sizes(3, 100));
        }
        case "away" -> Files.move(source, aside);
        case "silent" -> silent = silence(source);
        default -> {}
      }
      crash(mount);
    } finally {
      if (what.equals("partly mounted")) {
        Command.run("umount", "-l", source.resolve("inner").toString());
      }
      if (silent != null) {
        silent.destroyForcibly().waitFor();
        Command.run("umount", "-l", source.toString());
      }
    }
    assertThat(Mounts.at(mount.mountpoint())).isFalse();
    assertThat(mount.mountpoint()).isEmptyDirectory();
    assertThat(pmfs.run("status", mount.mountpoint().toString()).exit()).isEqualTo(3);
    assertThat(read(log))
        .containsOnlyOnce(
            "died 1 times in 60 s: unmounting; the source is not mounted in its place: ")
        .contains(reason);
    assertThat(records()).isEmpty();
  }

  /** Nothing that takes Java can be done then: not what unmounts by descriptor either. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void crashLoop_whereJavaDoesNotStartAnyMore_isUnmountedWhereOnlyRootChangesNames(boolean isRoots)
      throws Exception {
    Path java = pmfs.directory("java");
    Path broken = java.resolve("broken");
    Path program = Files.createDirectory(java.resolve("bin")).resolve("java");
    Files.writeString(java.resolve("release"), "JAVA_VERSION=\"17.0.1\"\n");
    Files.writeString(
        program,
        "#!/bin/sh\n[ ! -e %s ] || exit 1\nexec %s \"$@\"\n"
            .formatted(broken, Path.of(System.getProperty("java.home"), "bin", "java")));
    Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwxr-xr-x"));
    pmfs.environment("PMFS_JAVA", program.toString());
    Path place = pmfs.mountpoint();
    MountedPmfs mount = pmfs.mount(dataset.root(), "--allow-other");
    Path log = log(mount);
    if (!isRoots) {
      Command.run("chown", "65534", pmfs.scratch().root().toString()).expect(0);
    }

    Files.createFile(broken);
    crash(mount);

    Command.run("chown", "0", pmfs.scratch().root().toString()).expect(0);
    assertThat(Mounts.at(place)).isEqualTo(!isRoots);
    assertThat(read(log)).contains("died 1 times in 60 s: unmounting");
    if (isRoots) {
      assertThat(place).isEmptyDirectory();
      assertThat(read(log)).doesNotContain("not unmounted");
    } else {
      assertThat(read(log)).contains("not unmounted: ", "run umount -l " + place);
      Command.run("umount", "-l", place.toString()).expect(0);
    }
  }

  /** What started it, such as systemd or a container, may mount again. */
  @Test
  @OnRequest("cases")
  void crashLoop_inTheForeground_isUnmounted() throws Exception {
    Process process = pmfs.mountInForeground(dataset.root(), "--allow-other");
    try {
      String json = pmfs.run("status", "--json", pmfs.mountpoint().toString()).expect(0).out();
      Command.run("kill", "-KILL", Long.toString(Status.parse(json).number("pid"))).expect(0);
      assertThat(process.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
      assertThat(process.exitValue()).isEqualTo(1);
      assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
      assertThat(read(Path.of(Status.parse(json).text("logFile"))))
          .contains("the source is not mounted in its place: in the foreground");
    } finally {
      process.destroyForcibly();
    }
  }

  /** A file system that never answers, until the process that holds it ends. */
  private static Process silence(Path source) throws IOException {
    Process silent =
        new ProcessBuilder(
                "bash",
                "-c",
                "exec 3<>/dev/fuse; mount -i -t fuse"
                    + " -o fd=3,rootmode=40000,user_id=0,group_id=0 silent \"$1\" &&"
                    + " exec sleep 300",
                "-",
                source.toString())
            .start();
    Await.until("a silent source", PATIENCE, () -> Mounts.at(source));
    return silent;
  }

  @Test
  @OnRequest("cases")
  void crashLoop_ofSeveralMountPoints_showsTheSourceAtEachWithItsOwnFlags() {
    Path second = pmfs.directory("second");
    MountedPmfs mount = pmfs.mount(dataset.root(), "--allow-other", "--linger", "1h");
    pmfs.environment("PMFS_MOUNT_FLAGS", "noexec");
    pmfs.run(pmfs.mountArguments(dataset.root(), second, "--allow-other")).expect(0);
    pmfs.environment("PMFS_MOUNT_FLAGS", "");

    crash(mount);

    for (Path place : List.of(mount.mountpoint(), second)) {
      dataset.assertEqualBelow(place);
      assertThat(Mounts.options(place).contains("noexec")).isEqualTo(place.equals(second));
    }
    assertThat(Mounts.below(pmfs.scratch().root().resolve("run"))).as("for --linger").isEmpty();
    pmfs.run("umount", second.toString()).expect(0);
    dataset.assertEqualBelow(mount.mountpoint());
    assertThat(pmfs.run("status", second.toString()).exit()).isEqualTo(3);
    // By any program; then pmfs does not know it any more.
    Command.run("umount", mount.mountpoint().toString()).expect(0);
    assertThat(pmfs.run("status", mount.mountpoint().toString()).exit()).isEqualTo(3);
    try (MountedPmfs again = pmfs.mount(dataset.root(), "--allow-other")) {
      dataset.assertEqualBelow(again.mountpoint());
      assertThat(records()).isEmpty();
    }
  }

  @Test
  @OnRequest("cases")
  void umount_ofTheSourceInUse_namesWhoUsesIt() throws Exception {
    MountedPmfs mount = pmfs.mount(dataset.root(), "--allow-other");
    String place = mount.mountpoint().toString();
    crash(mount);
    Process user =
        new ProcessBuilder("sleep", "300").directory(mount.mountpoint().toFile()).start();
    try {
      assertThat(pmfs.run("umount", place).expect(1).err())
          .contains("busy")
          .contains(Long.toString(user.pid()));
      assertThat(pmfs.run("umount", "--lazy", "--purge", place).expect(4).err())
          .contains("nothing was purged");
      assertThat(Mounts.at(mount.mountpoint())).isFalse();
    } finally {
      user.destroyForcibly().waitFor();
    }
  }
}
