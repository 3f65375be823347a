package io.pmfs.writable;

import java.io.IOException;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** Another node of a writable mount does not answer: the cause of other failures. */
public final class NodeAway extends IOException {
  private final String node;
  private final boolean isOwner;
  private final Instant since;

  /**
   * A node that has not answered for a while.
   *
   * @param isOwner whether it owns the names
   * @param millis for how long
   */
  public NodeAway(String node, boolean isOwner, long millis, IOException cause) {
    super(cause.getMessage(), cause);
    this.node = node;
    this.isOwner = isOwner;
    this.since = Instant.now().minusMillis(millis);
  }

  /** The unreachable node that caused a failure; null if there is none. */
  public static @Nullable NodeAway of(Exception failure) {
    return failure.getCause() instanceof NodeAway node ? node : null;
  }

  /**
   * The entry for a status.
   *
   * @param path of the first change that waits for the node
   * @param changes how many changes wait, counting those behind the first
   */
  public DrainStatus.Away waiting(String path, long changes) {
    return new DrainStatus.Away(node, isOwner, since, path, changes);
  }

  /** The entry for an owner that is away: what waits for it is unknown. */
  public DrainStatus.Away unknown() {
    return waiting("", 0);
  }
}
