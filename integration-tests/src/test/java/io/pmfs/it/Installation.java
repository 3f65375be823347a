package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.pmfs.posix.Await;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * One pmfs with its own home, runtime and tier directories, which stay from one mount to the next;
 * its state lies where it lies for a user, in the tier. Close removes all of it, whatever is still
 * mounted.
 */
final class Installation implements AutoCloseable {
  static {
    // A guest uses the one that its host has made.
    if (!Machine.isEmulated()) {
      archiveClasses();
    }
  }

  private final Scratch scratch;
  private final Path launcher;
  private final List<String> prefix;
  private final Map<String, String> environment = new HashMap<>();
  private final List<MountedPmfs> mounts = new ArrayList<>();

  Installation() {
    this(launcherOfCheckout(), List.of());
  }

  /**
   * An installation that somebody else runs.
   *
   * @param prefix the command that runs commands as that user; its words are those of each time
   */
  Installation(Path launcher, List<String> prefix) {
    this.launcher = launcher;
    this.prefix = prefix;
    if (!Files.isExecutable(launcher)) {
      throw new AssertionError("no launcher at " + launcher + ": build the module cli first");
    }
    this.scratch = new Scratch();
    for (String inherited : System.getenv().keySet()) {
      if (inherited.startsWith("PMFS_") || inherited.startsWith("XDG_")) {
        environment.put(inherited, "");
      }
    }
    if (Machine.isEmulated()) {
      environment.put("PMFS_WATCHDOG", "300");
    }
    if (!Requested.is("modes")) {
      // Most daemons here live for seconds, and would spend a third of them on compiling well.
      environment.put("PMFS_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1");
    }
    environment.put("HOME", directory("home").toString());
    environment.put("PMFS_RUNTIME_DIR", privateDirectory("run").toString());
    privateDirectory("tier");
    directory("mnt");
  }

  static Path launcherOfCheckout() {
    return Path.of(System.getProperty("pmfs.launcher", "../scripts/pmfs")).toAbsolutePath();
  }

  /**
   * As packages do, once for all processes of tests and each build. Without the archive daemons and
   * commands start more slowly, and that is all.
   */
  private static void archiveClasses() {
    Path application = launcherOfCheckout().resolveSibling("../cli/target/pmfs").normalize();
    Path archive = application.resolve("classes.jsa");
    try (FileChannel lock =
        FileChannel.open(application.resolveSibling("classes.lock"), CREATE, WRITE)) {
      lock.lock();
      if (!Files.exists(archive) || isOlder(archive, application.resolve("lib"))) {
        String script = launcherOfCheckout().resolveSibling("archive-classes").toString();
        Command.run(Map.of(), Duration.ofMinutes(10), List.of(script));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static boolean isOlder(Path archive, Path libraries) throws IOException {
    FileTime made = Files.getLastModifiedTime(archive);
    try (Stream<Path> paths = Files.walk(libraries)) {
      for (Path path : (Iterable<Path>) paths::iterator) {
        if (Files.getLastModifiedTime(path).compareTo(made) > 0) {
          return true;
        }
      }
      return false;
    }
  }

  /**
   * The checkout's launcher where all users get to, which is not so below /root; for root.
   *
   * @param place takes a view of the application, and not a copy of its 100 MB
   */
  static Path launcherForAll(Scratch place) {
    Path launcher = launcherOfCheckout();
    Path scripts = place.directory("scripts");
    for (String name :
        List.of("pmfs", "pmfs-supervise", "pmfs-for-user", "pmfs-paths", "pmfs-run")) {
      Command.run("cp", launcher.resolveSibling(name).toString(), scripts.toString()).expect(0);
    }
    place.readOnlyBind(
        "cli/target/pmfs", launcher.resolveSibling("../cli/target/pmfs").normalize());
    return scripts.resolve(launcher.getFileName());
  }

  /** The variables of all commands. */
  Map<String, String> environment() {
    return Map.copyOf(environment);
  }

  /** Sets a variable for all commands from now on. */
  Installation environment(String name, String value) {
    environment.put(name, value);
    return this;
  }

  Scratch scratch() {
    return scratch;
  }

  Path directory(String name) {
    return scratch.directory(name);
  }

  private Path privateDirectory(String name) {
    Path directory = directory(name);
    Posix.check(Posix.result(Posix.LIBC.chmod(Posix.c(directory.toString()), 0700)));
    return directory;
  }

  Path tier() {
    return scratch.root().resolve("tier");
  }

  /**
   * Where the state is as long as a mount names no other place: whatever takes the tier takes it.
   */
  Path state() {
    return tier().resolve("state");
  }

  /** The files of the tier that are not the state's. */
  List<Path> copies() {
    return files(tier()).stream().filter(file -> !file.startsWith(state())).toList();
  }

  Path mountpoint() {
    return scratch.root().resolve("mnt");
  }

  /** Gives the private directories to the user who is going to run the commands. */
  void giveTo(int uid, int gid) {
    for (String name : List.of("home", "run", "tier", "mnt")) {
      byte[] path = Posix.c(scratch.root().resolve(name).toString());
      Posix.check(Posix.result(Posix.LIBC.chown(path, uid, gid)));
    }
  }

  Command run(String... arguments) {
    return run(Command.DEADLINE, arguments);
  }

  Command run(Duration deadline, String... arguments) {
    return Command.run(environment, deadline, line(arguments));
  }

  /** Runs another program, which may call pmfs, with this installation's environment and more. */
  Command program(Map<String, String> more, Duration deadline, String... line) {
    Map<String, String> all = new HashMap<>(environment);
    all.putAll(more);
    return Command.run(all, deadline, List.of(line));
  }

  /** Runs a command on a terminal, which {@code program}, a Python script, makes for it. */
  Command runOnTerminal(String program, List<String> options, String... arguments) {
    List<String> line = new ArrayList<>(List.of("python3", "-c", program));
    line.addAll(options);
    line.addAll(line(arguments));
    return Command.run(environment, Command.DEADLINE, line);
  }

  /** Starts a command whose errors are thrown away. */
  Process start(ProcessBuilder.Redirect output, String... arguments) {
    return start(output, ProcessBuilder.Redirect.DISCARD, arguments);
  }

  Process start(
      ProcessBuilder.Redirect output, ProcessBuilder.Redirect errors, String... arguments) {
    try {
      return Command.builder(environment, line(arguments))
          .redirectOutput(output)
          .redirectError(errors)
          .start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private List<String> line(String... arguments) {
    List<String> line = new ArrayList<>(prefix);
    line.add(launcher.toString());
    line.addAll(Arrays.asList(arguments));
    return line;
  }

  /** The arguments of a mount with this installation's directories where the options name none. */
  String[] mountArguments(Path source, Path mountpoint, String... options) {
    List<String> given = List.of(options);
    List<String> arguments =
        new ArrayList<>(List.of("mount", source.toString(), mountpoint.toString()));
    if (!given.contains("--tier") && !given.contains("--node-cache")) {
      arguments.addAll(List.of("--tier", "ssd:" + tier()));
    }
    if (!given.contains("--keep-free")) {
      arguments.addAll(List.of("--keep-free", "0"));
    }
    if (Machine.isEmulated()) {
      arguments.addAll(List.of("--ready-timeout", "300s"));
    }
    arguments.addAll(given);
    return arguments.toArray(String[]::new);
  }

  /** Mounts in the background, as a job script does, for at most two minutes. */
  MountedPmfs mount(Path source, String... options) {
    return mount(Duration.ofMinutes(2), source, options);
  }

  MountedPmfs mount(Duration lifetime, Path source, String... options) {
    Command mounted = run(mountArguments(source, mountpoint(), options));
    if (mounted.exit() != 0 && Mounts.at(mountpoint())) {
      MountedPmfs.detach(mountpoint());
    }
    mounted.expect(0);
    assertThat(Mounts.at(mountpoint())).as("mounted after: %s", mounted).isTrue();
    MountedPmfs mount = new MountedPmfs(this, source, mountpoint(), lifetime, mounted.out());
    mounts.add(mount);
    return mount;
  }

  /** Mounts with {@code --foreground}; answers the process when the mount is there. */
  Process mountInForeground(Path source, String... options) {
    List<String> given = new ArrayList<>(List.of(options));
    given.add("--foreground");
    String[] arguments = mountArguments(source, mountpoint(), given.toArray(String[]::new));
    try {
      // As in a terminal: a shell's background jobs, of which this may be one, ignore SIGINT, and
      // what nohup started SIGHUP, and what they start does so too.
      List<String> line = new ArrayList<>(List.of("env", "--default-signal=INT,HUP"));
      line.addAll(line(arguments));
      Process process =
          Command.builder(environment, line)
              .redirectErrorStream(true)
              .redirectOutput(scratch.root().resolve("foreground.log").toFile())
              .start();
      Await.until(
          "mount in the foreground",
          Duration.ofSeconds(60),
          () -> Mounts.at(mountpoint()) || !process.isAlive());
      assertThat(process.isAlive()).as("pmfs in the foreground runs").isTrue();
      return process;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The control socket of a mount, in the runtime directory of the user who serves it. */
  Path controlSocket(Path mountpoint) {
    for (Path directory : matches(scratch.root(), "run*")) {
      for (Path description : matches(directory, "*.json")) {
        String json = new String(Dataset.read(description), UTF_8);
        JsonObject mount = JsonParser.parseString(json).getAsJsonObject();
        if (mount.get("mountpoint").getAsString().equals(mountpoint.toString())) {
          return Path.of(mount.get("socket").getAsString());
        }
      }
    }
    throw new AssertionError("nobody serves " + mountpoint);
  }

  private static List<Path> matches(Path directory, String glob) {
    List<Path> matches = new ArrayList<>();
    try (DirectoryStream<Path> found = Files.newDirectoryStream(directory, glob)) {
      found.forEach(matches::add);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return matches;
  }

  /** The plain files below a directory of this installation; a daemon may remove some meanwhile. */
  static List<Path> files(Path directory) {
    List<Path> files = new ArrayList<>();
    try {
      Files.walkFileTree(
          directory,
          new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
              if (attributes.isRegularFile()) {
                files.add(file);
              }
              return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
              if (e instanceof NoSuchFileException && !file.equals(directory)) {
                return FileVisitResult.CONTINUE;
              }
              throw e;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path left, @Nullable IOException e)
                throws IOException {
              return e == null || e instanceof NoSuchFileException
                  ? FileVisitResult.CONTINUE
                  : super.postVisitDirectory(left, e);
            }
          });
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return files;
  }

  @Override
  public void close() {
    for (MountedPmfs mount : mounts) {
      mount.abandon();
    }
    Mounts.below(scratch.root()).forEach(m -> MountedPmfs.detach(Path.of(m)));
    scratch.close();
  }
}
