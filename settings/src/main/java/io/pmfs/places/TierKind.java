package io.pmfs.places;

import java.util.List;
import java.util.function.Function;

/**
 * A kind of tier.
 *
 * @param word its name on the command line, before the colon of {@code --tier}
 * @param places creates the place of a tier of this kind; may examine the path, changes nothing
 */
public record TierKind(String word, Function<TierSpec, TierPlace> places) {
  public static final TierKind PM = new TierKind("pm", TierKind::persistentMemory);
  public static final TierKind SSD = new TierKind("ssd", DirectoryPlace::onDisk);

  /** All kinds. To add a kind, write its {@link TierPlace} and add an entry here. */
  public static final List<TierKind> ALL = List.of(PM, SSD);

  private static TierPlace persistentMemory(TierSpec tier) {
    return PoolPlace.isAt(tier.path())
        ? new PoolPlace(tier)
        : DirectoryPlace.onPersistentMemory(tier);
  }

  @Override
  public String toString() {
    return word;
  }
}
