package io.pmfs.contents;

import io.pmfs.places.TierSpec;
import io.pmfs.settings.MountSettings;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Further sets of copies in places of their own, {@code run-2}, {@code run-3}, ... below a tier or
 * a state directory. {@code pmfs run} creates them for runs that may not share a daemon.
 */
public final class CopySets {
  /** See RunCommand of cli. */
  private static final Pattern FURTHER = Pattern.compile("run-[0-9]+");

  private CopySets() {}

  /**
   * Another set of copies of a dataset.
   *
   * @param state the directory of its state
   * @param tiers the directories of its copies by the names of the tiers
   */
  public record Other(Path state, Map<String, Path> tiers) {
    public Other {
      tiers = Map.copyOf(tiers);
    }
  }

  /** Whether a directory is a place of a further set. */
  static boolean isFurther(Path place) {
    return FURTHER.matcher(String.valueOf(place.getFileName())).matches()
        && Files.isDirectory(place, LinkOption.NOFOLLOW_LINKS);
  }

  /**
   * The places of further sets below a place.
   *
   * @throws IOException if the directory cannot be read
   */
  static List<Path> below(Path place) throws IOException {
    if (!Files.isDirectory(place)) {
      return List.of();
    }
    try (Stream<Path> entries = Files.list(place)) {
      return entries.filter(CopySets::isFurther).sorted().toList();
    } catch (UncheckedIOException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  /**
   * The other sets of a dataset in the tiers of a mount, in use or not. *
   *
   * @param dataset the name of its directories
   */
  public static List<Other> others(MountSettings mount, String dataset) {
    List<TierSpec> tiers =
        mount.copies().tiers().stream().filter(tier -> tier.place().directory() != null).toList();
    Path state = mount.metadata().stateDirectory();
    if (tiers.isEmpty() || state == null) {
      return List.of();
    }
    Path first = tiers.get(0).path();
    Path own = first.getFileName();
    Path base = first.getParent();
    String set = null;
    if (base == null || own == null || !isFurther(first)) {
      base = first;
    } else {
      set = own.toString();
    }
    List<Other> others = new ArrayList<>();
    if (set != null) {
      others.add(other(tiers, state, set, null, dataset));
    }
    try {
      for (Path place : below(base)) {
        if (!place.equals(first)) {
          others.add(other(tiers, state, set, String.valueOf(place.getFileName()), dataset));
        }
      }
    } catch (IOException e) {
      return others;
    }
    return others;
  }

  /** The sets of a dataset in the places that mounts of this user have used and that exist now. */
  public static List<Other> known(MountSettings mount, String dataset, KnownPlaces places) {
    return places.all().stream()
        .filter(set -> !set.state().equals(mount.metadata().stateDirectory()))
        .filter(set -> Files.isDirectory(set.state().resolve(dataset)))
        .map(
            set ->
                new Other(
                    set.state().resolve(dataset),
                    set.tiers().stream()
                        .collect(
                            Collectors.toMap(
                                TierSpec::name,
                                tier -> tier.path().resolve(dataset),
                                (one, same) -> one))))
        .toList();
  }

  private static Other other(
      List<TierSpec> tiers,
      Path state,
      @Nullable String own,
      @Nullable String set,
      String dataset) {
    Map<String, Path> directories = new LinkedHashMap<>();
    for (TierSpec tier : tiers) {
      Path path = inSet(tier.path(), own, set);
      directories.put(tier.at(path).name(), path.resolve(dataset));
    }
    return new Other(inSet(state, own, set).resolve(dataset), directories);
  }

  /** The place of another set that corresponds to a place of this set; null means the first set. */
  private static Path inSet(Path place, @Nullable String own, @Nullable String set) {
    Path parent = place.getParent();
    Path base = own != null && place.endsWith(own) && parent != null ? parent : place;
    return set == null ? base : base.resolve(set);
  }
}
