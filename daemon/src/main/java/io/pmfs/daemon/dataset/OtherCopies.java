package io.pmfs.daemon.dataset;

import io.pmfs.contents.CopySets;
import io.pmfs.contents.KnownPlaces;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import io.pmfs.posix.DaemonThread;
import io.pmfs.settings.MountSettings;
import io.pmfs.stage.Lenders.Lender;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;

/**
 * Other sets of copies of a mount's dataset on this machine: those of further runs, and those known
 * from this user's earlier mounts when this one began.
 */
final class OtherCopies {
  /** The home directory, which holds the list of places, may hang. */
  private static final long PATIENCE_MS = 500;

  private final MountSettings settings;
  private final String dataset;
  private final CompletableFuture<List<CopySets.Other>> known = new CompletableFuture<>();

  /** Starts a thread that looks for them and records the places of this mount. */
  OtherCopies(MountSettings settings, String dataset, Surroundings surroundings) {
    this.settings = settings;
    this.dataset = dataset;
    try {
      DaemonThread.start("known-places", () -> look(new KnownPlaces(surroundings)));
    } catch (OutOfMemoryError e) {
      known.complete(List.of());
    }
  }

  private void look(KnownPlaces places) {
    try {
      known.complete(CopySets.known(settings, dataset, places));
    } finally {
      known.complete(List.of());
    }
    places.add(settings);
  }

  /** The present sets that no other user can change. The first call may wait briefly. */
  List<Lender> lenders() {
    return Stream.concat(CopySets.others(settings, dataset).stream(), known().stream())
        .distinct()
        .flatMap(OtherCopies::own)
        .toList();
  }

  private static Stream<Lender> own(CopySets.Other set) {
    OwnPath own = OwnPath.ofProcess();
    Map<String, Path> tiers = new HashMap<>();
    try {
      for (Map.Entry<String, Path> tier : set.tiers().entrySet()) {
        tiers.put(tier.getKey(), own.existing(tier.getValue()));
      }
      return Stream.of(new Lender(own.existing(set.state()), tiers));
    } catch (IOException e) {
      return Stream.empty();
    }
  }

  private List<CopySets.Other> known() {
    try {
      return known.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
    } catch (TimeoutException e) {
      known.complete(List.of()); // so that later calls do not wait
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException e) {
      // Never completed exceptionally.
    }
    return List.of();
  }
}
