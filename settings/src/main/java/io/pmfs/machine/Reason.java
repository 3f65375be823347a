package io.pmfs.machine;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.io.FileNotFoundException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The reason of an error, in the words of strerror(3) and without the path. */
public final class Reason {
  /** The message of {@link FileNotFoundException}: the path, and the reason in parentheses. */
  private static final Pattern WITH_PATH = Pattern.compile("(?s).* \\(([^()]+)\\)");

  private Reason() {}

  public static String of(Exception e) {
    if (e instanceof NoSuchFileException) {
      return "no such file or directory";
    }
    if (e instanceof AccessDeniedException) {
      return "permission denied";
    }
    if (e instanceof NotDirectoryException) {
      return "not a directory";
    }
    if (e instanceof FileAlreadyExistsException) {
      return "file exists";
    }
    if (e instanceof DirectoryNotEmptyException) {
      return "directory not empty";
    }
    if (e instanceof FileSystemLoopException) {
      return "too many levels of symbolic links";
    }
    if (e instanceof FsException failure) {
      return of(failure);
    }
    String reason = e instanceof FileSystemException f ? f.getReason() : e.getMessage();
    if (e instanceof FileNotFoundException && reason != null) {
      Matcher matcher = WITH_PATH.matcher(reason);
      return matcher.matches() ? matcher.group(1).toLowerCase(Locale.ROOT) : reason;
    }
    return reason == null ? e.getClass().getSimpleName() : reason;
  }

  /** Extracts the reason, because the message is the error's name and usually the path. */
  private static String of(FsException failure) {
    return switch (failure.errno()) {
      case ENOENT -> "no such file or directory";
      case EACCES -> "permission denied";
      case EPERM -> "operation not permitted";
      case ENOTDIR -> "not a directory";
      case ELOOP -> "too many levels of symbolic links";
      case ENAMETOOLONG -> "file name too long";
      case EMFILE, ENFILE -> "too many open files";
      case ENOSPC -> "no space left on device";
      case EDQUOT -> "disk quota exceeded";
      case EROFS -> "read-only file system";
      case ESTALE -> "stale file handle";
      default -> failure.errno() == Errno.EIO ? ioError(failure) : failure.errno().toString();
    };
  }

  /** An I/O error may carry a reason of pmfs after its name. */
  private static String ioError(FsException failure) {
    String message = String.valueOf(failure.getMessage()).replaceFirst("^EIO: ", "");
    return message.startsWith("/") && !message.contains(": ") ? "input/output error" : message;
  }

  /** Whether a disk or a quota has no room left. */
  public static boolean isNoRoom(Exception e) {
    String reason = String.valueOf(e.getMessage());
    return reason.contains("No space left on device") || reason.contains("Disk quota exceeded");
  }
}
