package io.pmfs.fuse.mounting;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.fuse.mounting.MountException.Reason;
import io.pmfs.fuse.system.Beneath;
import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.Posix;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;

/**
 * A directory where root mounts and unmounts, although other users may change names above it at any
 * time: docs/decisions/0052. Its parent directory is opened from / by descriptors, without
 * following symbolic links, and kept open. *
 *
 * <p>INVARIANT: a mount is unmounted or bound only by a descriptor of it, after a check that the
 * mount has the wanted device number, which identifies the kernel's connection. No call here sends
 * a request to a mount's daemon, so none waits for a daemon that hangs.
 */
public final class MountPoint implements AutoCloseable {
  private static final LibC LIBC = LibC.INSTANCE;
  private static final int PLACE = Posix.O_PATH | Posix.O_NOFOLLOW | Posix.O_CLOEXEC;
  private static final int DIRECTORY = PLACE | Posix.O_DIRECTORY;

  private static final int MS_REMOUNT = 32;
  private static final int MS_BIND = 4096;
  static final int MS_RDONLY = 1;
  static final int MS_NOSUID = 2;
  static final int MS_NODEV = 4;
  static final int MS_NOEXEC = 8;
  private static final int MS_PRIVATE = 1 << 18;

  // linux/mount.h; the numbers are the same on every architecture. MOUNT_ATTR_RDONLY, _NOSUID,
  // _NODEV and _NOEXEC have the values of MS_*.
  private static final long SYS_OPEN_TREE = 428;
  private static final long SYS_MOVE_MOUNT = 429;
  private static final long SYS_MOUNT_SETATTR = 442;
  private static final int MOUNT_ATTR_SIZE = 32;
  private static final int OPEN_TREE_FLAGS = 1 | Posix.O_CLOEXEC | Posix.AT_EMPTY_PATH; // CLONE
  private static final int MOVE = 4 | 0x40; // F_EMPTY_PATH, T_EMPTY_PATH
  private static final int BENEATH = MOVE | 0x200;
  private static final byte[] HERE = {0};

  private final Path path;
  private final int parent;
  private final byte[] name;

  private MountPoint(Path path, int parent, Path name) {
    this.path = path;
    this.parent = parent;
    this.name = Posix.terminated(name.toString());
  }

  /**
   * Opens the parent directory; the mount point itself need not exist.
   *
   * @param path absolute, without links and "..", as in mountinfo
   * @throws MountException if a component is now a symbolic link, or missing
   */
  public static MountPoint open(Path path) throws MountException {
    return open(path, Beneath.HERE);
  }

  static MountPoint open(Path path, Beneath beneath) throws MountException {
    Path above = path.getParent();
    Path name = path.getFileName();
    if (above == null || name == null || !path.isAbsolute()) {
      throw new MountException(Reason.FAILED, path + ": not a directory below /", null);
    }
    try {
      return new MountPoint(path, beneath.open(above, DIRECTORY), name);
    } catch (FsException e) {
      throw new MountException(
          Reason.FAILED,
          path + ": cannot be reached without symbolic links: " + e.errno() + "; give its own path",
          e);
    }
  }

  /**
   * Mounts here, over existing mounts.
   *
   * @param flags of mount(2)
   */
  void mount(String source, String type, int flags, String data) throws MountException {
    int place = LIBC.openat(parent, name, DIRECTORY);
    try {
      if (place < 0
          || LIBC.mount(
                  Posix.terminated(source),
                  proc(place),
                  Posix.terminated(type),
                  flags,
                  Posix.terminated(data))
              != 0) {
        throw failure("mounted");
      }
    } finally {
      close(place);
    }
  }

  /**
   * Binds a mount here.
   *
   * @param from its mount point
   * @param device its device number
   * @param noExec whether to forbid executing programs; the mount is then read-only
   * @return false if it is no longer there
   */
  public boolean bind(MountPoint from, String device, boolean noExec) throws MountException {
    int mount = from.openMount(device);
    if (mount < 0) {
      return false;
    }
    int place = LIBC.openat(parent, name, DIRECTORY);
    try {
      if (place < 0 || LIBC.mount(proc(mount), proc(place), null, MS_BIND, null) != 0) {
        throw failure("mounted");
      }
    } finally {
      close(place);
      close(mount);
    }
    if (noExec) {
      forbidExecution(device);
    }
    return true;
  }

  private void forbidExecution(String device) throws MountException {
    int mount = openMount(device);
    int flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
    try {
      if (mount < 0 || LIBC.mount(null, proc(mount), null, flags, null) != 0) {
        throw failure("mounted with noexec");
      }
    } catch (MountException e) {
      unmount(device, true);
      throw e;
    } finally {
      close(mount);
    }
  }

  /**
   * Replaces a session by a directory, read-only, with the files' own permissions, and without the
   * mounts below it. On Linux 6.5 and later the kernel attaches the directory beneath the session
   * before the session is detached, so that readers always find one of them.
   *
   * @param device of the session
   * @return the id of the new mount in mountinfo; null if the session is no longer here
   * @throws MountException if that is impossible; the session may then be gone
   */
  public @Nullable String replace(String device, DirectoryStore directory) throws MountException {
    return replace(device, directory, BENEATH);
  }

  /**
   * Like {@link #replace(String, DirectoryStore)}.
   *
   * @param first the flags of move_mount(2) that are tried while the session is attached
   */
  @Nullable String replace(String device, DirectoryStore directory, int first)
      throws MountException {
    int session = openMount(device);
    if (session < 0) {
      return null;
    }
    int tree = -1;
    try {
      boolean noExec = optionsOf(session).contains("noexec");
      tree = (int) LIBC.syscall(SYS_OPEN_TREE, directory.descriptor(), HERE, OPEN_TREE_FLAGS);
      if (tree < 0
          || LIBC.syscall(
                  SYS_MOUNT_SETATTR,
                  tree,
                  HERE,
                  Posix.AT_EMPTY_PATH,
                  readOnly(noExec),
                  MOUNT_ATTR_SIZE)
              != 0) {
        throw failure("replaced by its source");
      }
      String number = mountId(tree);
      boolean isBeneath = LIBC.syscall(SYS_MOVE_MOUNT, tree, HERE, session, HERE, first) == 0;
      succeed(LIBC.umount2(proc(session), Posix.MNT_DETACH));
      if (!isBeneath) {
        attach(tree);
      }
      return number;
    } finally {
      close(tree);
      close(session);
    }
  }

  private void attach(int tree) throws MountException {
    int place = LIBC.openat(parent, name, DIRECTORY);
    try {
      if (place < 0 || LIBC.syscall(SYS_MOVE_MOUNT, tree, HERE, place, HERE, MOVE) != 0) {
        throw failure("mounted");
      }
    } finally {
      close(place);
    }
  }

  /** A struct mount_attr, mount_setattr(2). */
  private static Pointer readOnly(boolean noExec) {
    Pointer attributes = Memory.allocateDirect(Posix.RUNTIME, MOUNT_ATTR_SIZE);
    attributes.putLongLong(0, MS_RDONLY | MS_NOSUID | MS_NODEV | (noExec ? MS_NOEXEC : 0));
    attributes.putLongLong(8, 0);
    attributes.putLongLong(16, MS_PRIVATE); // mounts made in the source stay there
    attributes.putLongLong(24, 0);
    return attributes;
  }

  /** Whether the topmost mount here has this device number. */
  public boolean shows(String device) {
    int mount = openMount(device);
    close(mount);
    return mount >= 0;
  }

  /**
   * Unmounts the mount with this device number; does nothing if another one, or none, is here.
   *
   * @throws MountException with {@link Reason#BUSY} if it is in use, unless {@code lazy}
   */
  public void unmount(String device, boolean lazy) throws MountException {
    if (lazy) {
      detach(device, Posix.MNT_DETACH);
      return;
    }
    // A descriptor of the mount would keep it busy, so its name in an open directory has to do. The
    // kernel does not rename mount points; decision 52 describes the remaining race.
    if (shows(device)) {
      byte[] named = Posix.terminated("/proc/self/fd/" + parent + "/" + path.getFileName());
      succeed(LIBC.umount2(named, Posix.UMOUNT_NOFOLLOW));
    }
  }

  /**
   * Detaches the mount with this device number, and fails requests that wait for its daemon.
   *
   * @return false if it is no longer here
   */
  public boolean abort(String device) throws MountException {
    return detach(device, Posix.MNT_FORCE | Posix.MNT_DETACH);
  }

  private boolean detach(String device, int flags) throws MountException {
    int mount = openMount(device);
    try {
      if (mount >= 0) {
        succeed(LIBC.umount2(proc(mount), flags));
      }
      return mount >= 0;
    } finally {
      close(mount);
    }
  }

  private void succeed(int result) throws MountException {
    // EINVAL: no longer a mount point, which is the desired result.
    if (result != 0 && Posix.errno() != Errno.EINVAL) {
      throw failure("unmounted");
    }
  }

  private MountException failure(String done) {
    Errno errno = Posix.errno();
    Reason reason =
        switch (errno) {
          case EBUSY -> Reason.BUSY;
          case EPERM -> Reason.UNAVAILABLE;
          default -> Reason.FAILED;
        };
    return new MountException(reason, path + " cannot be " + done + ": " + errno, null);
  }

  /** A descriptor of the topmost mount here; negative if it is not the wanted mount. */
  private int openMount(String device) {
    int mount = LIBC.openat(parent, name, PLACE);
    // The table may change while it is read, so check an absence twice.
    if (mount >= 0 && !device.equals(deviceOf(mount)) && !device.equals(deviceOf(mount))) {
      close(mount);
      return -1;
    }
    return mount;
  }

  /** The device number of the mount that contains an open file; null if the mount is detached. */
  private static @Nullable String deviceOf(int file) {
    return field(file, 2);
  }

  /** The options of the mount that contains an open file. */
  private static List<String> optionsOf(int file) {
    String options = field(file, 5);
    return options == null ? List.of() : List.of(options.split(",", -1));
  }

  private static @Nullable String field(int file, int index) {
    String id = mountId(file);
    try {
      for (String line : SessionMount.table().split("\n", -1)) {
        String[] fields = line.split(" ", index + 2);
        if (fields.length == index + 2 && fields[0].equals(id)) {
          return fields[index];
        }
      }
    } catch (IOException e) {
      return null;
    }
    return null;
  }

  /**
   * From fdinfo, proc(5): statx(2) would send a request to the daemon, and has the id only from
   * Linux 5.8 on.
   */
  private static @Nullable String mountId(int file) {
    try {
      String info = Files.readString(Path.of("/proc/self/fdinfo/" + file), ISO_8859_1);
      return info.lines()
          .filter(line -> line.startsWith("mnt_id:"))
          .map(line -> line.substring("mnt_id:".length()).strip())
          .findFirst()
          .orElse(null);
    } catch (IOException e) {
      return null;
    }
  }

  /** A path that leads to an open file, even if it was renamed. */
  private static byte[] proc(int file) {
    return Posix.terminated("/proc/self/fd/" + file);
  }

  private static void close(int file) {
    if (file >= 0) {
      LIBC.close(file);
    }
  }

  @Override
  public void close() {
    LIBC.close(parent);
  }
}
