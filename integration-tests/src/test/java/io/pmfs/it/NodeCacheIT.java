package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** {@code pmfs node-cache}, as an account of its own, and mounts of several users. */
final class NodeCacheIT {
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final int ROUNDS = "all".equals(System.getProperty("pmfs.large")) ? 5 : 2;

  private static final Path FUSE = Path.of("/dev/fuse");

  /** The accounts of the service, of two users in one group, and of a third one. */
  private static final int SERVICE = 54321;

  private static final int ADA = 54322;
  private static final int BOB = 54323;
  private static final int EVE = 54324;
  private static final int GROUP = 54325;

  private Scratch code;
  private Installation pmfs;
  private Path launcher;
  private Dataset dataset;
  private Path socket;
  private Process service;
  private int fuseMode = -1;

  @BeforeEach
  void start() throws IOException {
    Machine.requireRoot();
    Machine.requireFuse();
    Machine.requireCommand("setpriv");
    Machine.requireCommand("useradd");
    Machine.requireCommand("fusermount3");
    fuseMode = Posix.stat(FUSE.toString()).permissions();
    chmodFuse(0666);
    for (int user : List.of(ADA, BOB, EVE)) {
      // fusermount wants a name.
      Command.run("useradd", "-M", "-N", "-u", Integer.toString(user), "pmfs-it-" + user).expect(0);
    }
    code = new Scratch();
    launcher = Installation.launcherForAll(code);
    pmfs = new Installation(launcher, List.of());
    // The service has no right to read it.
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(30, 200_000));
    Command.run("chown", "-R", ADA + ":" + GROUP, dataset.root().toString()).expect(0);
    Command.run("chmod", "-R", "u=rwX,g=rX,o=", dataset.root().toString()).expect(0);
    for (int user : List.of(SERVICE, ADA, BOB, EVE)) {
      Path home = pmfs.directory("home-" + user);
      Files.setPosixFilePermissions(home, PosixFilePermissions.fromString("rwx------"));
      Command.run("chown", Integer.toString(user), home.toString()).expect(0);
    }
    Path run = pmfs.directory("cache-run");
    Command.run("chown", Integer.toString(SERVICE), run.toString()).expect(0);
    socket = run.resolve("socket");
    serve();
  }

  @AfterEach
  void remove() throws InterruptedException {
    try {
      if (service != null) {
        service.destroyForcibly().waitFor();
      }
      if (pmfs != null) {
        for (String mountpoint : Mounts.below(pmfs.scratch().root())) {
          Command.run("umount", "-l", mountpoint);
        }
        pmfs.close();
      }
    } finally {
      if (code != null) {
        code.close();
      }
      if (fuseMode >= 0) {
        chmodFuse(fuseMode);
        for (int user : List.of(ADA, BOB, EVE)) {
          Command.run("userdel", "--force", "pmfs-it-" + user);
        }
      }
    }
  }

  private static void chmodFuse(int mode) {
    Posix.check(Posix.result(Posix.LIBC.chmod(Posix.c(FUSE.toString()), mode)));
  }

  private static List<String> as(int user) {
    return List.of("setpriv", "--reuid=" + user, "--regid=" + group(user), "--clear-groups");
  }

  private static int group(int user) {
    return user == ADA || user == BOB ? GROUP : user;
  }

  private Map<String, String> environment(int user) {
    String home = pmfs.scratch().root().resolve("home-" + user).toString();
    return Map.of("HOME", home, "PMFS_RUNTIME_DIR", home + "/run", "PMFS_CACHE", "");
  }

  private void serve() throws IOException {
    List<String> line = new ArrayList<>(as(SERVICE));
    line.addAll(
        List.of(
            launcher.toString(),
            "node-cache",
            "--socket",
            socket.toString(),
            "--tier",
            "ssd:" + pmfs.scratch().root().resolve("home-" + SERVICE + "/copies") + ":1G",
            "--source-filesystem",
            pmfs.scratch().root().toString()));
    service =
        Command.builder(environment(SERVICE), line)
            .redirectErrorStream(true)
            .redirectOutput(
                ProcessBuilder.Redirect.appendTo(
                    pmfs.scratch().root().resolve("cache.log").toFile()))
            .start();
    Await.until("the cache answers", PATIENCE, () -> status().exit() == 0);
  }

  private void signal(String name) {
    Command.run("kill", "-" + name, Long.toString(service.pid())).expect(0);
  }

  private Command status() {
    return pmfs.run("node-cache", "--json", "--status", socket.toString());
  }

  private Status report() {
    return Status.parse(status().expect(0).out());
  }

  private Command by(int user, String... arguments) {
    List<String> line = new ArrayList<>(as(user));
    line.addAll(List.of(arguments));
    return Command.run(environment(user), Command.DEADLINE, line);
  }

  private Path mount(int user, String name) throws IOException {
    Path home = pmfs.scratch().root().resolve("home-" + user);
    by(user, "mkdir", home.resolve(name).toString()).expect(0);
    by(
            user,
            launcher.toString(),
            "mount",
            "--cache",
            socket.toString(),
            "--state-dir",
            home.resolve("state-" + name).toString(),
            dataset.root().toString(),
            home.resolve(name).toString())
        .expect(0);
    return home.resolve(name);
  }

  private void assertReadRight(int user, Path mountpoint) {
    by(user, "diff", "-r", dataset.root().toString(), mountpoint.toString()).expect(0);
  }

  private long sourceBytes(int user, Path mountpoint) {
    Command status = by(user, launcher.toString(), "status", "--json", mountpoint.toString());
    return Status.parse(status.expect(0).out()).number("sourceOperations.bytes");
  }

  @Test
  void mounts_ofThreeUsers_shareCopiesAndNobodyReadsMore() throws IOException {
    List<Path> ofAda = new ArrayList<>();
    for (String name : List.of("a", "b", "c", "d")) {
      ofAda.add(mount(ADA, name));
    }
    List<Path> ofBob = List.of(mount(BOB, "a"), mount(BOB, "b"));

    for (Path mountpoint : ofAda) {
      assertReadRight(ADA, mountpoint);
      assertThat(sourceBytes(ADA, mountpoint)).isZero();
    }
    for (Path mountpoint : ofBob) {
      assertReadRight(BOB, mountpoint);
      assertThat(sourceBytes(BOB, mountpoint)).isZero();
    }
    assertThat(report().number("copiedBytes")).isEqualTo(dataset.bytes());
    assertThat(report().number("failed")).isZero();

    assertThat(by(EVE, "cat", dataset.root().resolve("x").toString()).err())
        .contains("Permission denied");
    Command refused =
        by(
            EVE,
            launcher.toString(),
            "mount",
            "--cache",
            socket.toString(),
            dataset.root().toString(),
            pmfs.directory("nowhere").toString());
    assertThat(refused.exit()).isEqualTo(2);
    assertThat(refused.err()).contains("permission denied");
    Path copies = pmfs.scratch().root().resolve("home-" + SERVICE + "/copies");
    for (int user : List.of(ADA, BOB, EVE)) {
      assertThat(by(user, "ls", copies.toString()).err()).contains("Permission denied");
    }
  }

  @Test
  void kill9_ofTheService_failsNoRead_andMountsUseTheNextOne() throws Exception {
    // More files than a mount keeps open: it asks again for most of them.
    Dataset many = Dataset.create(pmfs.directory("many"), Dataset.sizes(1000, 10_000));
    try (MountedPmfs mount = pmfs.mount(many.root(), "--cache", socket.toString());
        Readers readers = new Readers(many, mount.mountpoint(), 4, List.of())) {
      for (int round = 0; round < ROUNDS; round++) {
        long before = readers.reads();
        readers.awaitMore(20);
        service.destroyForcibly().waitFor();
        readers.awaitMore(20);
        serve();
        Machine.dropCaches();
        Await.until(
            "the mount asks the next service",
            PATIENCE,
            () -> report().number("answered") > 0 || readers.failures() > 0);
        readers.assertNoFailures();
        assertThat(readers.reads()).isGreaterThan(before);
      }
      // One that hangs fails no read either.
      signal("STOP");
      readers.awaitMore(50);
      signal("CONT");
      readers.awaitMore(50);
      readers.assertNoFailures();
    }
  }
}
