package io.pmfs.fuse.mounting;

import io.pmfs.fuse.system.LibC;
import java.time.Duration;

/** Mounts through the supervisor, which runs as root, for a daemon that does not. */
final class MountingBySupervisor implements Mounting {
  private final MountSpec options;
  private final int device;
  private final Mounter mounter;

  MountingBySupervisor(MountSpec options, int device, Mounter mounter) {
    this.options = options;
    this.device = device;
    this.mounter = mounter;
  }

  @Override
  public int mount(Duration timeout) throws MountException {
    try {
      mounter.mount(
          options.source(),
          options.mountpoint(),
          options.maxReadBytes(),
          options.allowOther(),
          options.access());
      return device;
    } catch (Throwable e) {
      LibC.INSTANCE.close(device);
      throw e;
    }
  }

  @Override
  public void unmount(boolean lazy) throws MountException {
    mounter.unmount(lazy);
  }

  @Override
  public void abort() throws MountException {
    mounter.abort();
  }

  @Override
  public void setReadAhead() {
    mounter.setReadAhead(ReadAhead.KIBIBYTES);
  }
}
