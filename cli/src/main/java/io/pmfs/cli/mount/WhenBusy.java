package io.pmfs.cli.mount;

import io.pmfs.daemon.Invocation;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.TimeSpan;
import io.pmfs.mounts.MountViewers;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What {@code pmfs umount} does while processes use the mount. */
final class WhenBusy {
  private static final long POLL_MS = 200;

  private enum State {
    /** It names them and ends. */
    FAILING,
    /** It tries again until the grace time is over, and then detaches the mount. */
    WAITING,
    /** It detaches the mount: the daemon serves them until they have closed their files. */
    DETACHING
  }

  private final Invocation invocation;
  private final @Nullable String grace;
  private final long graceEnd;
  private State state;

  /**
   * The first state is that of the options.
   *
   * @param lazy whether {@code --lazy} is given
   * @param grace the text of {@code --grace}; null if it is not given
   */
  WhenBusy(boolean lazy, @Nullable String grace, Invocation invocation) throws MountFailure {
    this.invocation = invocation;
    this.grace = grace;
    this.graceEnd =
        System.nanoTime()
            + (grace == null
                ? 0
                : MountFailure.parsing("--grace", grace, TimeSpan::parse).toNanos());
    this.state = lazy ? State.DETACHING : grace == null ? State.FAILING : State.WAITING;
  }

  boolean detaches() {
    return state == State.DETACHING;
  }

  boolean fails() {
    return state == State.FAILING;
  }

  /**
   * Returns when to try again: after a pause, or at once if the mount is to be detached from now
   * on.
   */
  void await(Path mountpoint, MountTable.@Nullable Mount mount) throws MountFailure {
    if (state != State.WAITING) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: busy: %s; end that first, or detach with --lazy"
              .formatted(mountpoint, holders(mountpoint, mount)));
    }
    if (System.nanoTime() - graceEnd < 0) {
      Unmounting.pause(POLL_MS);
      return;
    }
    invocation.warn(
        "%s: still in use after %s: %s; detaching it anyway"
            .formatted(mountpoint, grace, holders(mountpoint, mount)));
    state = State.DETACHING;
  }

  private String holders(Path mountpoint, MountTable.@Nullable Mount mount) {
    List<String> holders =
        MountHolders.of(
            mountpoint, invocation.surroundings().root(), ProcessHandle.current().pid());
    return holders.isEmpty() ? unseenHolders(mount) : String.join(", ", holders);
  }

  /** The mount may be busy by its copy in a namespace that follows this one, as containers do. */
  private String unseenHolders(MountTable.@Nullable Mount mount) {
    List<String> elsewhere =
        mount == null
            ? List.of()
            : new MountViewers(invocation.surroundings()).elsewhere(mount.device(), mount.source());
    return elsewhere.isEmpty()
        ? "by a process that this user cannot see"
        : "in another mount namespace, that of " + String.join(", ", elsewhere);
  }
}
