package io.pmfs.daemon.dataset;

import io.pmfs.machine.Reason;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies that {@code pmfs run} or a job's prologue makes for one job: they are dropped with the
 * mount if a marker file is in the dataset's state directory at its end, also by the next daemon if
 * one crashes. Copies that existed before are kept, and so are those that a mount shares which does
 * not want this.
 */
public final class TransientCopies {
  /** Set by scripts/pmfs-run and scripts/slurm. */
  public static final String VARIABLE = "PMFS_TRANSIENT_COPIES";

  private static final String MARKER = "transient";

  private static final Logger log = LoggerFactory.getLogger(TransientCopies.class);

  private final Path marker;
  private final boolean areToBeDropped;

  private TransientCopies(Path marker, boolean areToBeDropped) {
    this.marker = marker;
    this.areToBeDropped = areToBeDropped;
  }

  /**
   * Must be called before the state directory is opened and thereby created.
   *
   * @param isResumed whether an earlier daemon of this mount has already decided
   */
  public static TransientCopies before(Path state, Surroundings surroundings, boolean isResumed) {
    boolean isMarked = areIn(state);
    boolean isWanted = isResumed ? isMarked : isWanted(surroundings);
    return new TransientCopies(
        state.resolve(MARKER), isWanted && (isMarked || !Files.exists(state)));
  }

  private static boolean isWanted(Surroundings surroundings) {
    return surroundings.variable(VARIABLE) != null;
  }

  /** Marks the state directory or not. This process must have opened it exclusively. */
  public void mark() {
    try {
      if (!areToBeDropped) {
        Files.deleteIfExists(marker);
      } else if (!Files.exists(marker)) {
        Files.createFile(marker);
      }
    } catch (IOException e) {
      log.warn("{}: {}", marker, Reason.of(e));
    }
  }

  /** Whether the copies of a state are to be dropped with the mount. */
  public static boolean areIn(Path state) {
    return Files.exists(state.resolve(MARKER));
  }

  /**
   * For a mount that joins a daemon with this state: unless it wants it too, the copies stay.
   *
   * @return false if this mount wants the copies to be dropped, and they stay
   */
  public static boolean join(Path state, Surroundings surroundings) throws IOException {
    if (isWanted(surroundings)) {
      return areIn(state);
    }
    Files.deleteIfExists(state.resolve(MARKER));
    return true;
  }
}
