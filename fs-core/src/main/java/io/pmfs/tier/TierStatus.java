package io.pmfs.tier;

import org.jspecify.annotations.Nullable;

/**
 * A tier as its administrator sees it.
 *
 * @param reason why it is not on; null while it is
 * @param dax for a pm tier whether applications could map the memory itself, and why not; null for
 *     others
 * @param usedBytes what copies take, files rounded up to 4 KiB, reservations included
 */
public record TierStatus(
    String name,
    TierKind kind,
    String path,
    State state,
    @Nullable String reason,
    @Nullable Dax dax,
    long capacityBytes,
    long usedBytes,
    long copies) {

  /** Whether a tier takes part. */
  public enum State {
    /** Takes and serves copies. */
    ON,
    /** Serves copies; takes none until it was compared with the records of an unclean stop. */
    RECOVERING,
    /** Serves copies; takes none because the disk was full, until there is room again. */
    FULL,
    /** Neither takes nor serves copies for the rest of the session. */
    FAILED
  }

  /** Whether a file system gives direct access to persistent memory. */
  public record Dax(boolean real, String reason) {}
}
