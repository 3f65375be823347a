package io.pmfs.fuse;

import io.pmfs.fuse.protocol.ChangeProtocol;
import io.pmfs.fuse.protocol.KernelRequest;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import java.time.DateTimeException;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

final class AttributeRequest {
  private static final int PERMISSIONS = 07777;

  private AttributeRequest() {}

  static NewAttributes of(KernelRequest request) throws FsException {
    int valid = request.intAt(ChangeProtocol.SETATTR_VALID);
    return new NewAttributes(
        number(request, valid, ChangeProtocol.FATTR_MODE, ChangeProtocol.SETATTR_MODE, PERMISSIONS),
        number(request, valid, ChangeProtocol.FATTR_UID, ChangeProtocol.SETATTR_UID, -1),
        number(request, valid, ChangeProtocol.FATTR_GID, ChangeProtocol.SETATTR_GID, -1),
        size(request, valid),
        time(
            request,
            valid,
            ChangeProtocol.FATTR_ATIME,
            ChangeProtocol.FATTR_ATIME_NOW,
            ChangeProtocol.SETATTR_ATIME,
            ChangeProtocol.SETATTR_ATIME_NANOS),
        time(
            request,
            valid,
            ChangeProtocol.FATTR_MTIME,
            ChangeProtocol.FATTR_MTIME_NOW,
            ChangeProtocol.SETATTR_MTIME,
            ChangeProtocol.SETATTR_MTIME_NANOS),
        has(valid, ChangeProtocol.FATTR_FH) ? request.longAt(ChangeProtocol.SETATTR_HANDLE) : 0,
        has(valid, ChangeProtocol.FATTR_KILL_SUIDGID));
  }

  /** Whether nothing changes, except perhaps set-id bits. */
  static boolean isEmpty(NewAttributes wanted) {
    return wanted.mode() == null
        && wanted.uid() == null
        && wanted.gid() == null
        && wanted.size() == null
        && wanted.accessTime() == null
        && wanted.modificationTime() == null;
  }

  private static boolean has(int valid, int bit) {
    return (valid & bit) != 0;
  }

  private static @Nullable Integer number(
      KernelRequest request, int valid, int bit, int offset, int mask) throws FsException {
    return has(valid, bit) ? request.intAt(offset) & mask : null;
  }

  private static @Nullable Long size(KernelRequest request, int valid) throws FsException {
    return has(valid, ChangeProtocol.FATTR_SIZE)
        ? request.longAt(ChangeProtocol.SETATTR_SIZE)
        : null;
  }

  private static @Nullable Instant time(
      KernelRequest request, int valid, int bit, int nowBit, int seconds, int nanos)
      throws FsException {
    if (!has(valid, bit | nowBit)) {
      return null;
    }
    if (has(valid, nowBit)) {
      return Instant.now();
    }
    try {
      return Instant.ofEpochSecond(
          request.longAt(seconds), Integer.toUnsignedLong(request.intAt(nanos)));
    } catch (DateTimeException e) {
      throw new FsException(Errno.EINVAL, "a time out of range", e);
    }
  }
}
