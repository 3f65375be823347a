package io.pmfs.fuse.mounting;

import io.pmfs.fuse.mounting.MountException.Reason;
import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.Posix;
import io.pmfs.tier.Errno;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Mounts by mount(2) and umount2(2), on a new descriptor or a given one. */
final class MountingByRoot implements Mounting {
  private static final LibC LIBC = LibC.INSTANCE;
  private static final int MS_RDONLY = 1;
  private static final int MS_NOSUID = 2;
  private static final int MS_NODEV = 4;

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
            + ",rootmode=40000,user_id=0,group_id=0,default_permissions,max_read="
            + options.maxReadBytes()
            + (options.allowOther() ? ",allow_other" : "");
    int result =
        LIBC.mount(
            Posix.terminated(options.source()),
            Posix.terminated(options.mountpoint().toString()),
            Posix.terminated("fuse.pmfs"),
            (options.isWritable() ? 0 : MS_RDONLY) | MS_NOSUID | MS_NODEV,
            Posix.terminated(data));
    if (result != 0) {
      Errno errno = Posix.errno();
      LIBC.close(device);
      throw new MountException(
          errno == Errno.EPERM ? Reason.UNAVAILABLE : Reason.FAILED,
          options.mountpoint() + " cannot be mounted: " + errno,
          null);
    }
    return device;
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

  /** Later readers see the directory below the mount. */
  @Override
  public void abort() throws MountException {
    if (!own.isAtMountpoint()) {
      throw new MountException(Reason.FAILED, "it is no longer at its mount point", null);
    }
    int flags = Posix.MNT_FORCE | Posix.MNT_DETACH | Posix.UMOUNT_NOFOLLOW;
    if (LIBC.umount2(Posix.terminated(options.mountpoint().toString()), flags) != 0) {
      throw new MountException(Reason.FAILED, Posix.errno().toString(), null);
    }
  }

  @Override
  public void setReadAhead() {
    ReadAhead.set(options.mountpoint());
  }
}
