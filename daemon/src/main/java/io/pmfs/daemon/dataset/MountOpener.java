package io.pmfs.daemon.dataset;

import io.pmfs.machine.MountFailure;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;

/** Opens a {@link MountedDataset} without mounting it yet. */
@FunctionalInterface
public interface MountOpener {
  /**
   * Opens a dataset.
   *
   * @param settings the settings of the session
   * @param session has a source if the session is resumed
   */
  MountedDataset open(MountSettings settings, SessionSettings session) throws MountFailure;
}
