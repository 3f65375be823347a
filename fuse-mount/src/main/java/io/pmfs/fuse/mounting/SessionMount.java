package io.pmfs.fuse.mounting;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * Identifies a session's mount by its device number, which names the kernel's connection. The path
 * does not: after this mount is detached, another may be at the same path.
 */
public final class SessionMount {
  private static final Path MOUNTS = Path.of("/proc/self/mountinfo");
  private static final int DEVICE = 2;
  private static final int MOUNTPOINT = 4;

  private final Path mountpoint;
  private volatile @Nullable String device;

  /**
   * A session's mount.
   *
   * @param device its device number, as in mountinfo; null if not mounted yet, or unknown
   */
  public SessionMount(Path mountpoint, @Nullable String device) {
    this.mountpoint = mountpoint;
    this.device = device;
  }

  Path mountpoint() {
    return mountpoint;
  }

  /** The device number, as in mountinfo; null if unknown. */
  public @Nullable String device() {
    return device;
  }

  String knownDevice() throws MountException {
    String known = device;
    if (known == null) {
      throw new MountException(
          MountException.Reason.FAILED, mountpoint + ": its device number is unknown", null);
    }
    return known;
  }

  /** Called when the session has been mounted or taken over. */
  public void recognize(int descriptor) {
    String reported = deviceOf(descriptor);
    if (reported != null) {
      device = reported;
    } else if (device == null) {
      device = deviceAt(mountpoint);
    }
  }

  /**
   * Whether the mount point leads to this mount. It does not if the mount is detached with files
   * open, or is covered by another mount. True if unknown.
   */
  public boolean isAtMountpoint() {
    String known = device;
    // The table may change while it is read, so check an absence twice.
    return known == null || shows(known) || shows(known);
  }

  private boolean shows(String known) {
    try {
      return known.equals(deviceAt(mountpoint, table()));
    } catch (IOException e) {
      return true;
    }
  }

  static String table() throws IOException {
    return new String(Files.readAllBytes(MOUNTS), ISO_8859_1);
  }

  /** The device number of a /dev/fuse descriptor's session, known from Linux 6.16 on; else null. */
  private static @Nullable String deviceOf(int descriptor) {
    try {
      for (String line : Files.readAllLines(Path.of("/proc/self/fdinfo/" + descriptor))) {
        if (line.startsWith("fuse_connection:")) {
          return "0:" + line.substring(line.indexOf(':') + 1).strip();
        }
      }
    } catch (IOException e) {
      return null;
    }
    return null;
  }

  /** The device number of the topmost mount at a path; null if none or unknown. */
  static @Nullable String deviceAt(Path path) {
    try {
      return deviceAt(path, table());
    } catch (IOException e) {
      return null;
    }
  }

  /** Like {@link #deviceAt(Path)}, from a table (proc(5)) with one char for each byte. */
  static @Nullable String deviceAt(Path path, String table) {
    String escaped = escaped(path);
    String found = null;
    for (String line : table.split("\n", -1)) {
      String[] fields = line.split(" ", MOUNTPOINT + 2);
      if (fields.length > MOUNTPOINT && fields[MOUNTPOINT].equals(escaped)) {
        found = fields[DEVICE];
      }
    }
    return found;
  }

  /** Escapes the path as the kernel does, with one char for each byte. */
  static String escaped(Path path) {
    return new String(path.toString().getBytes(UTF_8), ISO_8859_1)
        .replace("\\", "\\134")
        .replace(" ", "\\040")
        .replace("\t", "\\011")
        .replace("\n", "\\012");
  }
}
