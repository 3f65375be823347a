package io.pmfs.places;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;

import io.pmfs.fuse.system.GroupWriters;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Root and one user, and the two rules of {@link OwnPath} about what only they control. Immutable.
 */
final class TrustedUsers {
  private static final int STICKY = 01000;
  private static final int GROUP_WRITES = 0020;
  private static final int OTHERS_WRITE = 0002;

  private final int uid;

  /** The id as which root's files appear: 0, except in some user namespaces. */
  private final int root;

  private final GroupWriters groups;

  TrustedUsers(int uid, String userName, int root) {
    this.uid = uid;
    this.root = root;
    this.groups =
        new GroupWriters(
            user -> user == 0 || user == uid, name -> name.equals("root") || name.equals(userName));
  }

  boolean areOf(long user) {
    return Integer.toUnsignedLong(uid) == user;
  }

  /** The attributes of a file, directory or link. */
  record Found(int uid, int gid, int mode) {
    private static final int S_IFMT = 0170000;
    private static final int S_IFCHR = 0020000;
    private static final int S_IFDIR = 0040000;
    private static final int S_IFBLK = 0060000;
    private static final int S_IFLNK = 0120000;
    private static final int S_IFREG = 0100000;

    /** Does not follow links; null if the path does not exist. */
    static @Nullable Found at(Path path) throws IOException {
      try {
        Map<String, Object> found = Files.readAttributes(path, "unix:uid,gid,mode", NOFOLLOW_LINKS);
        return new Found(number(found, "uid"), number(found, "gid"), number(found, "mode"));
      } catch (NoSuchFileException e) {
        return null;
      }
    }

    private static int number(Map<String, Object> attributes, String name) {
      return (Integer) Objects.requireNonNull(attributes.get(name));
    }

    boolean isDirectory() {
      return (mode & S_IFMT) == S_IFDIR;
    }

    boolean isLink() {
      return (mode & S_IFMT) == S_IFLNK;
    }

    boolean isRegular() {
      return (mode & S_IFMT) == S_IFREG;
    }

    boolean isDevice() {
      return (mode & S_IFMT) == S_IFCHR || (mode & S_IFMT) == S_IFBLK;
    }

    boolean isSticky() {
      return (mode & STICKY) != 0;
    }
  }

  /**
   * Throws unless root or the user owns it.
   *
   * @param isShared whether others can make entries in its directory
   */
  void requireOwner(Path path, Found found, boolean isShared) throws NotOwnException {
    // In a user namespace, files of unmapped users may appear as root's. If only root and the user
    // can create entries in the directory, such a file is root's, or root gave it away.
    if (found.uid() != uid && found.uid() != 0 && (found.uid() != root || isShared)) {
      throw new NotOwnException(
          path, "%s belongs to user %s".formatted(path, ownerOf(path, found)));
    }
  }

  private static String ownerOf(Path path, Found found) {
    try {
      return Files.getOwner(path, NOFOLLOW_LINKS).getName();
    } catch (IOException e) {
      return Integer.toUnsignedString(found.uid());
    }
  }

  /** Another user or group that may write in it, as text; null if there is none. */
  @Nullable String strangerWhoWrites(Path path, Found found) {
    if ((found.mode() & OTHERS_WRITE) != 0) {
      return "everybody";
    }
    return (found.mode() & GROUP_WRITES) == 0 ? null : groups.stranger(path, found.gid());
  }

  /** Throws if another user may write in it. */
  void requireClosed(Path path, Found found) throws NotOwnException {
    String stranger = strangerWhoWrites(path, found);
    if (stranger != null) {
      // Devices such as /dev/null are meant for all users.
      String remedy = found.isDevice() ? "" : "; chmod go-w %s closes it".formatted(path);
      throw new NotOwnException(
          path, "%s can write in %s (mode %s%s)".formatted(stranger, path, modeOf(found), remedy));
    }
  }

  private static String modeOf(Found found) {
    return String.format(Locale.ROOT, "%04o", found.mode() & 07777);
  }
}
