package io.pmfs.fuse.mounting;

import io.pmfs.fuse.mounting.MountException.Reason;
import java.io.IOException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Mounts by fusermount, with a guard that unmounts if this process dies. */
final class MountingByUser implements Mounting {
  private static final Logger log = LoggerFactory.getLogger(MountingByUser.class);

  static final String NO_PASSTHROUGH = "the kernel allows it only for root";

  private final MountSpec options;
  private final SessionMount own;
  private volatile @Nullable StaleMountGuard guard;

  MountingByUser(MountSpec options, SessionMount own) {
    this.options = options;
    this.own = own;
  }

  @Override
  public int mount(Duration timeout) throws MountException {
    // The guard runs until this process ends: a fusermount that hung may have mounted after all.
    try {
      guard = StaleMountGuard.start(options.mountpoint());
    } catch (IOException | OutOfMemoryError e) {
      log.warn("no guard will unmount if this daemon dies: {}", e.getMessage());
    }
    return new Fusermount(options, Fusermount.PROGRAMS).mount(timeout);
  }

  @Override
  public void mounted() {
    StaleMountGuard watching = guard;
    String device = own.device();
    if (watching != null && device != null) {
      watching.recognize(device);
    }
  }

  @Override
  public void unmount(boolean lazy) throws MountException {
    Unmount.unmount(own, lazy);
  }

  @Override
  public void abort() throws MountException {
    try {
      Fusermount.abort(own.knownDevice());
    } catch (IOException e) {
      throw new MountException(Reason.FAILED, e.toString(), e);
    }
    Unmount.unmount(own, true);
  }

  @Override
  public void setReadAhead() {
    ReadAhead.set(own.device());
  }

  @Override
  public String noPassthrough() {
    return NO_PASSTHROUGH;
  }

  @Override
  public void ended() {
    StaleMountGuard watching = guard;
    if (watching != null) {
      watching.close();
    }
  }
}
