package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.metadata.FileName;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;

/**
 * Paths from a file or from standard input, one a line, of any bytes but a line feed. A carriage
 * return before the line feed and empty lines do not count.
 */
final class PathList {
  /** Nobody's path is that long, and no line may fill the memory. */
  private static final int MAX_LINE_BYTES = 64 << 10;

  /** More than fits a request; see {@link TaskResource}. */
  private static final int MAX_PATHS = 10_000_000;

  private final DatasetPaths dataset;
  private final String name;
  private final List<FileName> paths = new ArrayList<>();
  private final StringBuilder line = new StringBuilder();
  private long lines;

  private PathList(DatasetPaths dataset, String name) {
    this.dataset = dataset;
    this.name = name;
  }

  /** Reads the file that an option named, or standard input for {@code -}. */
  static List<FileName> read(
      String option, String file, Invocation invocation, DatasetPaths dataset) throws MountFailure {
    try {
      if (file.equals("-")) {
        return new PathList(dataset, "standard input").read(invocation.in());
      }
      try (InputStream in = Files.newInputStream(invocation.surroundings().resolve(file))) {
        return new PathList(dataset, file).read(in);
      }
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.USAGE, option + ": " + file + ": " + Reason.of(e), e);
    }
  }

  private List<FileName> read(InputStream bytes) throws IOException, MountFailure {
    BufferedReader in = new BufferedReader(new InputStreamReader(bytes, ISO_8859_1), 64 << 10);
    for (int c = in.read(); c >= 0; c = in.read()) {
      if (c == '\n') {
        endLine();
      } else if (line.length() == MAX_LINE_BYTES) {
        lines++;
        throw refused("longer than any path");
      } else {
        line.append((char) c);
      }
    }
    endLine();
    return paths;
  }

  private void endLine() throws MountFailure {
    lines++;
    if (line.length() > 0 && line.charAt(line.length() - 1) == '\r') {
      line.setLength(line.length() - 1);
    }
    if (line.length() == 0) {
      return;
    }
    String path = line.toString();
    line.setLength(0);
    FileName listed = dataset.listed(path);
    if (listed == null) {
      throw refused(FileName.ofLatin1(path) + ": outside of " + dataset);
    }
    if (path.indexOf('\0') >= 0) {
      throw refused("has a NUL; write one path a line");
    }
    if (paths.size() == MAX_PATHS) {
      throw refused("too many paths; name directories, or give it in parts");
    }
    paths.add(listed);
  }

  private MountFailure refused(String why) {
    return MountFailure.usage(name + ":" + lines + ": " + why);
  }
}
