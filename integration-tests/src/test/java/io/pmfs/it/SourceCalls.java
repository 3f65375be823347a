package io.pmfs.it;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The system calls by which daemons ask a directory, as strace(1) sees them: what arrives at the
 * source, whatever the daemons count. Paths are relative to it, the directory itself is empty;
 * bytes that are no ASCII are as strace writes them. Counts are complete once it is closed.
 */
final class SourceCalls implements AutoCloseable {
  private static final String CALLS =
      "open,openat,openat2,stat,lstat,fstat,newfstatat,statx,readlink,readlinkat";

  /** CALL(FD</path>, "name", the rest; a call that was interrupted has all of these, too. */
  private static final Pattern CALL =
      Pattern.compile("^\\d+ +(\\w+)\\(\\d+<([^>]*)>(?:, \"((?:[^\"\\\\]|\\\\.)*)\"(.*))?.*");

  private final Path source;
  private final Path output;
  private final List<Process> traces = new ArrayList<>();
  final Map<String, Integer> opens = new TreeMap<>();
  final Map<String, Integer> lists = new TreeMap<>();

  /** By name, and of files that are open. */
  final Map<String, Integer> stats = new TreeMap<>();

  final Map<String, Integer> openStats = new TreeMap<>();
  final Map<String, Integer> links = new TreeMap<>();

  /** Files that were opened as places (O_PATH) and not asked for anything yet. */
  private final Map<String, Integer> places = new TreeMap<>();

  /** Begins to listen. */
  SourceCalls(Scratch scratch, Path source, List<Long> daemons) {
    Machine.requireCommand("strace");
    this.source = source;
    this.output = scratch.directory("strace");
    for (long daemon : daemons) {
      Path messages = output.resolve(daemon + ".messages");
      List<String> line = List.of("strace", "-f", "-y", "-qqq", "-e", "trace=" + CALLS);
      List<String> all = new ArrayList<>(line);
      all.addAll(
          List.of("-p", Long.toString(daemon), "-o", output.resolve(daemon + ".calls") + ""));
      try {
        traces.add(
            new ProcessBuilder(all)
                .redirectErrorStream(true)
                .redirectOutput(messages.toFile())
                .start());
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      Await.until(
          "daemon " + daemon + " is traced", Duration.ofSeconds(30), () -> isTraced(daemon));
    }
  }

  private static boolean isTraced(long daemon) {
    try {
      return Files.readAllLines(Path.of("/proc/" + daemon + "/status")).stream()
          .anyMatch(line -> line.matches("TracerPid:\\s+[1-9]\\d*"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void close() {
    traces.forEach(Process::destroy);
    for (Process trace : traces) {
      try {
        trace.waitFor();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
    traces.clear();
    for (Path file : Installation.files(output)) {
      try {
        Files.readAllLines(file, ISO_8859_1).forEach(this::count);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private void count(String line) {
    Matcher call = CALL.matcher(line);
    if (!call.matches()) {
      return;
    }
    String name = call.group(3) == null ? "" : call.group(3);
    Path path = Path.of(call.group(2)).resolve(name).normalize();
    if (!path.startsWith(source)) {
      return;
    }
    String relative = source.relativize(path).toString();
    String rest = call.group(4) == null ? "" : call.group(4);
    boolean isOpen = name.isEmpty() && !relative.isEmpty();
    Map<String, Integer> counts =
        switch (call.group(1)) {
          case "open", "openat", "openat2" ->
              rest.contains("O_PATH") ? places : rest.contains("O_DIRECTORY") ? lists : opens;
          case "readlink", "readlinkat" -> {
            leavesPlace(relative);
            yield links;
          }
          default -> isOpen && !leavesPlace(relative) ? openStats : stats;
        };
    counts.merge(relative, 1, Integer::sum);
  }

  /** Whether a path was opened as a place in order to be asked about by its name. */
  private boolean leavesPlace(String relative) {
    Integer left = places.computeIfPresent(relative, (path, count) -> count - 1);
    places.remove(relative, 0);
    return left != null;
  }
}
