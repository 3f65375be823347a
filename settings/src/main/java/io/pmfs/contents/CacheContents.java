package io.pmfs.contents;

import static java.util.Comparator.comparing;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.places.DefaultTier;
import io.pmfs.places.NotOwnException;
import io.pmfs.places.StatePlace;
import io.pmfs.places.StoredDataset;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierPlace;
import io.pmfs.places.TierSpec;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.CopySettings;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.OptionValues;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The copies and states of all datasets in the places that this user's mounts would use, whether
 * they are mounted or not.
 */
public final class CacheContents {
  private final Map<Path, TierPlace> tiers = new LinkedHashMap<>();
  private final Set<Path> states = new LinkedHashSet<>();

  /**
   * A dataset and its content in all places. *
   *
   * @param name the name of its directories
   * @param source the path of its source; null if no place knows it
   */
  public record Dataset(String name, @Nullable String source, List<StoredDataset> stored) {
    public Dataset {
      stored = List.copyOf(stored);
    }

    public long bytes() {
      return stored.stream().mapToLong(StoredDataset::bytes).sum();
    }

    public Instant lastUsed() {
      return stored.stream()
          .map(StoredDataset::lastUsed)
          .max(Instant::compareTo)
          .orElse(Instant.EPOCH);
    }

    /** Whether it may hold files that are not at the source. */
    public boolean isUnsaved() {
      return stored.stream().anyMatch(StoredDataset::isUnsaved);
    }

    /** The reason not to remove it, with a remedy, if {@link #isUnsaved}. */
    public String unsaved() {
      return stored.stream()
          .filter(stored -> stored.isUnsaved() && stored.what().equals(StoredDataset.STATE))
          .findFirst()
          .map(
              state ->
                  "holds files that are not at the source; run pmfs drain --state %s, or mount it again"
                      .formatted(state.where().resolve(name)))
          .orElse("holds files that are not at the source; mount it again");
    }

    public boolean isInUse() {
      return stored.stream().anyMatch(StoredDataset::isInUse);
    }
  }

  private CacheContents() {}

  /**
   * Covers the places of several configurations, the default places, and others.
   *
   * @param known places that mounts have used; null to leave these out
   * @throws MountFailure if an option of a configuration is invalid
   */
  public static CacheContents of(
      Collection<Configuration> configurations, Surroundings world, @Nullable KnownPlaces known)
      throws MountFailure {
    CacheContents contents = new CacheContents();
    for (Configuration configuration : configurations) {
      OptionValues values = new OptionValues(configuration.settings(), world);
      for (TierSpec tier : CopySettings.tiers(values)) {
        contents.add(tier);
      }
      Path state = values.findOwnPlace(MountOption.STATE_DIR);
      if (state != null) {
        contents.states.add(state);
        contents.states.addAll(apartFrom(state));
      }
    }
    for (TierSpec tier : DefaultTier.existing(world)) {
      contents.add(tier);
    }
    for (KnownPlaces.Set set : known == null ? List.<KnownPlaces.Set>of() : known.all()) {
      contents.states.add(set.state());
      for (TierSpec tier : set.tiers()) {
        contents.add(tier);
      }
    }
    return contents;
  }

  private void add(TierSpec tier) throws MountFailure {
    TierPlace place = tier.place();
    tiers.putIfAbsent(tier.path(), place);
    Path directory = place.directory();
    if (directory != null) {
      states.add(directory.resolve(StoredDataset.STATE));
      states.addAll(apartFrom(directory.resolve(StoredDataset.STATE)));
      for (Path apart : apartFrom(directory)) {
        tiers.putIfAbsent(apart, tier.at(apart).place());
      }
    }
  }

  /** The places for further runs below a place; see {@link CopySets}. */
  private static List<Path> apartFrom(Path place) throws MountFailure {
    try {
      return CopySets.below(place);
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, place + ": " + Reason.of(e), e);
    }
  }

  /**
   * All datasets, the most recently used first. Reads every directory of copies, which is slow with
   * millions of copies.
   *
   * @throws MountFailure if a place cannot be read
   */
  public List<Dataset> datasets() throws MountFailure {
    Map<String, List<StoredDataset>> found = new TreeMap<>();
    for (Map.Entry<Path, TierPlace> tier : tiers.entrySet()) {
      if (Files.exists(tier.getKey())) {
        add(found, tier.getKey(), tier.getValue()::stored);
      }
    }
    for (Path state : states) {
      add(found, state, () -> StatePlace.stored(state));
    }
    List<Dataset> datasets = new ArrayList<>();
    found.forEach((name, stored) -> datasets.add(new Dataset(name, source(stored), stored)));
    datasets.sort(comparing(Dataset::lastUsed).reversed());
    return datasets;
  }

  private interface Listing {
    List<StoredDataset> stored() throws IOException;
  }

  private static void add(Map<String, List<StoredDataset>> found, Path place, Listing listing)
      throws MountFailure {
    try {
      for (StoredDataset stored : listing.stored()) {
        found.computeIfAbsent(stored.dataset(), name -> new ArrayList<>()).add(stored);
      }
    } catch (IOException e) {
      int status = e instanceof NotOwnException ? ExitStatus.USAGE : ExitStatus.FAILED;
      throw new MountFailure(status, place + ": " + Reason.of(e), e);
    }
  }

  private static @Nullable String source(List<StoredDataset> stored) {
    return stored.stream()
        .map(StoredDataset::source)
        .filter(Objects::nonNull)
        .findFirst()
        .orElse(null);
  }

  /**
   * Removes a dataset from all places: copies first, so that no copy is left without a record.
   *
   * @throws MountFailure if a mount uses it, it holds files that are not at the source, or
   *     something cannot be removed
   */
  public void purge(Dataset dataset) throws MountFailure {
    if (dataset.isUnsaved() && !dataset.isInUse()) {
      throw new MountFailure(ExitStatus.PARTLY, dataset.name() + ": " + dataset.unsaved());
    }
    for (StoredDataset stored : dataset.stored()) {
      purge(stored.where(), tiers.get(stored.where()), dataset.name());
    }
    dataset.stored().forEach(stored -> removeIfEmpty(stored.where()));
  }

  /**
   * Removes the copies of one mount that has ended, and its state once all copies are gone. Fails
   * like {@link #purge(Dataset)}.
   *
   * @param state the directory of the dataset in the place of the state
   */
  public static void purge(List<TierSpec> tiers, Path state) throws MountFailure {
    String name = String.valueOf(state.getFileName());
    MountFailure failure = null;
    for (TierSpec tier : tiers) {
      try {
        purge(tier.path(), tier.place(), name);
      } catch (MountFailure e) {
        failure = e;
      }
    }
    if (failure != null) {
      throw failure;
    }
    purge(state.resolveSibling(""), null, name);
  }

  /**
   * @param tier null in the place of a state
   */
  private static void purge(Path where, @Nullable TierPlace tier, String name) throws MountFailure {
    try {
      if (!(tier == null ? StatePlace.purge(where, name) : tier.purge(name))) {
        throw new MountFailure(
            ExitStatus.IN_USE,
            where + ": a mount uses " + name + "; see pmfs status; unmount it first");
      }
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, where + ": " + Reason.of(e), e);
    }
  }

  /** Removes a place made for a run if it is empty. */
  private static void removeIfEmpty(Path place) {
    if (CopySets.isFurther(place)) {
      try {
        Files.delete(place);
      } catch (IOException e) {
        // It has other content.
      }
    }
  }
}
