package io.pmfs.tier;

import org.jspecify.annotations.Nullable;

/**
 * The status of a tier for an administrator.
 *
 * @param kind the kind of tier, as the command line calls it
 * @param reason why the tier is not on; null while it is
 * @param dax whether applications could map the tier's memory itself, and if not, why; null if the
 *     tier is not meant to be persistent memory
 * @param usedBytes bytes that copies use, with files rounded up to 4 KiB and reservations included
 */
public record TierStatus(
    String name,
    String kind,
    String path,
    State state,
    @Nullable String reason,
    @Nullable DaxVerdict dax,
    long capacityBytes,
    long usedBytes,
    long copies) {

  /** Whether a tier is in use. */
  public enum State {
    /** Accepts and serves copies. */
    ON,
    /** Serves copies; accepts none until it was compared with the records after an unclean stop. */
    RECOVERING,
    /** Serves copies; accepts none because the disk was full, until there is room again. */
    FULL,
    /** Neither accepts nor serves copies for the rest of the session. */
    FAILED
  }
}
