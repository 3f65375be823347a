package io.pmfs.fuse.mounting;

import io.pmfs.posix.DescriptorPath;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Mounts and unmounts a session on /dev/fuse. Used by one thread at a time. */
public interface Mounting {
  /**
   * Mounts.
   *
   * @return the descriptor of the session, which the caller closes
   * @throws MountException if mounting failed; then nothing is mounted or left open
   */
  int mount(Duration timeout) throws MountException;

  /** Whether this process finds its mount at the mount point. */
  default boolean isSeenHere() {
    return true;
  }

  /** Called when the session is mounted and {@code own} knows its mount. */
  default void mounted() {}

  void unmount(boolean lazy) throws MountException;

  /** Ends the session at once: waiting readers get an error. */
  void abort() throws MountException;

  /** Sets the kernel's read-ahead to the best value for pmfs, if permitted. */
  void setReadAhead();

  /**
   * Why this process is not permitted to register files for passthrough; null if no reason is
   * known.
   */
  default @Nullable String noPassthrough() {
    return null;
  }

  /** Called when the session has ended. */
  default void ended() {}

  /**
   * Chooses the implementation that this process is permitted to use.
   *
   * @param own the mount to unmount; other mounts on its path are not touched
   */
  static Mounting of(MountSpec options, @Nullable SharedSession session, SessionMount own) {
    @Nullable Integer given = DescriptorPath.number(options.mountpoint());
    if (given != null) {
      return new MountedByAnother(given, own);
    }
    if (session == null) {
      return MountRight.isHeld()
          ? new MountingByRoot(options, own, null)
          : new MountingByUser(options, own);
    }
    Mounter mounter = session.mounter();
    return mounter == null
        ? new MountingByRoot(options, own, session.descriptor())
        : new MountingBySupervisor(options, session.descriptor(), mounter);
  }
}
