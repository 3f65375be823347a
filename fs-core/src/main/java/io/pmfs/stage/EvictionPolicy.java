package io.pmfs.stage;

import io.pmfs.metadata.Namespace;
import io.pmfs.tier.Tier;

/** Who goes when the tiers are full. Told of reads lossily; decides on a background thread. */
public interface EvictionPolicy {
  /** A copy was read. Called on the reader's time: must be next to nothing. */
  void touched(long number);

  /** The inode whose copy in that tier should go next, never a pinned one; 0 if none should. */
  long victim(Tier tier, Namespace namespace);

  /**
   * Keeps what is there. The default, because an epoch reads every file once in random order: what
   * was read last is then as likely to be read next as anything else, so evicting it costs writes
   * and wins no hits.
   */
  EvictionPolicy NONE =
      new EvictionPolicy() {
        @Override
        public void touched(long number) {}

        @Override
        public long victim(Tier tier, Namespace namespace) {
          return 0;
        }
      };
}
