package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.posix.Errno;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.function.IntPredicate;
import java.util.function.Predicate;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;

/**
 * Who can write to a file because of its group bits: the group's members, and users named in a
 * POSIX access-control list, whose mask replaces the group bits (acl(5)).
 */
public final class GroupWriters {
  private static final byte[] ACCESS_LIST = Posix.terminated("system.posix_acl_access");

  // linux/posix_acl_xattr.h: a version of 4 bytes, then entries of tag, permissions and id.
  private static final int HEADER_BYTES = 4;
  private static final int ENTRY_BYTES = 8;
  private static final int MOST_ENTRY_BYTES = 64 << 10;
  private static final int USER = 0x02;
  private static final int GROUP_OF_FILE = 0x04;
  private static final int GROUP = 0x08;
  private static final int MASK = 0x10;
  private static final int WRITE = 2;

  // struct group of 64-bit C libraries.
  private static final int NAME = 0;
  private static final int MEMBERS = 24;

  private final IntPredicate isTrusted;
  private final Predicate<String> isTrustedName;
  private final AccessLists lists;

  /**
   * Trusts the given users.
   *
   * @param isTrusted whether to trust a user id with write access
   * @param isTrustedName whether to trust a user name
   */
  public GroupWriters(IntPredicate isTrusted, Predicate<String> isTrustedName) {
    this(isTrusted, isTrustedName, GroupWriters::read);
  }

  GroupWriters(IntPredicate isTrusted, Predicate<String> isTrustedName, AccessLists lists) {
    this.isTrusted = isTrusted;
    this.isTrustedName = isTrustedName;
    this.lists = lists;
  }

  /** Reads access-control lists. */
  interface AccessLists {
    /** Returns the list's size, or a negated errno. */
    long read(Path path, byte[] list);
  }

  private static long read(Path path, byte[] list) {
    long size =
        LibC.INSTANCE.getxattr(Posix.terminated(path.toString()), ACCESS_LIST, list, list.length);
    return size < 0 ? -Posix.errno().number() : size;
  }

  /**
   * An untrusted user or group that can write, such as {@code group staff}; null if there is none.
   * A group is trusted if it has the name of a trusted user and no other members, as in systems
   * that create a private group for each user. An unreadable list counts as untrusted.
   *
   * @param path a file with group write permission, not a symbolic link
   * @param group the file's group
   */
  public @Nullable String stranger(Path path, int group) {
    byte[] list = new byte[MOST_ENTRY_BYTES];
    long size = lists.read(path, list);
    if (size == -Errno.ENODATA.number() || size == -Errno.EOPNOTSUPP.number()) {
      return strangerOf(group);
    }
    if (size <= HEADER_BYTES || size % ENTRY_BYTES != HEADER_BYTES) {
      return "a user in its access-control list, which cannot be read (%s),"
          .formatted(size < 0 ? Errno.of((int) -size) : "malformed");
    }
    ByteBuffer entries = ByteBuffer.wrap(list, 0, (int) size).order(ByteOrder.LITTLE_ENDIAN);
    int mask = WRITE;
    for (int at = HEADER_BYTES; at + ENTRY_BYTES <= size; at += ENTRY_BYTES) {
      if (entries.getShort(at) == MASK) {
        mask = entries.getShort(at + 2);
      }
    }
    for (int at = HEADER_BYTES; at + ENTRY_BYTES <= size; at += ENTRY_BYTES) {
      String found =
          (entries.getShort(at + 2) & mask & WRITE) == 0
              ? null
              : switch (entries.getShort(at)) {
                case USER -> strangerNamed(entries.getInt(at + 4));
                case GROUP_OF_FILE -> strangerOf(group);
                case GROUP -> strangerOf(entries.getInt(at + 4));
                default -> null;
              };
      if (found != null) {
        return found;
      }
    }
    return null;
  }

  private @Nullable String strangerNamed(int uid) {
    return isTrusted.test(uid) ? null : "user " + Integer.toUnsignedString(uid);
  }

  /** The C library keeps one result for all threads. */
  private @Nullable String strangerOf(int gid) {
    synchronized (GroupWriters.class) {
      Pointer group = LibC.INSTANCE.getgrgid(gid);
      if (group == null) {
        return "group " + Integer.toUnsignedString(gid);
      }
      String name = text(group.getPointer(NAME));
      boolean isPrivate = isTrustedName.test(name);
      Pointer members = group.getPointer(MEMBERS);
      for (int i = 0; isPrivate && members != null; i++) {
        Pointer member = members.getPointer(8L * i);
        if (member == null) {
          break;
        }
        isPrivate = isTrustedName.test(text(member));
      }
      return isPrivate ? null : "group " + name;
    }
  }

  private static String text(Pointer name) {
    return name.getString(0, MOST_ENTRY_BYTES, UTF_8);
  }
}
