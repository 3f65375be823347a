package io.pmfs.it;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/**
 * A temporary directory with mounts of its own. Close unmounts and removes them; with
 * PMFS_KEEP_SCRATCH=1 in the environment the directory stays, to be looked at.
 */
final class Scratch implements AutoCloseable {
  private static final String PREFIX = "pmfs-it-";

  private final Path root;
  private final Deque<Path> mounts = new ArrayDeque<>();
  private final Thread atExit = new Thread(this::remove, "remove scratch");

  Scratch() {
    this(Path.of(System.getProperty("java.io.tmpdir")));
  }

  Scratch(Path parent) {
    try {
      root = Files.createTempDirectory(parent, PREFIX + run()).toRealPath();
      // Other users must get as far as to be refused by what lies below.
      Files.setPosixFilePermissions(root, PosixFilePermissions.fromString("rwxr-xr-x"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    // For a run that is interrupted.
    Runtime.getRuntime().addShutdownHook(atExit);
  }

  /** scripts/test knows by it which mounts its tests have left. */
  private static String run() {
    String run = System.getenv("PMFS_TEST_RUN");
    return run == null ? "" : run + "-";
  }

  /** Whether a directory is one of these, by its name. */
  static boolean isOne(Path directory) {
    return directory.getFileName().toString().startsWith(PREFIX);
  }

  Path root() {
    return root;
  }

  Path directory(String name) {
    try {
      return Files.createDirectories(root.resolve(name));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A directory with a memory file system mounted on it, for which it takes root. */
  Path tmpfs(String name, String options) {
    Path directory = directory(name);
    mount(directory, "-t", "tmpfs", "-o", options, "tmpfs", directory.toString());
    return directory;
  }

  /** A read-only view of a directory, for which it takes root. */
  Path readOnlyBind(String name, Path of) {
    Path directory = directory(name);
    mount(directory, "--bind", of.toString(), directory.toString());
    Command.run("mount", "-o", "remount,bind,ro", directory.toString()).expect(0);
    return directory;
  }

  /** A directory whose mounts are seen in other mount namespaces, for which it takes root. */
  Path sharedBind(String name) {
    Path directory = directory(name);
    mount(directory, "--bind", "--make-rshared", directory.toString(), directory.toString());
    return directory;
  }

  /**
   * A directory that is a mount of its own, which other mount namespaces do not follow: each may
   * mount over it. For which it takes root.
   */
  Path privateBind(String name) {
    Path directory = directory(name);
    mount(directory, "--bind", "--make-private", directory.toString(), directory.toString());
    return directory;
  }

  /** From now on mounts in this directory are seen in mount namespaces that are made later. */
  void shareMounts() {
    mount(root, "--bind", "--make-rshared", root.toString(), root.toString());
  }

  private void mount(Path directory, String... arguments) {
    List<String> line = new java.util.ArrayList<>(List.of("mount"));
    line.addAll(List.of(arguments));
    Command.run(line.toArray(String[]::new)).expect(0);
    mounts.push(directory);
  }

  @Override
  public void close() {
    remove();
    Runtime.getRuntime().removeShutdownHook(atExit);
  }

  private void remove() {
    while (!mounts.isEmpty()) {
      Command.run("umount", "-l", mounts.pop().toString());
    }
    Mounts.below(root).forEach(m -> Command.run("umount", "-l", m));
    if (!"1".equals(System.getenv("PMFS_KEEP_SCRATCH"))) {
      removeTree();
    }
  }

  /** Does not wait for the end: thousands of files take seconds. */
  private void removeTree() {
    try {
      new ProcessBuilder("rm", "-rf", "--one-file-system", root.toString())
          .redirectOutput(ProcessBuilder.Redirect.DISCARD)
          .redirectError(ProcessBuilder.Redirect.DISCARD)
          .start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
