package io.pmfs.fuse.mounting;

import io.pmfs.fuse.system.LibC;
import java.io.IOException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * An open /dev/fuse that another program has mounted, perhaps where this process does not see it.
 * Only that program can unmount it; without this process the session ends.
 */
final class MountedByAnother implements Mounting {
  private static final LibC LIBC = LibC.INSTANCE;

  // fcntl.h
  private static final int F_SETFD = 2;
  private static final int FD_CLOEXEC = 1;

  private final int device;
  private final SessionMount own;

  MountedByAnother(int device, SessionMount own) {
    this.device = device;
    this.own = own;
  }

  @Override
  public int mount(Duration timeout) {
    LIBC.fcntl(device, F_SETFD, FD_CLOEXEC);
    return device;
  }

  @Override
  public boolean isSeenHere() {
    return false;
  }

  /** Ends the session, and not the mount, which needs rights that this process may lack. */
  @Override
  public void unmount(boolean lazy) throws MountException {
    abort();
  }

  @Override
  public void abort() throws MountException {
    try {
      Fusermount.abort(own.knownDevice());
    } catch (IOException e) {
      throw new MountException(
          MountException.Reason.FAILED, "the session ends with this process: " + e, e);
    }
  }

  @Override
  public @Nullable String noPassthrough() {
    return LIBC.geteuid() == 0 ? null : MountingByUser.NO_PASSTHROUGH;
  }

  @Override
  public void setReadAhead() {
    ReadAhead.set(own.device());
  }
}
