package io.pmfs.writable.journal;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;

/**
 * What chattr(1) forbids at the source, also to root. The kernel of a mount does not know of it, so
 * it is checked where Linux does: in its inode_permission, may_delete and notify_change.
 */
public enum Protection {
  NONE(0),
  /** Only appended to: bytes of a file, names of a directory. */
  APPEND_ONLY(256),
  IMMUTABLE(512);

  /** The bits of {@link Inode#flags} that are a protection, in the tables only. */
  static final int BITS = 768;

  private final int bits;

  Protection(int bits) {
    this.bits = bits;
  }

  int bits() {
    return bits;
  }

  static Protection of(int flags) {
    return (flags & IMMUTABLE.bits) != 0
        ? IMMUTABLE
        : (flags & APPEND_ONLY.bits) != 0 ? APPEND_ONLY : NONE;
  }

  /**
   * Before attributes or names of a file are changed, it is emptied, or a name of a directory goes.
   *
   * @throws FsException EPERM
   */
  public void requireChangeable(String what) throws FsException {
    if (this != NONE) {
      throw refusal(what);
    }
  }

  /**
   * Before something is added: bytes to a file, a name to a directory.
   *
   * @throws FsException EPERM
   */
  public void requireGrowing(String what) throws FsException {
    if (this == IMMUTABLE) {
      throw refusal(what);
    }
  }

  private FsException refusal(String what) {
    String how = this == IMMUTABLE ? "immutable" : "append-only";
    return new FsException(Errno.EPERM, what + ": " + how + " at the source (chattr)");
  }
}
