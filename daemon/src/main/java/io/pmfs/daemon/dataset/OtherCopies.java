package io.pmfs.daemon.dataset;

import io.pmfs.contents.CopySets;
import io.pmfs.contents.KnownPlaces;
import io.pmfs.places.Surroundings;
import io.pmfs.posix.DaemonThread;
import io.pmfs.settings.MountSettings;
import io.pmfs.stage.BorrowingStore.Lender;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;

/**
 * The sets of copies of a dataset on this machine beside that of a mount: in the places of further
 * runs, and where other mounts of this user have kept copies when this one began.
 */
final class OtherCopies {
  /** The home directory, which names the places, may hang. */
  private static final long PATIENCE_MS = 500;

  private final MountSettings settings;
  private final String dataset;
  private final CompletableFuture<List<CopySets.Other>> known = new CompletableFuture<>();

  /** Looks for them, and remembers the places of this mount, in a thread of its own. */
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

  /** Those that there are now. Waits a moment at most, once. */
  List<Lender> lenders() {
    return Stream.concat(CopySets.others(settings, dataset).stream(), known().stream())
        .distinct()
        .map(other -> new Lender(other.state(), other.tiers()))
        .toList();
  }

  private List<CopySets.Other> known() {
    try {
      return known.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
    } catch (TimeoutException e) {
      known.complete(List.of()); // nobody waits again
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException e) {
      // It never fails.
    }
    return List.of();
  }
}
