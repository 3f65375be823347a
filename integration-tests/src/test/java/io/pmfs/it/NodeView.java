package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A node's own view of a source: what it shows can be older than what other nodes see, it can hang,
 * fail and be slow, and it counts. A {@link SourceView} in a mount namespace of the node.
 */
final class NodeView implements AutoCloseable {
  private final Process process;
  private final BufferedReader answers;
  private final @Nullable Path mounted;

  /**
   * Mounts, and has the node see it from now on. The directory must be a private mount, so that
   * nobody else does.
   */
  NodeView(Node node, Path directory) {
    // What the node mounts is to be seen by the test.
    node.pmfs().scratch().shareMounts();
    List<String> line =
        new ArrayList<>(List.of("unshare", "--mount", "--propagation", "unchanged"));
    line.addAll(program(directory));
    process = node.startTalking(line.toArray(String[]::new));
    answers = process.inputReader();
    mounted = null;
    awaitMounted(directory);
    node.enterMounts(process.pid());
  }

  /** Mounts here, for all; closing it unmounts. */
  NodeView(Path directory) throws IOException {
    process =
        Command.builder(Map.of(), program(directory))
            .redirectInput(ProcessBuilder.Redirect.PIPE)
            .redirectErrorStream(true)
            .start();
    answers = process.inputReader();
    mounted = directory;
    awaitMounted(directory);
  }

  private static List<String> program(Path directory) {
    return List.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-Dfile.encoding=ISO-8859-1", // jnr-fuse decodes names by it
        "-cp",
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
        SourceView.class.getName(),
        directory.toString());
  }

  private void awaitMounted(Path directory) {
    String line = "";
    while (!line.equals("mounted")) {
      String next = answer();
      if (next == null) {
        throw new AssertionError("no view of " + directory);
      }
      line = next;
    }
  }

  /** Shows other inode numbers from now on; 0 for those of the files. */
  void renumber(int mask) {
    tell("renumber " + mask);
  }

  /** Keeps no change times, no parts of a second and no link counts from now on, as sshfs does. */
  void keepLittle() {
    tell("keep-little");
  }

  /** Has types in its listings from now on. */
  void listTypes() {
    tell("list-types");
  }

  /** From now on answers reads with fewer bytes than are asked for and there. */
  void readShort() {
    tell("read-short");
  }

  /** From now on answers a third of the requests with EINTR or EAGAIN. */
  void interrupt(SourceView.Operation operation) {
    tell("interrupt " + operation + " *");
  }

  /** Shows a file as it is now from now on, whatever becomes of it. */
  void lag(Lag lag, String path) {
    tell("lag " + lag + " " + path);
  }

  void lag(Lag lag, Collection<String> paths) {
    paths.forEach(path -> lag(lag, path));
  }

  /** Shows all files as they are. */
  void catchUp() {
    tell("catch-up");
  }

  /** Leaves requests about a file without an answer; {@code *} for all files. */
  void hang(SourceView.Operation operation, String path) {
    tell("hang " + operation + " " + path);
  }

  /** Answers nothing at all, until {@link #go}. */
  void stop() {
    Command.run("kill", "-STOP", Long.toString(process.pid())).expect(0);
  }

  void go() {
    Command.run("kill", "-CONT", Long.toString(process.pid())).expect(0);
  }

  /** Answers EIO. */
  void fail(SourceView.Operation operation, String path) {
    tell("fail " + operation + " " + path);
  }

  /** Hangs and fails no more. */
  void mend() {
    tell("mend");
  }

  /** Passes at most so many bytes of content a second; 0 for any number. */
  void limit(long bytesPerSecond) {
    tell("rate " + bytesPerSecond);
  }

  /** How often something was asked for; lookups are among the stats. */
  record Counts(long stats, long opens, long reads, long bytes) {
    static final Counts NOTHING = new Counts(0, 0, 0, 0);

    private static Counts parse(String text) {
      String[] numbers = text.split(",", -1);
      return new Counts(
          Long.parseLong(numbers[0]),
          Long.parseLong(numbers[1]),
          Long.parseLong(numbers[2]),
          Long.parseLong(numbers[3]));
    }
  }

  /** What was asked for so far, by path. */
  Map<String, Counts> counts() {
    Map<String, Counts> counts = new HashMap<>();
    String[] words = tell("counts").split(" ", -1);
    for (int i = 1; i < words.length; i++) {
      int equals = words[i].lastIndexOf('=');
      if (equals >= 0) {
        counts.put(words[i].substring(0, equals), Counts.parse(words[i].substring(equals + 1)));
      }
    }
    return counts;
  }

  Counts counts(String path) {
    return counts().getOrDefault(path, Counts.NOTHING);
  }

  private synchronized String tell(String command) {
    try {
      process.outputWriter().write(command + "\n");
      process.outputWriter().flush();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    String answer = answer();
    assertThat(answer).as(command).startsWith("ok");
    return answer;
  }

  /** The next answer; other lines are messages. */
  private String answer() {
    try {
      String line = answers.readLine();
      while (line != null && !line.matches("(ok|refused|mounted).*")) {
        System.out.println(line);
        line = answers.readLine();
      }
      return line;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void close() {
    process.destroyForcibly();
    Path place = mounted;
    if (place != null) {
      Command.run("umount", "-l", place.toString());
    }
  }
}
