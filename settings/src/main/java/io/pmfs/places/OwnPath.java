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
 * The one check of places that pmfs trusts: that nobody but root and the user of this process can
 * change what a path leads to. Each method returns the path without symbolic links, which the
 * caller then uses; each throws {@link NotOwnException} if somebody else could change it.
 * Immutable.
 *
 * <p>It looks at each component from / on, without following links. A component must belong to root
 * or to the user, and nobody else may write in a directory on the way, unless it is sticky: then
 * others can add entries, but cannot replace one that belongs to root or the user.
 *
 * <p>INVARIANT: when a component is looked at, nobody else can change any component above it. So
 * what was found is still there when the path is used, and no descriptor needs to be kept. For the
 * same reason a link is followed if it belongs to root or the user.
 *
 * <p>docs/decisions/0051 says why, and who counts as somebody else.
 */
public final class OwnPath {
  private final TrustedUsers users;

  /**
   * For one user.
   *
   * @param root as which user the files of root show; see {@link UserNamespace}
   */
  OwnPath(int uid, String userName, int root) {
    this.users = new TrustedUsers(uid, userName, root);
  }

  /** Asks the system once, when it is first needed. */
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

  /** For the user of these surroundings, who is another one only in tests. */
  public static OwnPath of(Surroundings surroundings) {
    OwnPath ofProcess = ofProcess();
    return ofProcess.users.areOf(surroundings.uid())
        ? ofProcess
        : new OwnPath((int) surroundings.uid(), surroundings.userName(), 0);
  }

  /**
   * The path without symbolic links, as far as it exists. Checks only what decides where it leads:
   * the links and their places. Whatever else is wrong with it shows when it is used.
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

  /** Checks a directory, which need not exist and may be sticky; makes nothing. */
  public Path check(Path directory) throws IOException {
    return walk(directory, Purpose.CHECK).path();
  }

  /** A directory in which only root and the user can make entries; made if it is missing. */
  public Path directory(Path directory) throws IOException {
    End end = walk(directory, Purpose.MAKE);
    requireUnshared(end);
    return end.path();
  }

  /** The same, but it need not exist, and is not made. */
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

  /** The same, but it may be sticky: then the caller checks each entry that it uses. */
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
   * A {@link #directory} of which the content also belongs to root or the user, two levels deep. So
   * a user who could write in it until now left nothing by which a name of ours leads elsewhere.
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

  /** A file or a device that nobody else can write, and that need not exist. */
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
   * A file that is written, and replaced by its name: in a {@link #directory}, which is made if it
   * is missing. If the file exists, it is a regular {@link #file}.
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
   * Whether an entry of a directory that was checked is a directory of the user's or of root's, in
   * which nobody else can write.
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
