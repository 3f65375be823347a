package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What the kernel reports about one process, even if it hangs; see proc(5). */
public final class ProcessPieces {
  private static final int MOST_THREADS = 1000;
  private static final int MOST_FILES = 10_000;

  private final Path root;
  private final KernelFiles files;
  private final long pid;
  private final String place;

  /** Pieces about a process of the machine whose /proc is below {@code root}. */
  public ProcessPieces(Path root, long pid) {
    this.root = root;
    this.files = new KernelFiles(root);
    this.pid = pid;
    this.place = "proc/" + pid;
  }

  /** The user of the process; -1 if there is no such process. */
  public long owner() {
    try {
      Object uid = Files.getAttribute(root.resolve(place), "unix:uid");
      return uid instanceof Integer number ? Integer.toUnsignedLong(number) : -1;
    } catch (IOException e) {
      return -1;
    }
  }

  /** Its variables, for {@link Redaction#learn}; empty if they cannot be read. */
  public Map<String, String> environment() {
    try {
      return Environment.parse(files.text(place + "/environ").getBytes(ISO_8859_1));
    } catch (IOException e) {
      return Map.of();
    }
  }

  /** All pieces, in a folder of the report. */
  public List<Piece> pieces(String folder, Set<String> ofPmfs) {
    return List.of(
        Piece.bytes(
            folder + "/process.txt",
            "the daemon's process: state, memory, limits, open files",
            this::process),
        Piece.bytes(
            folder + "/kernel-threads.txt",
            "where each of its threads is in the kernel, even if it hangs",
            this::threads),
        Piece.text(
            folder + "/environment.txt",
            "its variables that concern pmfs",
            Piece.SHORT,
            () ->
                Environment.text(
                    Environment.parse(files.text(place + "/environ").getBytes(ISO_8859_1)),
                    ofPmfs)));
  }

  private String process() {
    return "== /"
        + place
        + "/cmdline\n"
        + commandLine()
        + files.all(
            List.of(
                place + "/status",
                place + "/limits",
                place + "/smaps_rollup",
                place + "/io",
                place + "/oom_score",
                place + "/wchan",
                place + "/cgroup"))
        + files.names(place + "/fd", MOST_FILES).size()
        + " open files\n"
        + new Groups(root).text(Long.toString(pid));
  }

  private String commandLine() {
    try {
      return commandLine(files.text(place + "/cmdline"));
    } catch (IOException e) {
      return "(" + e.getClass().getSimpleName() + ")\n";
    }
  }

  /** One argument per line, without the values of options whose names look like a secret's. */
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

  private String threads() {
    StringBuilder text = new StringBuilder();
    for (String thread : files.names(place + "/task", MOST_THREADS)) {
      String task = place + "/task/" + thread;
      text.append("== thread ").append(thread).append('\n');
      text.append(
          files.all(List.of(task + "/comm", task + "/wchan", task + "/syscall", task + "/stack")));
      try {
        files
            .text(task + "/status")
            .lines()
            .filter(line -> line.startsWith("State:") || line.contains("ctxt_switches"))
            .forEach(line -> text.append(line).append('\n'));
      } catch (IOException e) {
        text.append("ended meanwhile\n");
      }
    }
    return text.toString();
  }
}
