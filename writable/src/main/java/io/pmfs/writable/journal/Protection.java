package io.pmfs.writable.journal;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;

/**
 * Protection by chattr(1) at the source, which also binds root. The mount's kernel does not know
 * it, so it is checked here where Linux does: in its inode_permission, may_delete and
 * notify_change.
 */
public enum Protection {
  NONE(0),
  /** Append-only: bytes of a file, names of a directory. */
  APPEND_ONLY(256),
  IMMUTABLE(512);

  /** The bits of {@link Inode#flags} for a protection, in the tables only. */
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
   * Checks before attributes or names of a file change, it is truncated, or a name of a directory
   * is removed.
   *
   * @throws FsException EPERM
   */
  public void requireChangeable(String what) throws FsException {
    if (this != NONE) {
      throw refusal(what);
    }
  }

  /**
   * Checks before bytes are added to a file, or a name to a directory.
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
