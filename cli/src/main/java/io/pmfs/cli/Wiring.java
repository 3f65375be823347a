package io.pmfs.cli;

/** Calls everyone's constructors: the one place where the modules meet. */
final class Wiring implements MountOpener {
  @Override
  public MountedDataset open(MountSettings settings) throws MountFailure {
    throw new MountFailure(
        ExitStatus.CANNOT, settings.mountpoint() + ": this build has no file system wired in");
  }
}
