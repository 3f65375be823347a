package io.pmfs.fuse.system;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How many data files a writable mount has open at the same time, by the process's limit of open
 * files: a quarter of what the daemon itself leaves. The rest is for the source's files, which stay
 * open while a program has them open, and for copying.
 */
final class DataFileLimit {
  private static final Logger log = LoggerFactory.getLogger(DataFileLimit.class);

  /** An idle daemon has 126. */
  private static final int OWN_FILES = 192;

  private static final int FEWEST = 16;
  private static final int MOST = 4096;

  private static final Pattern LINE = Pattern.compile("(?m)^Max open files +([0-9]+) ");

  private DataFileLimit() {}

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
