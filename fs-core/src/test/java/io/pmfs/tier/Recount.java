package io.pmfs.tier;

import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Collection;
import java.util.List;
import java.util.function.LongPredicate;

/** Counts a tier's copies like the owner of the records. */
final class Recount {
  private Recount() {}

  static void of(Tier tier, LongPredicate recordedFiles) throws IOException {
    of(tier, recordedFiles, List.of());
  }

  static void of(Tier tier, Extent... extents) throws IOException {
    of(tier, number -> false, List.of(extents));
  }

  static void of(Tier tier, LongPredicate recordedFiles, Collection<Extent> extents)
      throws IOException {
    Tier.Census census = tier.census();
    census.forEachFile(
        number -> {
          file(tier, census, number, recordedFiles.test(number));
          return true;
        });
    for (Extent extent : extents) {
      if (tier.has(1, extent, extent.size())) {
        census.add(extent, extent.size());
      }
    }
    census.take();
  }

  private static void file(Tier tier, Tier.Census census, long number, boolean isRecorded) {
    try (CopyReader reader = tier.open(number, null)) {
      if (!isRecorded) {
        census.discard(number);
      } else if (reader != null) {
        census.add(null, reader.size());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
