package io.pmfs.daemon;

import io.pmfs.settings.MountFailure;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;

/** Makes a {@link MountedDataset} from settings, without mounting it yet. */
@FunctionalInterface
public interface MountOpener {
  /**
   * Opens a dataset.
   *
   * @param settings as the session has them
   * @param session which one it is: with a source if it goes on
   */
  MountedDataset open(MountSettings settings, SessionSettings session) throws MountFailure;
}
