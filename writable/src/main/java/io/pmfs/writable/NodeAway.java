package io.pmfs.writable;

import java.io.IOException;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** Another node of a writable mount does not answer: the cause of failures because of it. */
public final class NodeAway extends IOException {
  private static final long serialVersionUID = 1;

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

  /** The node that a failure is about; null if it is about none. */
  public static @Nullable NodeAway of(Exception failure) {
    return failure.getCause() instanceof NodeAway node ? node : null;
  }

  /**
   * What a status says of it.
   *
   * @param path of what waits for it
   * @param changes how many changes wait, that one and all behind it
   */
  public DrainStatus.Away waiting(String path, long changes) {
    return new DrainStatus.Away(node, isOwner, since, path, changes);
  }

  /** What a status says of an owner: nobody knows what waits for it. */
  public DrainStatus.Away unknown() {
    return waiting("", 0);
  }
}
