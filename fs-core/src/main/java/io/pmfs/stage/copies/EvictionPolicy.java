package io.pmfs.stage.copies;

import io.pmfs.metadata.Namespace;
import io.pmfs.tier.Tier;

/**
 * Chooses the copies to evict from full tiers. Some reads may go unreported; a background thread
 * decides.
 */
public interface EvictionPolicy {
  /** A copy was read. Called on the reader's thread: must cost almost nothing. */
  default void touched(long number) {}

  /** The inode whose copy in that tier to evict next, never a pinned one; 0 if none. */
  long victim(Tier tier, Namespace namespace);

  /**
   * Keeps all copies. The default, because an epoch reads every file once in random order: any copy
   * is then equally likely to be read next, so eviction costs writes and gains no hits.
   */
  EvictionPolicy NONE = (tier, namespace) -> 0;
}
