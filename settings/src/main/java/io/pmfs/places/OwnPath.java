package io.pmfs.places;

import io.pmfs.machine.Reason;
import io.pmfs.machine.UserNamespace;
import io.pmfs.places.OwnWalk.End;
import io.pmfs.places.OwnWalk.Purpose;
import io.pmfs.places.TrustedUsers.Found;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;

/**
 * Checks places that pmfs trusts: only root and the user of this process may be able to change
 * where a path leads. Each method returns the path without symbolic links, which the caller must
 * use; each throws {@link NotOwnException} if another user could change it. Immutable.
 *
 * <p>It examines each component from / on, without following links. A component must belong to root
 * or to the user, and no other user may have write permission in a directory on the way, unless it
 * is sticky: then others can add entries, but not replace those of root or the user.
 *
 * <p>INVARIANT: when a component is examined, no other user can change any component above it. So
 * the result still holds when the path is used, without an open descriptor. For the same reason a
 * link of root or the user is safe to follow.
 *
 * <p>docs/decisions/0051 explains why, and defines other users.
 */
public final class OwnPath {
  private final TrustedUsers users;

  /**
   * Checks paths for one user.
   *
   * @param root the id as which root's files appear; see {@link UserNamespace}
   */
  OwnPath(int uid, String userName, int root) {
    this.users = new TrustedUsers(uid, userName, root);
  }

  /** Reads the user once, when first needed. */
  private static final class OfProcess {
    private static final OwnPath PATH = find();

    private static OwnPath find() {
      try {
        Path self = Path.of("/proc/self");
        int uid = (Integer) Files.getAttribute(self, "unix:uid");
        return new OwnPath(uid, Files.getOwner(self).getName(), UserNamespace.ofProcess().root());
      } catch (IOException e) {
        throw new IllegalStateException("/proc/self: " + Reason.of(e), e);
      }
    }
  }

  /** For the effective user of this process. */
  public static OwnPath ofProcess() {
    return OfProcess.PATH;
  }

  /** For the user of these surroundings, who differs from the process's only in tests. */
  public static OwnPath of(Surroundings surroundings) {
    OwnPath ofProcess = ofProcess();
    return ofProcess.users.areOf(surroundings.uid())
        ? ofProcess
        : new OwnPath((int) surroundings.uid(), surroundings.userName(), 0);
  }

  /**
   * The path without symbolic links, as far as it exists. Checks only what determines where it
   * leads: the links and their directories. Other problems appear when the path is used.
   */
  public Path resolve(Path path) throws NotOwnException {
    OwnWalk walk = new OwnWalk(users, path, Purpose.RESOLVE);
    try {
      return walk.go().path();
    } catch (NotOwnException e) {
      throw e;
    } catch (IOException e) {
      return walk.rest();
    }
  }

  /** Checks a directory, which need not exist and may be sticky; creates nothing. */
  public Path check(Path directory) throws IOException {
    return walk(directory, Purpose.CHECK).path();
  }

  /** A directory in which only root and the user can create entries; created if missing. */
  public Path directory(Path directory) throws IOException {
    End end = walk(directory, Purpose.MAKE);
    requireUnshared(end);
    return end.path();
  }

  /** Like {@link #directory}, but it need not exist and is not created. */
  public Path existing(Path directory) throws IOException {
    End end = walk(directory, Purpose.CHECK);
    if (end.found() != null) {
      requireUnshared(end);
    }
    return end.path();
  }

  private static void requireUnshared(End end) throws NotOwnException {
    if (end.isShared()) {
      throw new NotOwnException(end.path(), "others can make files in %s".formatted(end.path()));
    }
  }

  /**
   * Like {@link #directory}, but it may be sticky: the caller must check each entry that it uses.
   */
  public Path sharedDirectory(Path directory) throws IOException {
    return walk(directory, Purpose.MAKE).path();
  }

  private End walk(Path directory, Purpose purpose) throws IOException {
    End end = new OwnWalk(users, directory, purpose).go();
    Found found = end.found();
    if (found != null && !found.isDirectory()) {
      throw new NotDirectoryException(end.path().toString());
    }
    return end;
  }

  /**
   * A {@link #directory} whose content also belongs to root or the user, two levels deep: a user
   * who could write in it before left no entry that leads elsewhere.
   */
  public Path filledDirectory(Path directory) throws IOException {
    Path place = directory(directory);
    requireOwnEntries(place, true);
    return place;
  }

  private void requireOwnEntries(Path directory, boolean goesDeeper) throws IOException {
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(directory)) {
      for (Path entry : entries) {
        Found found = Found.at(entry);
        if (found == null) {
          continue;
        }
        users.requireOwner(entry, found, true);
        if (found.isDirectory()) {
          users.requireClosed(entry, found);
          if (goesDeeper) {
            requireOwnEntries(entry, false);
          }
        }
      }
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
  }

  /** A file or a device that only root and the user can write; it need not exist. */
  public Path file(Path file) throws IOException {
    End end = new OwnWalk(users, file, Purpose.CHECK).go();
    Found found = end.found();
    if (found != null && !found.isDirectory()) {
      users.requireClosed(end.path(), found);
      if (!found.isRegular() && !found.isDevice()) {
        throw new FileSystemException(end.path().toString(), null, "neither a file nor a device");
      }
    }
    return end.path();
  }

  /**
   * A file to write, and to replace by a rename, in a {@link #directory}, which is created if
   * missing. If the file exists, it must be a regular {@link #file}.
   */
  public Path replaceableFile(Path file) throws IOException {
    Path parent = file.toAbsolutePath().getParent();
    if (parent != null) {
      directory(parent);
    }
    Path place = file(file);
    Found found = Found.at(place);
    if (found != null && !found.isRegular()) {
      throw new FileSystemException(place.toString(), null, "not a regular file");
    }
    return place;
  }

  /**
   * Whether an entry of a checked directory is a directory of root or the user that others cannot
   * write.
   */
  boolean isOwnEntry(Path directory) {
    try {
      Found found = Found.at(directory);
      if (found == null || !found.isDirectory()) {
        return false;
      }
      users.requireOwner(directory, found, true);
      users.requireClosed(directory, found);
      return true;
    } catch (IOException e) {
      return false;
    }
  }
}
