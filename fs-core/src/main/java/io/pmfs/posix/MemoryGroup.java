package io.pmfs.posix;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A control group that may limit memory, of version 1 or 2 of cgroups(7). Immutable. */
public final class MemoryGroup {
  /** No limit, or none that is known. */
  public static final long UNLIMITED = Long.MAX_VALUE;

  /** The most ancestors of a control group that are looked at. */
  private static final int MAX_DEPTH = 64;

  /**
   * The names of files, and what the fields of memory.stat that count descendants, too, begin with.
   */
  private enum Version {
    ONE("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    TWO("memory.max", "memory.current", "");

    private final String limit;
    private final String usage;
    private final String prefix;

    Version(String limit, String usage, String prefix) {
      this.limit = limit;
      this.usage = usage;
      this.prefix = prefix;
    }

    private boolean countsPagesOfFiles(String field) {
      return field.equals(prefix + "active_file") || field.equals(prefix + "inactive_file");
    }
  }

  private final Path directory;
  private final Version version;

  private MemoryGroup(Path directory, Version version) {
    this.directory = directory;
    this.version = version;
  }

  /**
   * The groups of a process, from its own up.
   *
   * @param root the directory that holds proc and sys
   * @param process its id, that of a thread, or "self"
   */
  public static List<MemoryGroup> of(Path root, String process) throws IOException {
    List<MemoryGroup> groups = new ArrayList<>();
    // Names of groups may be any bytes: one that is not UTF-8 is not found, but those above it are.
    byte[] lines = Files.readAllBytes(root.resolve("proc").resolve(process).resolve("cgroup"));
    for (String line : new String(lines, UTF_8).split("\n", -1)) {
      // Number, controllers, path. Version 2 lists no controllers.
      String[] parts = line.split(":", 3);
      if (parts.length == 3 && parts[1].isEmpty()) {
        add(groups, root.resolve("sys/fs/cgroup"), parts[2], Version.TWO);
      } else if (parts.length == 3 && Arrays.asList(parts[1].split(",", -1)).contains("memory")) {
        add(groups, root.resolve("sys/fs/cgroup/memory"), parts[2], Version.ONE);
      }
    }
    return groups;
  }

  private static void add(List<MemoryGroup> groups, Path top, String path, Version version) {
    Path directory = top.resolve(path.substring(path.startsWith("/") ? 1 : 0)).normalize();
    if (!directory.startsWith(top)) {
      // In a container the path may be the host's.
      directory = top;
    }
    for (int depth = 0; depth < MAX_DEPTH && directory.startsWith(top); depth++) {
      groups.add(new MemoryGroup(directory, version));
      directory = directory.resolveSibling("").normalize();
    }
  }

  /** The bytes that its processes may have together, pages of files included. */
  public long limit() {
    try {
      String text = Files.readString(directory.resolve(version.limit)).strip();
      long bytes = text.equals("max") ? UNLIMITED : Long.parseLong(text);
      // Version 1 reports no limit as the largest multiple of the page size.
      return bytes > UNLIMITED / 2 ? UNLIMITED : bytes;
    } catch (IOException | NumberFormatException e) {
      // Absent or malformed: other groups still count.
      return UNLIMITED;
    }
  }

  /** The bytes of its limit that are free or hold pages of files. */
  public long available() {
    long limit = limit();
    if (limit == UNLIMITED) {
      return UNLIMITED;
    }
    try {
      long usage = Long.parseLong(Files.readString(directory.resolve(version.usage)).strip());
      long ofFiles = 0;
      for (String line : Files.readAllLines(directory.resolve("memory.stat"))) {
        String[] parts = line.split(" ", 2);
        ofFiles += version.countsPagesOfFiles(parts[0]) ? Long.parseLong(parts[1]) : 0;
      }
      return Math.max(0, limit - usage + ofFiles);
    } catch (IOException | NumberFormatException e) {
      return limit;
    }
  }
}
