package io.pmfs.posix;

import org.jspecify.annotations.Nullable;

/**
 * The failure of a file system call: the POSIX error, passed unchanged from where it is detected to
 * the answer of the call.
 */
public final class FsException extends Exception {
  private final Errno errno;

  public FsException(Errno errno, String what) {
    this(errno, what, null);
  }

  public FsException(Errno errno, String what, @Nullable Throwable cause) {
    // Missing names are common answers and need no stack trace.
    super(errno + ": " + what, cause, false, cause != null);
    this.errno = errno;
  }

  public Errno errno() {
    return errno;
  }
}
