package io.pmfs.it;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A {@code pmfs node-cache}, as an account of its own, and accounts for its users. */
final class NodeCacheBed implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  /**
   * The accounts of the service, of two users in one group, and of a third one: numbers of this
   * process, so that others can have such a bed at the same time. They lie above those that
   * useradd(8) gives, which are one more than the highest below UID_MAX, and among 65536 to 524287,
   * which systemd leaves unused (UIDS-GIDS.md there).
   */
  static final int SERVICE = 65_536 + Math.toIntExact(ProcessHandle.current().pid() % 57_000) * 8;

  static final int ADA = SERVICE + 1;
  static final int BOB = SERVICE + 2;
  static final int EVE = SERVICE + 3;
  private static final int GROUP = SERVICE + 4;
  private static final List<Integer> USERS = List.of(ADA, BOB, EVE);

  private final DeviceForAll device;
  private final List<Integer> accounts = new ArrayList<>();
  private final Map<Integer, String> javaOptions = new HashMap<>();
  private final Scratch code = new Scratch();
  private final Path launcher;
  private final Installation pmfs;
  private final Path socket;
  private @Nullable Process service;

  /** Makes the accounts; the service is to be started. */
  NodeCacheBed() throws IOException {
    Machine.requireRoot();
    Machine.requireFuse();
    Machine.requireCommand("setpriv");
    Machine.requireCommand("useradd");
    Machine.requireCommand("fusermount3");
    device = new DeviceForAll();
    try {
      for (int user : USERS) {
        addAccount(user);
      }
      launcher = Installation.launcherForAll(code);
      pmfs = new Installation(launcher, List.of());
      for (int user : List.of(SERVICE, ADA, BOB, EVE)) {
        Path home = pmfs.directory("home-" + user);
        Files.setPosixFilePermissions(home, PosixFilePermissions.fromString("rwx------"));
        own(user, home);
      }
      Path run = pmfs.directory("cache-run");
      own(SERVICE, run);
      socket = run.resolve("socket");
    } catch (IOException | RuntimeException | AssertionError e) {
      giveBack();
      throw e;
    }
  }

  /** fusermount wants a name; an account of this name is one that a killed run left. */
  private void addAccount(int user) {
    Command.run("userdel", "--force", name(user));
    Command.run("useradd", "-M", "-N", "-u", Integer.toString(user), name(user)).expect(0);
    accounts.add(user);
  }

  private static String name(int user) {
    return "pmfs-it-" + user;
  }

  private static void own(int user, Path directory) {
    Command.run("chown", Integer.toString(user), directory.toString()).expect(0);
  }

  /** From its next start on, a process of the user's asks the switch in this directory. */
  Path makeErrorSwitch(int user) {
    Path process = pmfs.directory("switch-" + user);
    javaOptions.put(user, "-XX:TieredStopAtLevel=1 " + ErrorAgent.option(process));
    own(user, process);
    return process;
  }

  boolean isServing() {
    Process serving = service;
    return serving != null && serving.isAlive();
  }

  Installation pmfs() {
    return pmfs;
  }

  Path launcher() {
    return launcher;
  }

  Path socket() {
    return socket;
  }

  /** The directory of the service's copies. */
  Path copies() {
    return home(SERVICE).resolve("copies");
  }

  private Path home(int user) {
    return pmfs.scratch().root().resolve("home-" + user);
  }

  /** A dataset of a user's, which those of his group may read; the service may not. */
  Dataset dataset(String name, int user, int... sizes) {
    Dataset dataset = Dataset.create(pmfs.directory(name), sizes);
    String root = dataset.root().toString();
    Command.run("chown", "-R", user + ":" + GROUP, root).expect(0);
    Command.run("chmod", "-R", "u=rwX,g=rX,o=", root).expect(0);
    return dataset;
  }

  /** Starts the service, and waits until it answers. */
  void serve(String... options) throws IOException {
    begin(options);
    Await.until("the cache answers", PATIENCE, () -> status().exit() == 0);
  }

  /** Starts the service. */
  void begin(String... options) throws IOException {
    List<String> line = new ArrayList<>(as(SERVICE));
    line.addAll(
        List.of(
            launcher.toString(),
            "node-cache",
            "--socket",
            socket.toString(),
            "--tier",
            "ssd:" + copies() + ":1G",
            "--source-filesystem",
            pmfs.scratch().root().toString()));
    line.addAll(List.of(options));
    service =
        Command.builder(environment(SERVICE), line)
            .redirectErrorStream(true)
            .redirectOutput(
                ProcessBuilder.Redirect.appendTo(
                    pmfs.scratch().root().resolve("cache.log").toFile()))
            .start();
  }

  void kill() {
    Process killed = service;
    if (killed != null) {
      killed.destroyForcibly();
      Await.until("the cache ended", PATIENCE, () -> !killed.isAlive());
    }
  }

  void signal(String name) {
    if (service != null) {
      Command.run("kill", "-" + name, Long.toString(service.pid())).expect(0);
    }
  }

  private Command status() {
    return pmfs.run("node-cache", "--json", "--status", socket.toString());
  }

  /** Whether the service answers, also that one of its threads has failed lately. */
  boolean hasAnswer() {
    Command asked = status();
    return asked.exit() == 0 || (asked.exit() == 4 && asked.err().contains("thread "));
  }

  Status report() {
    return Status.parse(status().expect(0).out());
  }

  private static List<String> as(int user) {
    return OtherUser.prefix(
        Integer.toString(user), Integer.toString(user == ADA || user == BOB ? GROUP : user));
  }

  private Map<String, String> environment(int user) {
    String home = home(user).toString();
    return Map.of(
        "HOME",
        home,
        "PMFS_RUNTIME_DIR",
        home + "/run",
        "PMFS_NODE_CACHE",
        "",
        "PMFS_JAVA_OPTIONS",
        javaOptions.getOrDefault(user, pmfs.environment().getOrDefault("PMFS_JAVA_OPTIONS", "")));
  }

  Command by(int user, String... arguments) {
    return Command.run(environment(user), Command.DEADLINE, line(user, arguments));
  }

  /** A program of the user's that goes on. */
  Process start(int user, Path output, String... arguments) throws IOException {
    return Command.builder(environment(user), line(user, arguments))
        .redirectErrorStream(true)
        .redirectOutput(output.toFile())
        .start();
  }

  private static List<String> line(int user, String... arguments) {
    List<String> line = new ArrayList<>(as(user));
    line.addAll(List.of(arguments));
    return line;
  }

  Path mount(int user, String name, Dataset dataset) {
    Path mountpoint = home(user).resolve(name);
    by(user, "mkdir", "-p", mountpoint.toString()).expect(0);
    by(
            user,
            launcher.toString(),
            "mount",
            "--node-cache",
            socket.toString(),
            "--state-dir",
            home(user).resolve("state-" + name).toString(),
            dataset.root().toString(),
            mountpoint.toString())
        .expect(0);
    return mountpoint;
  }

  /** The status of a user's mount. */
  Status status(int user, Path mountpoint) {
    Command asked = by(user, launcher.toString(), "status", "--json", mountpoint.toString());
    return Status.parse(asked.expect(0).out());
  }

  @Override
  public void close() {
    try {
      kill();
    } finally {
      giveBack();
    }
  }

  private void giveBack() {
    try {
      if (pmfs != null) {
        for (String mountpoint : Mounts.below(pmfs.scratch().root())) {
          Command.run("umount", "-l", mountpoint);
        }
        pmfs.close();
      }
    } finally {
      code.close();
      device.close();
      for (int user : accounts) {
        Command.run("userdel", "--force", name(user));
      }
    }
  }
}
