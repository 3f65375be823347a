package io.pmfs.fuse.mounting;

import io.pmfs.fuse.protocol.KernelProtocol;
import java.nio.file.Path;
import java.time.Duration;

/**
 * How a file system is mounted.
 *
 * @param mountpoint an absolute path
 * @param source what mount(8) shows as the device
 * @param allowOther whether users other than the one who mounts have access
 * @param isWritable whether files can be changed through the mount
 * @param noExec whether no program may be executed there
 * @param timeout how long the kernel may keep names, attributes and their absence without asking
 *     again
 * @param maxReadBytes the largest read that the kernel may request
 */
public record MountSpec(
    Path mountpoint,
    String source,
    boolean allowOther,
    boolean isWritable,
    boolean noExec,
    Duration timeout,
    int maxReadBytes) {
  public MountSpec(
      Path mountpoint,
      String source,
      boolean allowOther,
      boolean isWritable,
      boolean noExec,
      Duration timeout) {
    this(
        mountpoint, source, allowOther, isWritable, noExec, timeout, KernelProtocol.MAX_READ_BYTES);
  }

  /** The same file system at another mount point, read in smaller pieces. */
  public MountSpec at(Path other, int otherMaxReadBytes) {
    return new MountSpec(other, source, allowOther, isWritable, noExec, timeout, otherMaxReadBytes);
  }

  /** The access option of mount(8). */
  String access() {
    return isWritable ? "rw" : "ro";
  }
}
