package io.pmfs.stage;

import java.util.List;

/**
 * Where what readers got came from. A read that crosses the end of a block counts once for each
 * place that answered a part of it.
 *
 * @param tiers whole copies, one for each tier in their order
 * @param making copies in the making: blocks that were read from the source before
 * @param source what readers waited for the source for
 */
public record ReadOrigins(List<Origin> tiers, Origin making, Origin source) {
  /** One place. */
  public record Origin(long reads, long bytes) {}

  public ReadOrigins {
    tiers = List.copyOf(tiers);
  }

  /** Reads that a tier could not answer, so that a later place did. */
  public long misses(int tier) {
    long later = tiers.stream().skip(tier + 1L).mapToLong(Origin::reads).sum();
    return later + making.reads() + source.reads();
  }

  /** Bytes of copies, whole or in the making. */
  public long bytesFromTiers() {
    return tiers.stream().mapToLong(Origin::bytes).sum() + making.bytes();
  }
}
