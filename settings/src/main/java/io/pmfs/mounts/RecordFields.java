package io.pmfs.mounts;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Checks the fields of records about mounts, because a file may contain anything. */
final class RecordFields {
  private static final int MAX_PATH = 4096;
  private static final int MAX_WORD = 256;

  /** The kernel's highest process id, proc(5). */
  private static final long MAX_PID = 1 << 22;

  private static final Pattern DEVICE = Pattern.compile("\\d{1,10}:\\d{1,10}");

  private RecordFields() {}

  /** An absolute path. */
  static boolean isPath(@Nullable String text) {
    try {
      return text != null && text.length() <= MAX_PATH && Path.of(text).isAbsolute();
    } catch (InvalidPathException e) {
      return false;
    }
  }

  /** A source: a path, or the device name of another mount. */
  static boolean isSource(@Nullable String text) {
    return text != null && text.length() <= MAX_PATH && text.indexOf('\0') < 0;
  }

  /** A user name, a job name or a time. */
  static boolean isWord(@Nullable String text) {
    return text != null && text.length() <= MAX_WORD;
  }

  static boolean isProcess(long pid) {
    return pid > 0 && pid <= MAX_PID;
  }

  /** A device number as in mountinfo. */
  static boolean isDevice(@Nullable String text) {
    return text != null && DEVICE.matcher(text).matches();
  }
}
