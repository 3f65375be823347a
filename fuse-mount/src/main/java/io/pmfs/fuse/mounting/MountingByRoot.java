package io.pmfs.fuse.mounting;

import io.pmfs.fuse.mounting.MountException.Reason;
import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.Posix;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Mounts by mount(2) and umount2(2), on a new descriptor or a given one: as root, or as a user in a
 * namespace of their own.
 */
final class MountingByRoot implements Mounting {
  private static final LibC LIBC = LibC.INSTANCE;

  private final MountSpec options;
  private final SessionMount own;
  private final @Nullable Integer given;

  MountingByRoot(MountSpec options, SessionMount own, @Nullable Integer given) {
    this.options = options;
    this.own = own;
    this.given = given;
  }

  @Override
  public int mount(Duration timeout) throws MountException {
    int device = given == null ? open() : given;
    String data =
        "fd="
            + device
            + ",rootmode=40000,user_id="
            + LIBC.geteuid()
            + ",group_id="
            + LIBC.getegid()
            + ",default_permissions,max_read="
            + options.maxReadBytes()
            + (options.allowOther() ? ",allow_other" : "");
    try (MountPoint place = MountPoint.open(options.mountpoint())) {
      place.mount(options.source(), "fuse.pmfs", flags(), data);
    } catch (Throwable e) {
      LIBC.close(device);
      throw e;
    }
    return device;
  }

  private int flags() {
    return MountPoint.MS_NOSUID
        | MountPoint.MS_NODEV
        | (options.isWritable() ? 0 : MountPoint.MS_RDONLY)
        | (options.noExec() ? MountPoint.MS_NOEXEC : 0);
  }

  private static int open() throws MountException {
    int device = LIBC.open(Posix.terminated("/dev/fuse"), Posix.O_RDWR | Posix.O_CLOEXEC);
    if (device < 0) {
      throw new MountException(
          Reason.UNAVAILABLE, "/dev/fuse cannot be opened: " + Posix.errno(), null);
    }
    return device;
  }

  @Override
  public void unmount(boolean lazy) throws MountException {
    Unmount.unmount(own, lazy);
  }

  /** Later readers see the directory beneath the mount. */
  @Override
  public void abort() throws MountException {
    try (MountPoint place = MountPoint.open(options.mountpoint())) {
      if (!place.abort(own.knownDevice())) {
        throw new MountException(Reason.FAILED, "it is no longer at its mount point", null);
      }
    }
  }

  @Override
  public void setReadAhead() {
    ReadAhead.set(own.device());
  }

  @Override
  public @Nullable String noPassthrough() {
    return LIBC.geteuid() == 0 ? null : MountingByUser.NO_PASSTHROUGH;
  }
}
