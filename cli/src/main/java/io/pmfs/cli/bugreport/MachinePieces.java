package io.pmfs.cli.bugreport;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The pieces about the machine: kernel, memory, limits, mounts, and this command's environment. */
public final class MachinePieces {
  private static final List<String> SYSTEM =
      List.of(
          "etc/os-release",
          "proc/version",
          "proc/uptime",
          "proc/loadavg",
          "proc/sys/fs/file-max",
          "proc/sys/fs/file-nr",
          "proc/sys/fs/nr_open",
          "proc/sys/fs/protected_hardlinks",
          "proc/sys/kernel/pid_max",
          "proc/sys/kernel/threads-max",
          "proc/sys/kernel/yama/ptrace_scope",
          "proc/sys/user/max_user_namespaces",
          "proc/sys/vm/max_map_count",
          "proc/sys/vm/overcommit_memory",
          "proc/sys/vm/swappiness",
          "proc/pressure/cpu",
          "proc/pressure/io",
          "proc/pressure/memory",
          "sys/kernel/mm/transparent_hugepage/enabled");

  private static final List<String> FUSE =
      List.of(
          "etc/fuse.conf",
          "sys/module/fuse/parameters/max_user_bgreq",
          "sys/module/fuse/parameters/max_user_congthresh",
          "sys/module/fuse/parameters/enable_uring",
          "proc/sys/fs/fuse/max_pages_limit",
          "proc/filesystems");

  private static final List<String> MEMORY = List.of("proc/meminfo", "proc/swaps");
  private static final List<String> LIMITS =
      List.of("proc/self/limits", "proc/self/status", "proc/self/cgroup");

  private final KernelFiles files;
  private final Path root;

  /**
   * Pieces about one machine.
   *
   * @param root / except in tests
   */
  public MachinePieces(Path root) {
    this.root = root;
    this.files = new KernelFiles(root);
  }

  /**
   * All pieces.
   *
   * @param places paths of sources, tiers and logs, whose file systems the report shows
   * @param ofPmfs names of variables that the report may show
   */
  public List<Piece> pieces(
      Map<String, String> environment, Set<String> ofPmfs, Collection<String> places) {
    List<Piece> pieces = new ArrayList<>();
    pieces.add(
        Piece.bytes("machine/system.txt", "distribution, kernel, its settings", this::system));
    pieces.add(Piece.bytes("machine/memory.txt", "memory and swap", () -> files.all(MEMORY)));
    pieces.add(
        Piece.bytes("machine/limits.txt", "limits of this command", () -> files.all(LIMITS)));
    pieces.add(
        Piece.bytes(
            "machine/cgroup.txt",
            "memory, processes and processors that this command's control group may use",
            () -> new Groups(root).text("self")));
    pieces.add(Piece.bytes("machine/fuse.txt", "FUSE in this kernel", () -> files.all(FUSE)));
    pieces.add(
        Piece.bytes(
            "machine/mount-table.txt",
            "mounts of pmfs, and the file systems of sources, tiers and logs",
            () -> new MountLines(files.text("proc/self/mountinfo")).concerning(places)));
    pieces.add(
        Piece.text(
            "machine/environment.txt",
            "variables of this command that concern pmfs",
            Piece.SHORT,
            () -> Environment.text(environment, ofPmfs)));
    return pieces;
  }

  private String system() {
    return files.all(SYSTEM) + processors();
  }

  private String processors() {
    String model = "unknown processor";
    try {
      for (String line : files.text("proc/cpuinfo").split("\n", -1)) {
        if (line.startsWith("model name")) {
          model = line;
          break;
        }
      }
    } catch (IOException e) {
      model = "/proc/cpuinfo: " + e.getClass().getSimpleName();
    }
    return Runtime.getRuntime().availableProcessors() + " processors for Java; " + model + "\n";
  }
}
