package io.pmfs.tier;

import org.jspecify.annotations.Nullable;

/**
 * A failure that a file system call answers with: the POSIX reason, carried once from where it is
 * known to where it is answered.
 */
public final class FsException extends Exception {
  private final Errno errno;

  public FsException(Errno errno, String what) {
    this(errno, what, null);
  }

  public FsException(Errno errno, String what, @Nullable Throwable cause) {
    // Missing names are everyday answers: they need no stack trace.
    super(errno + ": " + what, cause, false, cause != null);
    this.errno = errno;
  }

  public Errno errno() {
    return errno;
  }
}
