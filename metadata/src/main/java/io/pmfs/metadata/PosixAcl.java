package io.pmfs.metadata;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A POSIX access-control list as {@code system.posix_acl_access} has it (linux/posix_acl_xattr.h):
 * a version, then entries of a tag, permissions and an id, all little-endian.
 */
public final class PosixAcl {
  private static final int VERSION = 2;
  private static final int ENTRY_BYTES = 8;
  private static final int ALL = 7;

  /** Stands for the rights of all named entries if there are none. */
  private static final int NO_ENTRY = ~0;

  // linux/posix_acl.h
  private static final int USER_OBJ = 1;
  private static final int USER = 2;
  private static final int GROUP_OBJ = 4;
  private static final int GROUP = 8;
  private static final int MASK = 0x10;
  private static final int OTHER = 0x20;

  private static final int OF_GROUP_AND_OTHERS = 077;

  /** The extended attribute with the list that determines access. */
  public static final FileName ACCESS = FileName.of("system.posix_acl_access");

  private PosixAcl() {}

  /**
   * The largest mode that grants no user more rights than the list, for checks that only see the
   * mode. A malformed list leaves only the owner's rights.
   *
   * @param mode of the file with the list; its owner bits are those of the list
   */
  public static int leastMode(int mode, byte[] list) {
    ByteBuffer in = ByteBuffer.wrap(list).order(ByteOrder.LITTLE_ENDIAN);
    if (in.remaining() % ENTRY_BYTES != Integer.BYTES || in.getInt() != VERSION) {
      return mode & ~OF_GROUP_AND_OTHERS;
    }
    int mask = ALL;
    int owningGroup = 0;
    int others = 0;
    int users = NO_ENTRY;
    int groups = NO_ENTRY;
    while (in.hasRemaining()) {
      int tag = in.getShort();
      int permissions = in.getShort() & ALL;
      in.getInt();
      switch (tag) {
        case USER_OBJ -> {}
        case USER -> users &= permissions;
        case GROUP_OBJ -> owningGroup = permissions;
        case GROUP -> groups &= permissions;
        case MASK -> mask = permissions;
        case OTHER -> others = permissions;
        default -> {
          return mode & ~OF_GROUP_AND_OTHERS;
        }
      }
    }
    // In a check of the mode alone, a named user counts as group or other.
    int ofGroup = owningGroup & mask & masked(users, mask);
    int ofOthers = others & masked(users, mask) & masked(groups, mask);
    return (mode & ~OF_GROUP_AND_OTHERS) | ofGroup << 3 | ofOthers;
  }

  private static int masked(int ofNamed, int mask) {
    return ofNamed == NO_ENTRY ? ALL : ofNamed & mask;
  }

  /**
   * The list after chmod(2): the mode's group bits become those of the mask, if there is one. A
   * malformed list is unchanged.
   */
  public static byte[] withMode(byte[] list, int mode) {
    if (list.length % ENTRY_BYTES != Integer.BYTES) {
      return list;
    }
    ByteBuffer changed = ByteBuffer.wrap(list.clone()).order(ByteOrder.LITTLE_ENDIAN);
    int groupAt = -1;
    for (int at = Integer.BYTES; at < list.length; at += ENTRY_BYTES) {
      switch (changed.getShort(at)) {
        case USER_OBJ -> changed.putShort(at + 2, (short) ((mode >> 6) & ALL));
        case GROUP_OBJ -> groupAt = groupAt < 0 ? at : groupAt;
        case MASK -> groupAt = at;
        case OTHER -> changed.putShort(at + 2, (short) (mode & ALL));
        default -> {}
      }
    }
    if (groupAt > 0) {
      changed.putShort(groupAt + 2, (short) ((mode >> 3) & ALL));
    }
    return changed.array();
  }
}
