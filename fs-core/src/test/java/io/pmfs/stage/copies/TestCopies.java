package io.pmfs.stage.copies;

import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.Namespace;
import io.pmfs.stage.formats.Bundling;
import io.pmfs.stage.formats.Compression;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.tier.Tier;
import java.util.List;

/** Copies with memory of their own. */
public final class TestCopies {
  private TestCopies() {}

  /** Raw copies, of unknown content size. */
  public static Copies raw(Namespace namespace, List<Tier> tiers) {
    return of(
        namespace,
        tiers,
        tiers.stream()
            .map(tier -> new CopyFormat(Compression.NONE, Bundling.NONE, null, Runnable::run, null))
            .toList());
  }

  public static Copies of(Namespace namespace, List<Tier> tiers, List<CopyFormat> formats) {
    return new Copies(namespace, tiers, formats, new DirectMemory());
  }
}
