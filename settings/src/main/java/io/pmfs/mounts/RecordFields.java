package io.pmfs.mounts;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** What the fields of records about mounts may be: a file may have anything in their place. */
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

  /** A source, which may be the name of another mount's. */
  static boolean isSource(@Nullable String text) {
    return text != null && text.length() <= MAX_PATH && text.indexOf('\0') < 0;
  }

  /** A name of a user or a job, or a time. */
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
