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

/** The reaction of {@code pmfs umount} to a busy mount. */
final class WhenBusy {
  private static final long POLL_MS = 200;

  private enum State {
    /** Lists the processes and fails. */
    FAILING,
    /** Retries until the grace time is over, then detaches. */
    WAITING,
    /** Detaches: the daemon serves processes until they have closed their files. */
    DETACHING
  }

  private final Invocation invocation;
  private final @Nullable String grace;
  private final long graceEnd;
  private State state;

  /**
   * @param grace the text of {@code --grace}; null without that option
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

  /** Waits before the next attempt; returns at once when the mount is to be detached. */
  void await(Path mountpoint, MountTable.@Nullable Mount mount) throws MountFailure {
    if (state != State.WAITING) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: busy: %s; end them first, or detach with --lazy"
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

  /** The mount may be in use in another mount namespace, such as a container's. */
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
