package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.machine.MountTable;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Pieces from small files of /proc, /sys and /etc, about the machine and about processes, even
 * hanging ones; see proc(5). Each char is a byte.
 */
public final class KernelFiles {
  private static final int MOST_BYTES = 256 << 10;
  private static final int MOST_THREADS = 1000;
  private static final int MOST_OPEN_FILES = 10_000;
  private static final int MOST_GROUPS = 16;

  private static final String SYSTEM =
      """
      etc/os-release proc/version proc/uptime proc/loadavg proc/sys/fs/file-max \
      proc/sys/fs/file-nr proc/sys/fs/nr_open proc/sys/fs/protected_hardlinks \
      proc/sys/kernel/pid_max proc/sys/kernel/threads-max proc/sys/kernel/yama/ptrace_scope \
      proc/sys/user/max_user_namespaces proc/sys/vm/max_map_count proc/sys/vm/overcommit_memory \
      proc/sys/vm/swappiness proc/pressure/cpu proc/pressure/io proc/pressure/memory \
      sys/kernel/mm/transparent_hugepage/enabled\
      """;
  private static final String FUSE =
      """
      etc/fuse.conf sys/module/fuse/parameters/max_user_bgreq \
      sys/module/fuse/parameters/max_user_congthresh sys/module/fuse/parameters/enable_uring \
      proc/sys/fs/fuse/max_pages_limit proc/filesystems\
      """;
  private static final String GROUP =
      """
      memory.max memory.high memory.current memory.swap.max memory.events memory.pressure \
      pids.max pids.current cpu.max\
      """;
  private static final String GROUP_OF_FIRST_VERSION =
      "memory.limit_in_bytes memory.usage_in_bytes memory.failcnt";
  private static final Set<String> VARIABLES =
      Set.of(
          """
          HOME JAVA_HOME LANG LC_ALL LD_LIBRARY_PATH LOGNAME MALLOC_ARENA_MAX PATH SLURM_JOB_ID \
          SLURM_JOB_NODELIST TERM TMPDIR TZ USER XDG_CACHE_HOME XDG_CONFIG_HOME XDG_RUNTIME_DIR\
          """
              .split(" ", -1));

  private final Path root;

  /**
   * For the machine whose file system is at {@code root}.
   *
   * @param root / except in tests
   */
  public KernelFiles(Path root) {
    this.root = root;
  }

  /**
   * The pieces about the machine.
   *
   * @param ofPmfs names of variables to include
   * @param places paths of sources, tiers and logs, whose file systems to include
   */
  public List<Piece> ofMachine(
      Map<String, String> environment, Set<String> ofPmfs, Collection<String> places) {
    return List.of(
        Piece.bytes(
            "machine/system.txt",
            "distribution, kernel, its settings",
            () -> all("", SYSTEM) + processors()),
        Piece.bytes("machine/memory.txt", "memory and swap", () -> all("proc/", "meminfo swaps")),
        Piece.bytes(
            "machine/limits.txt",
            "limits of this command",
            () -> all("proc/self/", "limits status cgroup")),
        Piece.bytes(
            "machine/cgroup.txt",
            "memory, processes and processors that this command's control group may use",
            () -> groups("self")),
        Piece.bytes("machine/fuse.txt", "FUSE in this kernel", () -> all("", FUSE)),
        Piece.bytes(
            "machine/mount-table.txt",
            "mounts of pmfs, and the file systems of sources, tiers and logs",
            () -> mounts(text("proc/self/mountinfo"), places)),
        Piece.text(
            "machine/environment.txt",
            "variables of this command that concern pmfs",
            Piece.SHORT,
            () -> variables(environment, ofPmfs)));
  }

  public List<Piece> ofProcess(long pid, String folder, Set<String> ofPmfs) {
    String place = "proc/" + pid + "/";
    return List.of(
        Piece.bytes(
            folder + "process.txt",
            "the daemon's process: state, memory, limits, open files",
            () ->
                "== /%scmdline\n%s".formatted(place, commandLine(content(place + "cmdline")))
                    + all(place, "status limits smaps_rollup io oom_score wchan cgroup")
                    + "%d open files\n".formatted(names(place + "fd", MOST_OPEN_FILES).size())
                    + groups(Long.toString(pid))),
        Piece.bytes(
            folder + "kernel-threads.txt",
            "the state of each of its threads in the kernel, even if it hangs",
            () ->
                names(place + "task", MOST_THREADS).stream()
                    .map(thread -> thread(place + "task/" + thread + "/"))
                    .collect(Collectors.joining())),
        Piece.text(
            folder + "environment.txt",
            "its variables that concern pmfs",
            Piece.SHORT,
            () -> variables(variables(text(place + "environ")), ofPmfs)));
  }

  /** The user of a process; -1 if the process does not exist. */
  public long ownerOf(long pid) {
    try {
      Object uid = Files.getAttribute(root.resolve("proc/" + pid), "unix:uid");
      return uid instanceof Integer number ? Integer.toUnsignedLong(number) : -1;
    } catch (IOException e) {
      return -1;
    }
  }

  /** The variables of a process, for {@link Redaction#learn}; empty if they cannot be read. */
  public Map<String, String> environmentOf(long pid) {
    return variables(content("proc/" + pid + "/environ"));
  }

  /**
   * Requests of a mount waiting in the kernel.
   *
   * @param device the mount's device number, such as 0:39; null for the mount that is there now
   */
  public String connection(@Nullable String device, String mountpoint) throws IOException {
    MountTable.Mount mount = MountTable.load(root).at(Path.of(mountpoint));
    String number = device != null ? device : mount != null && mount.isPmfs() ? mount.device() : "";
    return number.matches("0:\\d{1,9}")
        ? all(
                "sys/fs/fuse/connections/" + number.substring(2) + "/",
                "waiting max_background congestion_threshold")
            + all("sys/class/bdi/" + number + "/", "read_ahead_kb")
        : "nothing is mounted there now\n";
  }

  private String text(String path) throws IOException {
    try (InputStream in = Files.newInputStream(root.resolve(path))) {
      return new String(in.readNBytes(MOST_BYTES), ISO_8859_1);
    }
  }

  /** The text of a file, or the name of the exception in parentheses. */
  private String content(String path) {
    try {
      return text(path).stripTrailing();
    } catch (IOException e) {
      return "(" + e.getClass().getSimpleName() + ")";
    }
  }

  /** The contents of files, each with its name. {@code names} is separated by blanks. */
  private String all(String directory, String names) {
    StringBuilder text = new StringBuilder();
    for (String name : names.split(" ", -1)) {
      String path = "/" + directory + name;
      String content = content(path.substring(1));
      text.append(content.indexOf('\n') < 0 ? path + ": " : "== " + path + "\n")
          .append(content)
          .append('\n');
    }
    return text.toString();
  }

  /** The names in a directory, sorted; empty if it cannot be read. */
  private List<String> names(String directory, int most) {
    try (Stream<Path> files = Files.list(root.resolve(directory))) {
      return files.limit(most).map(file -> file.getFileName().toString()).sorted().toList();
    } catch (IOException | UncheckedIOException e) {
      return List.of();
    }
  }

  private String processors() {
    return Runtime.getRuntime().availableProcessors()
        + " processors for Java; "
        + content("proc/cpuinfo")
            .lines()
            .filter(line -> line.startsWith("model name"))
            .findFirst()
            .orElse("unknown processor")
        + "\n";
  }

  private String thread(String place) {
    return content(place + "status")
        .lines()
        .filter(line -> line.startsWith("State:") || line.contains("ctxt_switches"))
        .map(line -> line + "\n")
        .collect(
            Collectors.joining(
                "", "== thread " + place + "\n" + all(place, "comm wchan syscall stack"), ""));
  }

  /** Limits and usage of a process's control groups (cgroups(7)), from its own to the top. */
  String groups(String process) {
    StringBuilder text = new StringBuilder();
    for (String line : content("proc/" + process + "/cgroup").split("\n", -1)) {
      String[] parts = line.split(":", 3);
      boolean isSecond = parts.length == 3 && parts[1].isEmpty();
      if (isSecond || (parts.length == 3 && List.of(parts[1].split(",", -1)).contains("memory"))) {
        Path top = root.resolve(isSecond ? "sys/fs/cgroup" : "sys/fs/cgroup/memory").normalize();
        Path group = top.resolve(parts[2].replaceFirst("^/+", "")).normalize();
        // In a container the path may be the host's.
        Path here = group.startsWith(top) ? group : top;
        for (int i = 0; i < MOST_GROUPS && here.startsWith(top); i++) {
          text.append(all(root.relativize(here) + "/", isSecond ? GROUP : GROUP_OF_FIRST_VERSION));
          here = here.resolveSibling("").normalize();
        }
      }
    }
    return text.toString();
  }

  /** The lines of mountinfo about pmfs mounts and the mounts that hold the places. */
  static String mounts(String mountinfo, Collection<String> places) {
    MountTable table = MountTable.parse(mountinfo);
    Set<MountTable.Mount> holding =
        places.stream()
            .map(place -> table.holding(Path.of(place)))
            .filter(Objects::nonNull)
            .collect(Collectors.toSet());
    return mountinfo
            .lines()
            .filter(
                line ->
                    MountTable.parse(line).all().stream()
                        .anyMatch(mount -> mount.isPmfs() || holding.contains(mount)))
            .map(line -> line + "\n")
            .collect(Collectors.joining())
        + "of %d lines\n".formatted(mountinfo.lines().count());
  }

  /** One argument per line, without the values of options that look like secrets. */
  static String commandLine(String arguments) {
    StringBuilder text = new StringBuilder();
    boolean isSecret = false;
    for (String argument : arguments.split("\0", 0)) {
      text.append(isSecret ? Redaction.REMOVED : argument.replace('\n', ' ')).append('\n');
      isSecret =
          argument.startsWith("--") && argument.indexOf('=') < 0 && Redaction.looksSecret(argument);
    }
    return text.toString();
  }

  private static Map<String, String> variables(String block) {
    byte[] bytes = block.getBytes(ISO_8859_1);
    return Arrays.stream(new String(bytes, UTF_8).split("\0", -1))
        .filter(line -> line.indexOf('=') > 0)
        .collect(
            Collectors.toMap(
                line -> line.substring(0, line.indexOf('=')),
                line -> line.substring(line.indexOf('=') + 1),
                (one, other) -> other));
  }

  /** A line for each known variable, and the number of the others. */
  static String variables(Map<String, String> variables, Set<String> ofPmfs) {
    Map<String, String> shown = new TreeMap<>(variables);
    shown.keySet().removeIf(name -> !VARIABLES.contains(name) && !ofPmfs.contains(name));
    shown.replaceAll(
        (name, value) ->
            Redaction.looksSecret(name) ? Redaction.REMOVED : value.replace('\n', ' '));
    return shown.entrySet().stream().map(one -> one + "\n").collect(Collectors.joining())
        + "and %d others, not shown\n".formatted(variables.size() - shown.size());
  }
}
