package io.pmfs.places;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.NativeText;
import io.pmfs.machine.Reason;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The environment in which a command runs; tests substitute their own.
 *
 * @param environment variables by name
 * @param workingDirectory the base of relative paths
 * @param uid the effective user
 * @param userName that user's name
 * @param root the directory that contains proc, dev and etc: / except in tests
 * @param tierKinds the kinds of tiers that may be configured
 */
public record Surroundings(
    Map<String, String> environment,
    Path workingDirectory,
    long uid,
    String userName,
    Path root,
    List<TierKind> tierKinds) {

  /** The kernel's limit, path_resolution(7). */
  private static final int MAX_LINKS = 40;

  /**
   * The variable of the launcher's working directory; its daemon runs in /, so that it pins no file
   * system.
   */
  public static final String LAUNCH_DIRECTORY = "PMFS_LAUNCH_DIR";

  public Surroundings(
      Map<String, String> environment,
      Path workingDirectory,
      long uid,
      String userName,
      Path root) {
    this(environment, workingDirectory, uid, userName, root, TierKind.ALL);
  }

  public static Surroundings real() throws IOException {
    Map<String, String> environment = NativeText.environment();
    String launched = environment.get(LAUNCH_DIRECTORY);
    Path directory = Path.of(launched == null || launched.isEmpty() ? "" : launched);
    long uid = ((Integer) Files.getAttribute(Path.of("/proc/self"), "unix:uid")).longValue();
    return new Surroundings(
        environment, directory.toAbsolutePath(), uid, userName(environment, uid), Path.of("/"));
  }

  /**
   * From the user database and not the environment, because sudo and su may keep the environment of
   * another user.
   */
  private static String userName(Map<String, String> environment, long uid) throws IOException {
    String known = Files.getOwner(Path.of("/proc/self")).getName();
    if (!known.equals(Long.toString(uid)) && !known.contains("/")) {
      return known;
    }
    String user = environment.getOrDefault("USER", environment.getOrDefault("LOGNAME", ""));
    return user.isEmpty() || user.contains("/") ? Long.toString(uid) : user;
  }

  public boolean isRoot() {
    return uid == 0;
  }

  /**
   * Whether programs must not be executed in the mount; scripts/mount.pmfs sets this for noexec.
   */
  public boolean forbidsExecution() {
    return "noexec".equals(variable("PMFS_MOUNT_FLAGS"));
  }

  /** A variable, or null when unset or empty. */
  public @Nullable String variable(String name) {
    String value = environment.get(name);
    return value == null || value.isEmpty() ? null : value;
  }

  /** An absolute, normalised path; a leading ~/ is the home directory. */
  public Path resolve(String path) {
    String home = variable("HOME");
    if (path.startsWith("~/") && home != null) {
      return Path.of(home, path.substring(2)).normalize();
    }
    return workingDirectory.resolve(path).normalize();
  }

  /**
   * The path without symbolic links. If it does not exist, or ends in a broken mount, its longest
   * existing prefix is resolved. A link to a missing file leads to that file.
   */
  public Path resolveLinks(Path path) {
    return resolveLinks(path, MAX_LINKS);
  }

  private Path resolveLinks(Path path, int linksLeft) {
    Path tail = Path.of("");
    for (Path head = path; head != null; head = head.getParent()) {
      try {
        return head.toRealPath().resolve(tail).normalize();
      } catch (IOException e) {
        Path target = targetOf(head);
        if (target != null && linksLeft > 0) {
          return resolveLinks(target.resolve(tail).normalize(), linksLeft - 1);
        }
        Path name = head.getFileName();
        tail = name == null ? tail : name.resolve(tail);
      }
    }
    return path;
  }

  /** The target of a link that {@code toRealPath} cannot follow; null if the path is not a link. */
  private static @Nullable Path targetOf(Path path) {
    try {
      Path target = Files.readSymbolicLink(path);
      Path parent = path.getParent();
      return parent == null ? target : parent.toRealPath().resolve(target);
    } catch (IOException e) {
      return null;
    }
  }

  /** An executable in PATH, or null. */
  public @Nullable Path findProgram(String name) {
    String path = variable("PATH");
    for (String directory : (path == null ? "/usr/bin:/bin" : path).split(":", -1)) {
      Path program = resolve(directory).resolve(name);
      if (!directory.isEmpty() && Files.isExecutable(program)) {
        return program;
      }
    }
    return null;
  }

  /** This machine's name, without its domain; {@code localhost} if it has none. */
  public String hostName() {
    try {
      String name = Files.readString(root.resolve("proc/sys/kernel/hostname"), UTF_8).strip();
      return name.matches("[A-Za-z0-9._-]+") ? name.split("\\.", 2)[0] : "localhost";
    } catch (IOException e) {
      return "localhost";
    }
  }

  public MountTable mounts() throws MountFailure {
    try {
      return MountTable.load(root);
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.CANNOT, "/proc/self/mountinfo: cannot be read: " + Reason.of(e), e);
    }
  }
}
