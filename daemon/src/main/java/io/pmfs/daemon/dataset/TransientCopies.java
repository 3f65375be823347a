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
 * mount. A marker file in the dataset's state directory makes the next mount drop them if this one
 * crashes. Copies that existed before are kept.
 */
public final class TransientCopies {
  /** Set by scripts/pmfs-run and scripts/slurm. */
  public static final String VARIABLE = "PMFS_TRANSIENT_COPIES";

  private static final String MARKER = "transient";

  private static final Logger log = LoggerFactory.getLogger(TransientCopies.class);

  private final Path marker;
  private final boolean wanted;
  private final boolean mayBeDropped;

  private TransientCopies(Path marker, boolean wanted, boolean mayBeDropped) {
    this.marker = marker;
    this.wanted = wanted;
    this.mayBeDropped = mayBeDropped;
  }

  /**
   * Must be called before the state directory is opened and thereby created.
   *
   * @param isResumed whether an earlier daemon of this mount has already decided
   */
  public static TransientCopies before(Path state, Surroundings surroundings, boolean isResumed) {
    Path marker = state.resolve(MARKER);
    boolean isMarked = Files.exists(marker);
    boolean wanted = isResumed ? isMarked : surroundings.variable(VARIABLE) != null;
    return new TransientCopies(marker, wanted, isMarked || !Files.exists(state));
  }

  /** Decides, and marks the state directory, which this process must have opened exclusively. */
  public boolean areToBeDropped() {
    try {
      if (!wanted || !mayBeDropped) {
        Files.deleteIfExists(marker);
      } else if (!Files.exists(marker)) {
        Files.createFile(marker);
      }
    } catch (IOException e) {
      log.warn("{}: {}", marker, Reason.of(e));
    }
    return wanted && mayBeDropped;
  }
}
