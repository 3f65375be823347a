package io.pmfs.cli;

/** Makes a {@link MountedDataset} from settings, without mounting it yet. */
@FunctionalInterface
interface MountOpener {
  MountedDataset open(MountSettings settings) throws MountFailure;
}
