package io.pmfs.cli.control;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.daemon.Invocation;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.metadata.FileName;
import io.pmfs.tasks.TaskPaths;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.file.Files;
import org.jspecify.annotations.Nullable;

/**
 * Parses paths from a file or standard input, one per line, of any bytes except line feeds. Ignores
 * a carriage return before the line feed, and empty lines. Streams: holds only one line in memory.
 */
public final class PathList {
  /** Longer than any path; limits the memory for one line. */
  private static final int MAX_LINE_BYTES = 64 << 10;

  private final DatasetPaths dataset;
  private final String name;
  private final Sink sink;
  private final StringBuilder line = new StringBuilder();
  private long lines;
  private long paths;

  private PathList(DatasetPaths dataset, String name, Sink sink) {
    this.dataset = dataset;
    this.name = name;
    this.sink = sink;
  }

  /** Receives the lines one by one. */
  public interface Sink {
    /** The path in a line; null if the line has none. */
    void line(@Nullable FileName path) throws IOException;
  }

  /**
   * Parses an option's file, or standard input for {@code -}; returns the number of paths.
   *
   * @throws IOException if the sink fails
   */
  public static long parse(
      String option, String file, Invocation invocation, DatasetPaths dataset, Sink sink)
      throws MountFailure, IOException {
    if (file.equals("-")) {
      return new PathList(dataset, "standard input", sink).parse(option, invocation.in());
    }
    try (InputStream in = open(option, file, invocation)) {
      return new PathList(dataset, file, sink).parse(option, in);
    }
  }

  private static InputStream open(String option, String file, Invocation invocation)
      throws MountFailure {
    try {
      return Files.newInputStream(invocation.surroundings().resolve(file));
    } catch (IOException e) {
      throw unreadable(option, file, e);
    }
  }

  private static MountFailure unreadable(String option, String file, IOException e) {
    return new MountFailure(ExitStatus.USAGE, option + ": " + file + ": " + Reason.of(e), e);
  }

  private long parse(String option, InputStream bytes) throws IOException, MountFailure {
    BufferedReader in = new BufferedReader(new InputStreamReader(bytes, ISO_8859_1), 64 << 10);
    for (int c = next(option, in); c >= 0; c = next(option, in)) {
      if (c == '\n') {
        endLine();
      } else if (line.length() == MAX_LINE_BYTES) {
        lines++;
        throw refused("longer than any path");
      } else {
        line.append((char) c);
      }
    }
    if (line.length() > 0) {
      endLine();
    }
    return paths;
  }

  private int next(String option, BufferedReader in) throws MountFailure {
    try {
      return in.read();
    } catch (IOException e) {
      throw unreadable(option, name, e);
    }
  }

  private void endLine() throws MountFailure, IOException {
    lines++;
    if (line.length() > 0 && line.charAt(line.length() - 1) == '\r') {
      line.setLength(line.length() - 1);
    }
    if (line.length() == 0) {
      sink.line(null);
      return;
    }
    String path = line.toString();
    line.setLength(0);
    FileName listed = dataset.listed(path);
    if (listed == null) {
      throw refused(FileName.ofLatin1(path) + ": outside of " + dataset);
    }
    if (path.indexOf('\0') >= 0) {
      throw refused("has a NUL byte; write one path per line");
    }
    if (listed.size() > TaskPaths.MAX_PATH_BYTES) {
      throw refused("longer than any path");
    }
    paths++;
    sink.line(listed);
  }

  private MountFailure refused(String why) {
    return MountFailure.usage(name + ":" + lines + ": " + why);
  }
}
