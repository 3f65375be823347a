package io.pmfs.machine;

import java.nio.file.Path;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The failure of a command: one line for the user, and the exit status. */
public final class MountFailure extends Exception {
  /** The message of an unmount that failed because files below the mount are in use. */
  public static final String BUSY = "busy";

  private final int exitStatus;

  public MountFailure(int exitStatus, String message) {
    this(exitStatus, message, null);
  }

  public MountFailure(int exitStatus, String message, @Nullable Throwable cause) {
    super(message, cause);
    this.exitStatus = exitStatus;
  }

  public static MountFailure usage(String message) {
    return new MountFailure(ExitStatus.USAGE, message);
  }

  /**
   * Parses a text given by the user; a failure names the place of the text.
   *
   * @param where such as an option
   * @param parser throws an IllegalArgumentException with a message for the user
   */
  public static <T> T parsing(String where, String text, Function<String, T> parser)
      throws MountFailure {
    try {
      return parser.apply(text);
    } catch (IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.USAGE, where + ": " + e.getMessage(), e);
    }
  }

  /**
   * A place that cannot be used as configured.
   *
   * @param what the purpose of the place
   */
  public static MountFailure usage(Path path, String what, String why, String remedy) {
    return usage(path + ": " + what + ": " + why + "; " + remedy);
  }

  /** A message that starts with the path exactly once, even if the given message already does. */
  public static String naming(Object path, String message) {
    boolean isNamed = message.startsWith(path + ": ") || message.startsWith(path + " ");
    return isNamed ? message : path + ": " + message;
  }

  public int exitStatus() {
    return exitStatus;
  }

  public boolean isBusy() {
    return BUSY.equals(getMessage());
  }

  public String line() {
    String message = getMessage();
    return message == null ? "failed" : message.replace('\n', ' ');
  }
}
