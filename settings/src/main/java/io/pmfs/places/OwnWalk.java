package io.pmfs.places;

import io.pmfs.places.TrustedUsers.Found;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/** One walk along a path for {@link OwnPath}, component by component. Used once. */
final class OwnWalk {
  private static final Path TOP = Path.of("/");

  /** The kernel's limit, path_resolution(7). */
  private static final int MAX_LINKS = 40;

  /** What a walk is for. */
  enum Purpose {
    /** Only follows links, and checks only them and their directories. */
    RESOLVE,
    /** Checks every component. */
    CHECK,
    /** Checks every component, and creates missing directories with mode 0700. */
    MAKE
  }

  /**
   * The end of a walk.
   *
   * @param path the path without links; missing components are appended
   * @param found the last component; null if it is missing
   * @param isShared whether others can create entries in the last existing directory
   */
  record End(Path path, @Nullable Found found, boolean isShared) {}

  private final TrustedUsers users;
  private final Purpose purpose;
  private final Deque<Path> left = new ArrayDeque<>();
  private int linksLeft = MAX_LINKS;

  // INVARIANT: `at` leads to a directory without links, and unless there is a `problem`, no other
  // user can change where it leads.
  private Path at = TOP;
  private boolean isShared;
  private @Nullable NotOwnException problem;

  OwnWalk(TrustedUsers users, Path path, Purpose purpose) {
    this.users = users;
    this.purpose = purpose;
    push(path.toAbsolutePath().normalize());
  }

  private void push(Path path) {
    for (int i = path.getNameCount() - 1; i >= 0; i--) {
      left.push(path.getName(i));
    }
  }

  /** The position of the walk, with the rest of the path. */
  Path rest() {
    Path rest = at;
    for (Path name : left) {
      rest = rest.resolve(name);
    }
    return rest.normalize();
  }

  End go() throws IOException {
    enter(TOP);
    while (!left.isEmpty()) {
      Path next = at.resolve(left.element());
      Found found = Found.at(next);
      if (found == null && purpose == Purpose.MAKE) {
        found = make(next);
      }
      if (found == null) {
        return new End(rest(), null, isShared);
      }
      checkOwner(next, found);
      if (found.isLink()) {
        follow(next);
      } else if (found.isDirectory()) {
        left.pop();
        enter(next.normalize()); // a link may contain "..", and `at` has no links
      } else if (left.size() == 1) {
        return new End(next, found, isShared);
      } else {
        throw new NotDirectoryException(next.toString());
      }
    }
    return new End(at, Found.at(at), isShared);
  }

  private static Found make(Path directory) throws IOException {
    try {
      Files.createDirectory(
          directory,
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (FileAlreadyExistsException e) {
      // Another process was faster; the owner of its directory is checked as usual.
    }
    Found made = Found.at(directory);
    if (made == null) {
      throw new NoSuchFileException(directory.toString());
    }
    return made;
  }

  private void checkOwner(Path path, Found found) throws NotOwnException {
    try {
      users.requireOwner(path, found, isShared);
    } catch (NotOwnException e) {
      note(e);
    }
  }

  private void enter(Path directory) throws IOException {
    Found found = Found.at(directory);
    if (found == null) {
      throw new NoSuchFileException(directory.toString());
    }
    at = directory;
    isShared = users.strangerWhoWrites(directory, found) != null;
    if (isShared && !found.isSticky()) {
      try {
        users.requireClosed(directory, found);
      } catch (NotOwnException e) {
        note(e);
      }
    }
  }

  private void follow(Path link) throws IOException {
    if (problem != null) {
      throw problem;
    }
    if (linksLeft == 0) {
      throw new FileSystemLoopException(link.toString());
    }
    linksLeft--;
    Path target = Files.readSymbolicLink(link);
    left.pop();
    push(target);
    if (target.isAbsolute()) {
      enter(TOP);
    }
  }

  /**
   * Keeps a problem without throwing it if the walk only follows links: it matters only if a link
   * follows.
   */
  private void note(NotOwnException e) throws NotOwnException {
    if (purpose != Purpose.RESOLVE) {
      throw e;
    }
    problem = problem == null ? e : problem;
  }
}
