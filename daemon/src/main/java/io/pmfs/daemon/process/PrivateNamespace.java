package io.pmfs.daemon.process;

import io.pmfs.mounts.MountViewers;
import io.pmfs.places.Surroundings;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Detects that a background daemon is alone in its mount namespace: each would keep the other alive
 * forever. Does not watch a foreground daemon, which its starter controls, such as a container.
 */
public final class PrivateNamespace {
  /** Set by the launcher. */
  private static final String BACKGROUND = "PMFS_BACKGROUND";

  /**
   * The interval of the checks, of which two in a row must agree, because a program may just be
   * starting.
   */
  static final Duration PAUSE = Duration.ofSeconds(5);

  private final MountViewers viewers;
  private final boolean isWatched;
  private final Set<Long> own = new HashSet<>();
  private final LongSupplier nanoTime;
  private long next;
  private boolean wasAbandoned;

  public PrivateNamespace(
      Surroundings surroundings, @Nullable Supervision supervision, LongSupplier nanoTime) {
    this.viewers = new MountViewers(surroundings);
    this.isWatched = surroundings.variable(BACKGROUND) != null;
    this.nanoTime = nanoTime;
    this.next = nanoTime.getAsLong() + PAUSE.toNanos();
    own.add(ProcessHandle.current().pid());
    if (supervision != null) {
      ProcessHandle.current().parent().ifPresent(parent -> own.add(parent.pid()));
    }
  }

  /** Whether only processes of pmfs are left. Call this about once a second. */
  public boolean isAbandoned(List<String> devices) {
    if (!isWatched || devices.isEmpty() || nanoTime.getAsLong() - next < 0) {
      return false;
    }
    boolean isAbandoned = devices.stream().allMatch(device -> viewers.areGone(device, own));
    boolean isTwice = isAbandoned && wasAbandoned;
    wasAbandoned = isAbandoned;
    next = nanoTime.getAsLong() + PAUSE.toNanos();
    return isTwice;
  }
}
