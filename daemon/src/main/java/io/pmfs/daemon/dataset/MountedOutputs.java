package io.pmfs.daemon.dataset;

import io.pmfs.daemon.tasks.Drains;

/** A writable mount, which copies changes to the source in the background. */
public interface MountedOutputs extends MountedDataset {
  Drains drains();

  /**
   * Whether {@link #close} waits briefly for the source (default: true). Remaining changes are kept
   * for the next mount.
   */
  void waitForSource(boolean waits);
}
