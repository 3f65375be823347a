package io.pmfs.cli.doctor;

import io.pmfs.machine.ByteSize;
import io.pmfs.machine.Reason;
import io.pmfs.posix.MemoryGroup;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Checks the limits on open files and memory, and the clock. One finding each. */
final class ResourceChecks {
  private static final long ENOUGH_FILES = 4096;

  /** The needs of a daemon with default settings: heap, buffers, cached names, the JVM itself. */
  private static final long ENOUGH_MEMORY = 512L << 20;

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
    long limit;
    try {
      limit =
          MemoryGroup.of(root, "self").stream()
              .mapToLong(MemoryGroup::limit)
              .min()
              .orElse(MemoryGroup.UNLIMITED);
    } catch (IOException | RuntimeException e) {
      return ok("cgroup memory", "not known: " + Reason.of(e));
    }
    if (limit == MemoryGroup.UNLIMITED) {
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
