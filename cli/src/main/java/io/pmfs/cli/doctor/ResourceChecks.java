package io.pmfs.cli.doctor;

import io.pmfs.machine.ByteSize;
import io.pmfs.machine.Reason;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Checks the limits on open files and memory, and the clock. One finding each. */
final class ResourceChecks {
  private static final long ENOUGH_FILES = 4096;

  /** The needs of a daemon with default settings: heap, buffers, cached names, the JVM itself. */
  private static final long ENOUGH_MEMORY = 512L << 20;

  /** The most ancestors of a control group that are checked. */
  private static final int MAX_DEPTH = 64;

  private final Path root;

  /**
   * @param root the directory that holds its proc, sys and run
   */
  ResourceChecks(Path root) {
    this.root = root;
  }

  List<Finding> run() {
    return List.of(openFiles(), lockedMemory(), groupMemory(), clock());
  }

  private Finding openFiles() {
    try {
      // The JVM raises its soft limit to the hard one.
      String hard = hardLimit("Max open files");
      boolean enough = hard.equals("unlimited") || Long.parseLong(hard) >= ENOUGH_FILES;
      return new Finding(
          enough ? Finding.Grade.OK : Finding.Grade.WARN,
          "open files",
          hard + (enough ? "" : ": raise it to " + ENOUGH_FILES + " (ulimit -Hn)"));
    } catch (IOException | RuntimeException e) {
      return warn("open files", "limit not known: " + Reason.of(e));
    }
  }

  private Finding lockedMemory() {
    try {
      String hard = hardLimit("Max locked memory");
      String text = hard.equals("unlimited") ? hard : ByteSize.format(Long.parseLong(hard));
      return ok("locked memory", text + "; pmfs locks no memory");
    } catch (IOException | RuntimeException e) {
      return ok("locked memory", "limit not known; pmfs locks no memory");
    }
  }

  /** A hard limit from proc/self/limits, proc(5). */
  private String hardLimit(String name) throws IOException {
    for (String line : Files.readAllLines(root.resolve("proc/self/limits"))) {
      if (line.startsWith(name + " ")) {
        return line.substring(name.length()).strip().split("\\s+", -1)[1];
      }
    }
    throw new IOException("/proc/self/limits: no such line");
  }

  private Finding groupMemory() {
    Long limit = null;
    try {
      for (String line : Files.readAllLines(root.resolve("proc/self/cgroup"))) {
        // Number, controllers, path: cgroups(7). Version 2 lists no controllers.
        String[] parts = line.split(":", 3);
        if (parts.length == 3 && parts[1].isEmpty()) {
          limit = least(limit, limit("sys/fs/cgroup", parts[2], "memory.max"));
        } else if (parts.length == 3 && Arrays.asList(parts[1].split(",", -1)).contains("memory")) {
          limit = least(limit, limit("sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"));
        }
      }
    } catch (IOException e) {
      return ok("cgroup memory", "not known: " + Reason.of(e));
    }
    if (limit == null) {
      return ok("cgroup memory", "no limit");
    }
    String text = ByteSize.format(limit) + " for all processes of this job or service";
    return limit >= ENOUGH_MEMORY
        ? ok("cgroup memory", text)
        : warn(
            "cgroup memory",
            text
                + ": a daemon uses up to "
                + ByteSize.format(ENOUGH_MEMORY)
                + "; ask for more, or lower PMFS_HEAP, --buffer-memory and --metadata-memory");
  }

  /** The lowest limit of a group and its ancestors; null if unlimited. */
  private @Nullable Long limit(String hierarchy, String group, String file) {
    Path top = root.resolve(hierarchy);
    Path directory = top.resolve(group.substring(group.startsWith("/") ? 1 : 0)).normalize();
    if (!directory.startsWith(top)) {
      // In a container the path may be the host's.
      directory = top;
    }
    Long limit = null;
    for (int depth = 0; depth < MAX_DEPTH && directory.startsWith(top); depth++) {
      try {
        String text = Files.readString(directory.resolve(file)).strip();
        long bytes = text.equals("max") ? Long.MAX_VALUE : Long.parseLong(text);
        // Version 1 reports no limit as the largest multiple of the page size.
        limit = bytes > Long.MAX_VALUE / 2 ? limit : least(limit, bytes);
      } catch (IOException | NumberFormatException e) {
        // Absent or malformed; the ancestors still count.
      }
      directory = directory.resolveSibling("").normalize();
    }
    return limit;
  }

  private static @Nullable Long least(@Nullable Long one, @Nullable Long other) {
    return one == null ? other : other == null ? one : Long.valueOf(Math.min(one, other));
  }

  /** Nodes of a cluster sign their requests with the time. */
  private Finding clock() {
    if (Files.exists(root.resolve("run/systemd/timesync/synchronized"))) {
      return ok("clock", "set by systemd-timesyncd");
    }
    for (String other : List.of("run/chrony/chronyd.pid", "run/chronyd.pid", "run/ntpd.pid")) {
      if (Files.exists(root.resolve(other))) {
        return ok("clock", "set by the service that wrote /" + other);
      }
    }
    return warn(
        "clock",
        "no time service found; only clusters need one: their clocks must agree within a minute;"
            + " apt-get install systemd-timesyncd, or chrony");
  }

  private static Finding ok(String subject, String text) {
    return new Finding(Finding.Grade.OK, subject, text);
  }

  private static Finding warn(String subject, String text) {
    return new Finding(Finding.Grade.WARN, subject, text);
  }
}
