package io.pmfs.fuse;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Who mounts and unmounts a session on /dev/fuse. Used by one thread at a time. */
interface Mounting {
  /**
   * Mounts.
   *
   * @return the descriptor of the session, which the caller closes
   * @throws MountException if it could not; then nothing is mounted, and nothing left open
   */
  int mount(Duration timeout) throws MountException;

  /** It is mounted, and {@code own} knows which it is. */
  default void mounted() {}

  void unmount(boolean lazy) throws MountException;

  /** Ends the session whatever is in progress: readers that wait get an error. */
  void abort() throws MountException;

  /** Has the kernel read ahead as far as is good for us, if it may be set. */
  void setReadAhead();

  /** Why this process may not hand files to the kernel; null as far as is known it may. */
  default @Nullable String noPassthrough() {
    return null;
  }

  /** The session has ended. */
  default void ended() {}

  /**
   * For options, by whoever may.
   *
   * @param own what is unmounted, and nothing else on its path
   */
  static Mounting of(MountOptions options, @Nullable SharedSession session, SessionMount own) {
    if (session == null) {
      return LibC.INSTANCE.geteuid() == 0
          ? new MountingByRoot(options, own, null)
          : new MountingByUser(options, own);
    }
    Mounter mounter = session.mounter();
    return mounter == null
        ? new MountingByRoot(options, own, session.descriptor())
        : new MountingBySupervisor(options, session.descriptor(), mounter);
  }
}
