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
 * The mount namespace of a daemon in the background, if nobody else can come to it: the daemon
 * keeps the namespace, so that neither would ever end. One in the foreground belongs to whoever
 * started it, such as a container.
 */
public final class PrivateNamespace {
  /** Set by the launcher. */
  private static final String BACKGROUND = "PMFS_BACKGROUND";

  /** Between two looks; a program may just be starting, so two in a row count. */
  static final Duration PAUSE = Duration.ofSeconds(5);

  private final MountViewers viewers;
  private final boolean isWatched;
  private final Set<Long> own = new HashSet<>();
  private final LongSupplier nanoTime;
  private long next;
  private boolean wasAbandoned;

  /** Looks at nothing yet. */
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

  /** Whether no process but pmfs is left. Call this about once a second. */
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
