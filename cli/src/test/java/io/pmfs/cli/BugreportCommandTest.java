package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.cli.bugreport.Unpacked;
import io.pmfs.daemon.dataset.FakeDataset;
import io.pmfs.daemon.process.DaemonLog;
import io.pmfs.machine.ExitStatus;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.Registration;
import io.pmfs.mounts.Registry;
import io.pmfs.posix.Await;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(180)
final class BugreportCommandTest {
  private static final String SECRET = "hunter2/the+cluster=secret";

  @TempDir private Path temporary;
  private TestWorld world;
  private @Nullable FakeDataset dataset;
  private @Nullable CompletableFuture<Integer> daemon;

  @BeforeEach
  void makeWorld() {
    world = new TestWorld(temporary);
    world.makeDirectory("src");
    world.makeDirectory("mnt");
    world.makeDirectory("run");
    world.write("proc/self/limits", "Max open files 1 2 files\n");
  }

  @AfterEach
  void endDaemon() throws Exception {
    FakeDataset served = dataset;
    CompletableFuture<Integer> running = daemon;
    if (served != null && running != null) {
      served.close();
      running.get(30, TimeUnit.SECONDS);
    }
  }

  /** Runs a daemon in a thread, with the present environment of the world. */
  private void mount(String... options) throws Exception {
    TestWorld its = new TestWorld(temporary);
    its.environment.putAll(world.environment);
    its.opener =
        (settings, session) -> {
          FakeDataset opened = new FakeDataset(settings, world);
          dataset = opened;
          return opened;
        };
    String[] line =
        Stream.of(List.of("mount"), List.of(options), List.of("src", "mnt"))
            .flatMap(List::stream)
            .toArray(String[]::new);
    CompletableFuture<Integer> running =
        CompletableFuture.supplyAsync(
            () -> its.execute(line), task -> new Thread(task, "daemon").start());
    daemon = running;
    Await.until("mounted", () -> its.output().contains("mounted on") || running.isDone());
    assertThat(running).as(its.errors()).isNotDone();
  }

  private Map<String, String> report(String... arguments) throws Exception {
    Path file = world.directory.resolve("out.tar.gz");
    Files.deleteIfExists(file);
    String[] line =
        Stream.of(List.of("bugreport", "-o", "out.tar.gz"), List.of(arguments))
            .flatMap(List::stream)
            .toArray(String[]::new);
    assertThat(world.execute(line)).as(world.errors()).isZero();
    return Unpacked.of(Files.readAllBytes(file));
  }

  private static String file(Map<String, String> files, String end) {
    return files.entrySet().stream()
        .filter(e -> e.getKey().endsWith(end))
        .map(Map.Entry::getValue)
        .findFirst()
        .orElseThrow(() -> new AssertionError(end + " is not in " + files.keySet()));
  }

  @Test
  void bugreport_noMount_isWhole() throws Exception {
    Map<String, String> files = report();

    assertThat(file(files, "/mounts.txt")).isEqualTo("0 mounts\n");
    assertThat(file(files, "/machine/limits.txt")).contains("Max open files 1 2");
    assertThat(file(files, "/machine/mount-table.txt")).contains("ext4 /dev/sda1");
    assertThat(file(files, "/pmfs.txt")).startsWith("pmfs ").contains("java.vm.name");
    assertThat(file(files, "/doctor.json")).contains("\"subject\": \"java\"");
    assertThat(file(files, "/README.txt")).contains("doctor.json", "machine/limits.txt");
    assertThat(file(files, "/problems.txt")).isEqualTo("none\n");
  }

  @Test
  void bugreport_unknownMountpoint_isTheLastLine() throws Exception {
    report("nope");

    assertThat(world.errors())
        .isEqualTo(
            "pmfs: %s/nope: pmfs knows no mount there and has no log of one, so the report has nothing of it; pmfs status lists the mounts\n"
                .formatted(world.directory));
  }

  @Test
  void bugreport_itsFile_isPrivateSaidAndNeverOverwritten() throws Exception {
    report();
    Path file = world.directory.resolve("out.tar.gz");
    assertThat(world.output())
        .startsWith("pmfs: " + file + ": ")
        .contains("nothing was sent", "check it before you pass it on")
        .hasLineCount(1);
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
        .isEqualTo("rw-------");

    byte[] before = Files.readAllBytes(file);
    assertThat(world.execute("bugreport", "-o", "out.tar.gz")).isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors())
        .isEqualTo("pmfs: " + file + ": exists already; name another with -o\n");
    assertThat(Files.readAllBytes(file)).isEqualTo(before);

    assertThat(world.execute("bugreport")).isZero();
    try (Stream<Path> there = Files.list(world.directory)) {
      assertThat(there.map(p -> p.getFileName().toString()))
          .anyMatch(n -> n.matches("pmfs-bugreport-[A-Za-z0-9._-]+-\\d{8}T\\d{6}Z\\.tar\\.gz"));
    }
    assertThat(world.execute("bugreport", "-o", "nowhere/x")).isEqualTo(ExitStatus.FAILED);
    assertThat(world.errors()).contains("cannot be written: no such file or directory");
  }

  @Test
  void bugreport_brokenOff_removesItsFileAndAWholeOneStays() throws Exception {
    Path file = world.directory.resolve("out.tar.gz");
    Path mountpoint = world.directory.resolve("mnt");
    try (Registration registration =
            Objects.requireNonNull(world.registry().register(mountpoint), "free");
        ServerSocketChannel silent = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      publishSilent(registration, silent);
      CompletableFuture<Integer> running =
          CompletableFuture.supplyAsync(() -> world.execute("bugreport", "-o", file.toString()));
      Await.until("the command can be stopped", () -> !world.stops.isEmpty());
      assertThat(file).exists();

      assertThat(world.stops.get(0).getAsBoolean()).isTrue();

      assertThat(file).doesNotExist();
      running.get(60, TimeUnit.SECONDS);
    }
    world.stops.clear();
    report();
    assertThat(world.stops.get(0).getAsBoolean()).isTrue();
    assertThat(file).exists();
  }

  /** Registers a daemon that listens and never answers. */
  private void publishSilent(Registration registration, ServerSocketChannel socket)
      throws Exception {
    socket.bind(UnixDomainSocketAddress.of(registration.socket()));
    String path = registration.socket().toString();
    registration.publish(
        DaemonRecord.of(world.directory.resolve("mnt").toString(), "/src", 1, path, "/none.log"));
  }

  @Test
  void bugreport_running_hasWhatTheDaemonSays() throws Exception {
    mount("--fetch-threads", "7");
    Map<String, String> files = report();

    assertThat(file(files, "/mounts.txt")).contains("running", "1 mounts");
    assertThat(file(files, "mounts/1-mnt/status.json")).contains("\"mountpoint\": ");
    assertThat(file(files, "mounts/1-mnt/configuration.json"))
        .contains("\"fetch-threads\"", "\"7\"", "command line");
    assertThat(file(files, "mounts/1-mnt/configuration-here.json")).contains("\"4\"");
    assertThat(file(files, "mounts/1-mnt/threads.txt")).contains("\"daemon\"");
    assertThat(file(files, "mounts/1-mnt/version.json")).contains("\"pid\"");
    assertThat(file(files, "mounts/1-mnt/daemon.log")).contains("mounted on");
    assertThat(report(world.directory.resolve("mnt").toString())).hasSameSizeAs(files);
  }

  @Test
  void bugreport_daemonDied_hasItsLogAndLeavesItsFiles() throws Exception {
    Path log = Files.writeString(world.directory.resolve("run/x.log"), "ERROR it died\n");
    Files.writeString(world.directory.resolve("run/x.log.1"), "older\n");
    Files.writeString(world.directory.resolve("run/left.log"), "left\n");
    Files.writeString(world.directory.resolve("run/hs_err_pid1.log"), "# SIGSEGV\n");
    Path mountpoint = world.directory.resolve("mnt");
    Registration registration =
        Objects.requireNonNull(world.registry().register(mountpoint), "free");
    registration.publish(DaemonRecord.of(mountpoint.toString(), "/src", 1, "/s", log.toString()));
    Path entry = world.directory.resolve("run/" + Registry.nameOf(mountpoint) + ".json");
    String kept = Files.readString(entry);
    registration.close();
    Files.writeString(entry, kept);

    Map<String, String> files = report();

    assertThat(file(files, "/mounts.txt")).contains("DEAD");
    assertThat(file(files, "mounts/1-mnt/daemon.log")).isEqualTo("ERROR it died\n");
    assertThat(file(files, "mounts/1-mnt/daemon.log.1")).isEqualTo("older\n");
    assertThat(file(files, "logs/left.log")).isEqualTo("left\n");
    assertThat(file(files, "logs/hs_err_pid1.log")).contains("SIGSEGV");
    assertThat(files.keySet()).noneMatch(name -> name.endsWith("logs/x.log"));
    assertThat(file(files, "/problems.txt")).contains("has no daemon");
    assertThat(entry).exists();
  }

  @Test
  void bugreport_daemonHangs_isWholeAndSaysSo() throws Exception {
    Path mountpoint = world.directory.resolve("mnt");
    try (Registration registration =
            Objects.requireNonNull(world.registry().register(mountpoint), "free");
        ServerSocketChannel silent = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      publishSilent(registration, silent);
      world.write("proc/1/cmdline", "java\0-Xmx1g\0");
      world.write("proc/1/task/1/comm", "main\n");
      world.write("proc/1/task/1/wchan", "futex_wait_queue");

      Map<String, String> files = report();

      assertThat(file(files, "/problems.txt"))
          .contains("version.json: no answer within 5s", "threads.txt: not requested");
      assertThat(file(files, "mounts/1-mnt/kernel-threads.txt")).contains("futex_wait_queue");
      assertThat(file(files, "mounts/1-mnt/process.txt")).contains("-Xmx1g");
    }
  }

  @Test
  void bugreport_unknownMountpoint_looksForItsLog() throws Exception {
    Path mountpoint = world.directory.resolve("gone");
    Path log =
        DaemonLog.defaultFile(mountpoint, world.directory.resolve("run"), world.surroundings());
    Files.writeString(log, "the end\n");

    Map<String, String> files = report("gone");

    assertThat(file(files, "mounts/1-gone/daemon.log")).isEqualTo("the end\n");
    assertThat(file(files, "/problems.txt")).contains("no daemon of this user is known there");
  }

  @Test
  void bugreport_byRoot_readsNothingOnAUsersWord() throws Exception {
    assumeTrue(world.uid == 0, "needs root");
    Path mountpoint = world.directory.resolve("mnt");
    Path ofAda = world.makeDirectory("run-4711");
    Path ofRoot = Files.writeString(world.directory.resolve("shadow"), "hunter2");
    Files.createSymbolicLink(ofAda.resolve("link.log"), ofRoot);
    Files.writeString(ofAda.resolve("root.log"), "hunter2");
    Files.setAttribute(ofAda, "unix:uid", 4711);
    world.write("proc/1/environ", "PMFS_TIER=hunter2\0");
    try (Registration registration =
        Objects.requireNonNull(Registry.own(ofAda).register(mountpoint), "free")) {
      Files.setAttribute(Files.createFile(registration.socket()), "unix:uid", 4711);
      registration.publish(
          DaemonRecord.of(mountpoint.toString(), "/src", 1, "/x", ofRoot.toString()));
      String socket = registration.socket().toString();
      for (String ending : List.of(".json", ".lock")) {
        Path file = Path.of(socket.replace(".sock", ending));
        Files.setAttribute(file, "unix:uid", 4711);
      }

      Map<String, String> files = report();

      assertThat(file(files, "/mounts.txt")).contains("running");
      assertThat(file(files, "/problems.txt"))
          .contains("shadow: root does not read this user's log", "link.log: not a regular file")
          .contains("root.log: not a file of user 4711");
      files.forEach((name, text) -> assertThat(text).as(name).doesNotContain("hunter2"));
      assertThat(files.keySet()).noneMatch(name -> name.endsWith("mounts/1-mnt/process.txt"));
    }
  }

  /** A secret in every place where a user may have put it. */
  @Test
  void bugreport_secretsEverywhere_noneIsInTheArchive() throws Exception {
    Path secretFile = Files.writeString(world.directory.resolve("cluster.key"), SECRET);
    Files.setPosixFilePermissions(secretFile, PosixFilePermissions.fromString("rw-------"));
    Path config =
        Files.writeString(
            world.directory.resolve("pmfs.toml"),
            "# the secret is %s\ncluster-secret-file = \"%s\"\n".formatted(SECRET, secretFile));
    world.environment.put("PMFS_CONFIG", config.toString());
    world.environment.put("PMFS_CLUSTER_SECRET", SECRET);
    world.environment.put("UNRELATED", SECRET);
    mount("--log-level", "debug");
    String pid = Long.toString(ProcessHandle.current().pid());
    world.write(
        "proc/" + pid + "/environ",
        "PMFS_CLUSTER_SECRET=" + SECRET + "\0OTHER_PASSWORD=second-" + SECRET + "\0X=third\0");
    world.write("proc/" + pid + "/cmdline", "java\0--cluster-secret\0" + SECRET + "\0");
    world.mountinfo(
        TestWorld.line(world.directory.resolve("mnt"), "fuse.pmfs", "https://u:" + SECRET + "@h"));
    world.write("etc/fuse.conf", "password = " + SECRET + "\n");
    Path log =
        DaemonLog.defaultFile(
            world.directory.resolve("mnt"), world.directory.resolve("run"), world.surroundings());
    Files.writeString(
        log,
        "%s is what I was given\ntoken: %s\nsecond-%s\n".formatted(SECRET, SECRET, SECRET),
        StandardOpenOption.APPEND);
    Files.writeString(
        world.directory.resolve("run/hs_err_pid1.log"),
        "# SIGSEGV\nRegister to memory mapping:\n" + SECRET + "\n");
    Files.writeString(
        world.directory.resolve("run/left.log"),
        "-----BEGIN PRIVATE KEY-----\n" + SECRET + "\n-----END PRIVATE KEY-----\n");

    Map<String, String> files = report();

    assertThat(file(files, "mounts/1-mnt/daemon.log")).contains("is what I was given");
    assertThat(files.keySet()).anyMatch(name -> name.endsWith("mounts/1-mnt/environment.txt"));
    files.forEach(
        (name, text) -> assertThat(name + "\n" + text).as(name).doesNotContain("hunter2", "third"));

    // An invalid configuration does not reveal the secret, either.
    Files.writeString(config, "cluster-secret = " + SECRET + "\n");
    report().forEach((name, text) -> assertThat(text).as(name).doesNotContain("hunter2"));
  }
}
