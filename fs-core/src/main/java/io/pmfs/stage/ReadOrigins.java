package io.pmfs.stage;

import java.util.List;

/**
 * Where what readers got came from. A read that crosses the end of a block counts once for each
 * place that answered a part of it.
 *
 * @param tiers whole copies, one for each tier in their order
 * @param fetched what was read from the source for this reader, or another one, a moment before:
 *     copies in the making, and those that a first reader has not read to the end yet
 * @param source what readers waited for the source for
 */
public record ReadOrigins(List<Origin> tiers, Origin fetched, Origin source) {
  /** One place. */
  public record Origin(long reads, long bytes) {}

  public ReadOrigins {
    tiers = List.copyOf(tiers);
  }

  /** Reads that a tier could not answer, so that a later place did. */
  public long misses(int tier) {
    long later = tiers.stream().skip(tier + 1L).mapToLong(Origin::reads).sum();
    return later + fetched.reads() + source.reads();
  }

  /** All of them. */
  public long bytes() {
    return bytesFromTiers() + fetched.bytes() + source.bytes();
  }

  /** Bytes of whole copies. */
  public long bytesFromTiers() {
    return tiers.stream().mapToLong(Origin::bytes).sum();
  }
}
