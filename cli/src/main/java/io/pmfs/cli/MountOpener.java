package io.pmfs.cli;

/** Makes a {@link MountedDataset} from settings, without mounting it yet. */
@FunctionalInterface
interface MountOpener {
  /**
   * Opens a dataset.
   *
   * @param settings as the session has them
   * @param session which one it is: with a source if it goes on
   */
  MountedDataset open(MountSettings settings, SessionSettings session) throws MountFailure;
}
