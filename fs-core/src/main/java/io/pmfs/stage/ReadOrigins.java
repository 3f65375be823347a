package io.pmfs.stage;

import java.util.List;

/**
 * Where the bytes sent to readers came from. A read that crosses the end of a block counts once for
 * each origin that answered part of it.
 *
 * @param tiers whole copies, one entry for each tier in order
 * @param fetched bytes read from the source shortly before, for any reader: unfinished copies, and
 *     copies whose first reader has not reached the end
 * @param source bytes for which the reader waited for the source
 */
public record ReadOrigins(List<Origin> tiers, Origin fetched, Origin source) {
  /** One origin. */
  public record Origin(long reads, long bytes) {}

  public ReadOrigins {
    tiers = List.copyOf(tiers);
  }

  /** Reads that a tier could not answer, and a later origin did. */
  public long misses(int tier) {
    long later = tiers.stream().skip(tier + 1L).mapToLong(Origin::reads).sum();
    return later + fetched.reads() + source.reads();
  }

  /** Bytes from all origins. */
  public long bytes() {
    return bytesFromTiers() + fetched.bytes() + source.bytes();
  }

  /** Bytes of whole copies. */
  public long bytesFromTiers() {
    return tiers.stream().mapToLong(Origin::bytes).sum();
  }
}
