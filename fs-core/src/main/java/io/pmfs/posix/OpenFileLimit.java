package io.pmfs.posix;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How many files of one kind a daemon keeps open: a quarter of the process's limit after its own
 * files. The kinds are the source's files, copies, and a writable mount's data files; the last
 * quarter is for files open only while in use.
 */
public final class OpenFileLimit {
  private static final Logger log = LoggerFactory.getLogger(OpenFileLimit.class);

  /** An idle daemon has 126. */
  private static final int OWN_FILES = 192;

  private static final int FEWEST = 16;
  private static final int MOST = 4096;

  private static final Pattern LINE = Pattern.compile("(?m)^Max open files +([0-9]+) ");

  private OpenFileLimit() {}

  public static int ofProcess() {
    return of(Path.of("/proc/self/limits"));
  }

  /**
   * By the limits of a process.
   *
   * @param limits its file below /proc
   */
  static int of(Path limits) {
    try {
      Matcher line = LINE.matcher(Files.readString(limits));
      return line.find() ? of(Long.parseLong(line.group(1))) : MOST;
    } catch (IOException | NumberFormatException e) {
      log.debug("{}: {}", limits, e.toString());
      return FEWEST;
    }
  }

  private static int of(long limit) {
    return (int) Math.max(FEWEST, Math.min(MOST, (limit - OWN_FILES) / 4));
  }
}
