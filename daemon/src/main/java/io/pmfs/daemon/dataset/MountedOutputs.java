package io.pmfs.daemon.dataset;

import io.pmfs.daemon.tasks.Drains;

/** A writable mount: the source gets later what programs write. */
public interface MountedOutputs extends MountedDataset {
  /** What commands wait for. */
  Drains drains();

  /**
   * Whether {@link #close} waits a while for the source; it does by default. What is left stays for
   * the next mount.
   */
  void waitForSource(boolean waits);
}
