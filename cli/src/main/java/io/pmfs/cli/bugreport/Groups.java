package io.pmfs.cli.bugreport;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** The limits and usage of a process's control groups (cgroups(7)), from its own to the top. */
final class Groups {
  private static final int MOST_DEPTH = 16;
  private static final List<String> SECOND =
      List.of(
          "memory.max",
          "memory.high",
          "memory.current",
          "memory.swap.max",
          "memory.events",
          "memory.pressure",
          "pids.max",
          "pids.current",
          "cpu.max");
  private static final List<String> FIRST =
      List.of("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.failcnt");

  private final Path root;
  private final KernelFiles files;

  Groups(Path root) {
    this.root = root;
    this.files = new KernelFiles(root);
  }

  /** The groups of a process, given by its number or {@code self}. */
  String text(String process) {
    String groups;
    try {
      groups = files.text("proc/" + process + "/cgroup");
    } catch (IOException e) {
      return "control groups unknown: " + e.getClass().getSimpleName() + "\n";
    }
    StringBuilder text = new StringBuilder();
    for (String line : groups.split("\n", -1)) {
      String[] parts = line.split(":", 3);
      if (parts.length == 3 && parts[1].isEmpty()) {
        append(text, "sys/fs/cgroup", parts[2], SECOND);
      } else if (parts.length == 3 && Arrays.asList(parts[1].split(",", -1)).contains("memory")) {
        append(text, "sys/fs/cgroup/memory", parts[2], FIRST);
      }
    }
    return text.toString();
  }

  private void append(StringBuilder text, String hierarchy, String group, List<String> names) {
    Path top = root.resolve(hierarchy).normalize();
    Path directory = top.resolve(group.replaceFirst("^/+", "")).normalize();
    if (!directory.startsWith(top)) {
      directory = top; // in a container the path may be one of the host
    }
    for (int depth = 0; depth < MOST_DEPTH && directory.startsWith(top); depth++) {
      Path here = root.relativize(directory);
      text.append(files.all(names.stream().map(name -> here + "/" + name).toList()));
      directory = directory.resolveSibling("").normalize();
    }
  }
}
