package io.pmfs.fs;

import com.google.common.util.concurrent.Striped;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Listing;
import io.pmfs.metadata.Namespace;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.stage.Copies;
import io.pmfs.stage.InodeBytes;
import io.pmfs.stage.Pace;
import io.pmfs.tier.BackingStore;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.SourceStatus;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.locks.Lock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Brings the source's names and attributes into the namespace, each when it is first asked for in a
 * session: a directory that was never imported, or changed since, is listed; a file that was
 * imported in an earlier session is looked at once, and all others of its directory with it where
 * the source {@link BackingStore#listsAtOnce}. From then on the source is not asked again until the
 * next session.
 */
final class Importer {
  private static final Logger log = LoggerFactory.getLogger(Importer.class);

  /**
   * A change within this time of the last one may leave the modification time as it was, on file
   * systems with coarse clocks.
   */
  private static final Duration CLOCK_GRAIN = Duration.ofSeconds(2);

  /**
   * A lock for each directory: who holds one may wait for a peer, which may ask this node for
   * another one.
   */
  private static final int DIRECTORY_LOCKS = 1 << 30;

  /** A directory that changes at each look is taken as it was at the last of these. */
  private static final int LISTING_ATTEMPTS = 3;

  // What is known in this session, by inode.
  private static final byte CHECKED = 1;
  private static final byte LISTED = 2;

  private final Namespace namespace;
  private final BackingStore source;
  private final Copies copies;
  private final DirectoryReader reader;
  private final InstantSource clock;
  private final InodeBytes known = new InodeBytes();

  /** Directories that somebody waits for while they are imported at a task's pace. */
  private final Set<Long> awaited = ConcurrentHashMap.newKeySet();

  // Held while a directory is imported or an inode is looked at, so that it happens once. The
  // inode's number selects the lock.
  // LOCK ORDER: a directory's before those of what is in it, never two directories'.
  private final Striped<Lock> directoryLocks = Striped.lazyWeakLock(DIRECTORY_LOCKS);
  private final Striped<Lock> inodeLocks = Striped.lock(256);

  Importer(
      Namespace namespace,
      BackingStore source,
      Copies copies,
      ExecutorService threads,
      InstantSource clock) {
    this.namespace = namespace;
    this.source = source;
    this.copies = copies;
    this.reader = new DirectoryReader(source, threads, Pace.UNLIMITED, () -> false);
    this.clock = clock;
  }

  /**
   * Looks at the root, which must be a directory, and makes its inode if this is the first time.
   */
  void importRoot() throws FsException {
    SourceStatus status = source.status(FileName.of(""));
    if (status.attributes().type() != FileType.DIRECTORY) {
      throw new FsException(Errno.ENOTDIR, "the source");
    }
    Inode before = namespace.inode(Namespace.ROOT);
    Inode now =
        new Inode(
            Namespace.ROOT,
            status.identity(),
            Namespace.ROOT,
            FileName.of(""),
            namespace.session(),
            before == null ? null : listing(before, status),
            status.attributes());
    if (before != null) {
      forgetOutdated(before, now);
    }
    namespace.putInode(now);
    known.set(Namespace.ROOT, CHECKED);
  }

  /** The inode, compared with the source in this session. */
  Inode checked(long number) throws FsException {
    Inode inode = namespace.inode(number);
    if (inode == null && number == Namespace.ROOT) {
      // Of a session that goes on without its records.
      importRoot();
      inode = namespace.inode(number);
    }
    if (inode == null) {
      throw new FsException(Errno.ESTALE, "inode " + number);
    }
    if (inode.checkedIn() == namespace.session()) {
      return inode;
    }
    if (number != Namespace.ROOT && isComparedAtOnce(inode.parent())) {
      ensureCompared(inode.parent());
    }
    while (true) {
      Inode now = check(number, false);
      if (now != null) {
        return now;
      }
      // The name that the inode goes by is not its any more. A hard link may have others: the
      // name's directory, listed again, has the inode go by the next of them.
      Inode before = namespace.inode(number);
      if (before != null) {
        try {
          ensureListed(before.parent());
        } catch (FsException e) {
          log.debug("looking for another name of inode {}: {}", number, e.getMessage());
        }
      }
      Inode after = namespace.inode(number);
      if (before == null
          || after == null
          || (after.parent() == before.parent() && after.name().equals(before.name()))) {
        return Objects.requireNonNull(check(number, true));
      }
    }
  }

  /** The inode, compared with the source now: it may have changed while it was mounted. */
  Inode lookAgain(long number) throws FsException {
    Lock lock = inodeLocks.get(number);
    lock.lock();
    try {
      Inode before = namespace.inode(number);
      if (before != null) {
        namespace.putInode(
            new Inode(
                number,
                before.identity(),
                before.parent(),
                before.name(),
                namespace.session() - 1,
                before.listing(),
                before.attributes()));
      }
    } finally {
      lock.unlock();
    }
    return checked(number);
  }

  /**
   * Compares an inode with the file of its name.
   *
   * @param anyFile whether a missing file is an error and another one is taken for the inode's; if
   *     not, the answer is null then
   */
  private @Nullable Inode check(long number, boolean anyFile) throws FsException {
    Lock lock = inodeLocks.get(number);
    lock.lock();
    try {
      Inode before = namespace.inode(number);
      if (before == null) {
        throw new FsException(Errno.ESTALE, "inode " + number);
      }
      if (before.checkedIn() == namespace.session()) {
        return before;
      }
      FileName path = namespace.path(number);
      if (path == null) {
        throw new FsException(Errno.ESTALE, "inode " + number + " has no path");
      }
      SourceStatus status;
      try {
        status = source.status(path);
      } catch (FsException e) {
        if (!anyFile && (e.errno() == Errno.ENOENT || e.errno() == Errno.ENOTDIR)) {
          return null;
        }
        throw e;
      }
      if (!anyFile && !isSameFile(before, status)) {
        return null;
      }
      if (status.attributes().type() != before.attributes().type()) {
        throw new FsException(Errno.ESTALE, path + " is of another type than its directory says");
      }
      Inode now =
          new Inode(
              number,
              status.identity(),
              before.parent(),
              before.name(),
              namespace.session(),
              listing(before, status),
              status.attributes());
      // Before, so that nobody reads the old copy as the new version; after, because a copy of the
      // old one may have been finished in between.
      forgetOutdated(before, now);
      namespace.putInode(now);
      forgetOutdated(before, now);
      return now;
    } finally {
      lock.unlock();
    }
  }

  /** Devices are renumbered between mounts. */
  private static boolean isSameFile(Inode before, SourceStatus now) {
    return before.identity().inode() == now.identity().inode()
        && before.attributes().type() == now.attributes().type();
  }

  /** What was listed in another directory of the same name says nothing of this one. */
  private static @Nullable Listing listing(Inode before, SourceStatus now) {
    return isSameFile(before, now) ? before.listing() : null;
  }

  /**
   * Whether what is in a directory was not compared with the source yet, and is better together.
   */
  private boolean isComparedAtOnce(long directory) {
    Inode inode = namespace.inode(directory);
    if (inode == null || isListedNow(inode)) {
      return false;
    }
    FileName path = namespace.path(directory);
    return path != null && source.listsAtOnce(path);
  }

  private boolean isListedNow(Inode directory) {
    Listing listing = directory.listing();
    return listing != null && listing.session() == namespace.session();
  }

  /**
   * Makes sure that the namespace has what is in a directory, and each as it is in this session.
   */
  void ensureCompared(long directory) throws FsException {
    checked(directory);
    Lock lock = directoryLocks.get(directory);
    lock.lock();
    try {
      Inode inode = directory(directory);
      if (!isListedNow(inode)) {
        list(inode, reader, () -> false);
      }
      known.set(directory, LISTED);
    } finally {
      lock.unlock();
    }
  }

  private Inode directory(long number) throws FsException {
    Inode inode = namespace.inode(number);
    if (inode == null) {
      throw new FsException(Errno.ESTALE, "inode " + number);
    }
    if (inode.attributes().type() != FileType.DIRECTORY) {
      throw new FsException(Errno.ENOTDIR, String.valueOf(namespace.path(number)));
    }
    return inode;
  }

  /** Makes sure that the namespace has what is in a directory. */
  void ensureListed(long directory) throws FsException {
    ensureListed(directory, reader, () -> false);
  }

  /**
   * The same, asking the source through a reader that may have a pace. Whoever waits for the
   * directory meanwhile without having one has the pace forgotten.
   */
  void ensureListed(long directory, DirectoryReader by, BooleanSupplier hurries)
      throws FsException {
    if (known.get(directory) == LISTED) {
      return;
    }
    // Before the lock: it may have to list a parent.
    checked(directory);
    Lock lock = directoryLocks.get(directory);
    if (!lock.tryLock()) {
      if (!by.isPaced()) {
        awaited.add(directory);
      }
      lock.lock();
    }
    try {
      if (known.get(directory) == LISTED) {
        return;
      }
      Inode inode = directory(directory);
      Listing listing = inode.listing();
      Instant modified = inode.attributes().modificationTime();
      if (listing == null
          || (!isListedNow(inode) && !listing.modificationTime().equals(modified))) {
        list(inode, by, () -> awaited.contains(directory) || hurries.getAsBoolean());
      }
      known.set(directory, LISTED);
    } finally {
      awaited.remove(directory);
      lock.unlock();
    }
  }

  private void list(Inode directory, DirectoryReader by, BooleanSupplier hurries)
      throws FsException {
    FileName path = namespace.path(directory.number());
    if (path == null) {
      throw new FsException(Errno.ESTALE, "inode " + directory.number() + " has no path");
    }
    Attributes before = directory.attributes();
    for (int attempt = 1; ; attempt++) {
      Namespace.DirectoryImport listing = namespace.beginImport(directory.number());
      by.read(path, hurries, entries -> add(listing, entries));
      Attributes after = by.status(path, hurries).attributes();
      boolean settled = after.modificationTime().equals(before.modificationTime());
      if (settled || attempt == LISTING_ATTEMPTS) {
        Instant reliable =
            settled && isPast(after.modificationTime()) ? after.modificationTime() : Instant.EPOCH;
        List<DirectoryEntry> gone =
            listing.finish(after, new Listing(namespace.session(), reliable));
        gone.forEach(entry -> remove(directory.number(), entry));
        return;
      }
      before = after;
    }
  }

  private boolean isPast(Instant time) {
    return time.plus(CLOCK_GRAIN).isBefore(clock.instant());
  }

  private void add(Namespace.DirectoryImport listing, List<SourceEntry> entries) {
    for (Inode before : listing.add(entries)) {
      Inode now = namespace.inode(before.number());
      if (now != null) {
        forgetOutdated(before, now);
      }
    }
  }

  /** Drops what was kept of a file that is not what it was. */
  private void forgetOutdated(Inode before, Inode now) {
    boolean regular = now.attributes().type() == FileType.REGULAR;
    if (regular
        && !(before.attributes().version().equals(now.attributes().version())
            && before.identity().inode() == now.identity().inode())) {
      copies.drop(now.number());
    }
    if (!before.attributes().changeTime().equals(now.attributes().changeTime())) {
      namespace.removeExtendedAttributes(now.number());
      if (now.attributes().type() == FileType.SYMBOLIC_LINK) {
        // File systems give the inode number of a link that was replaced to the new one.
        namespace.putSymbolicLinkTarget(now.number(), PmfsFileSystem.NO_TARGET);
      }
    }
  }

  /**
   * Forgets an inode whose last name is gone, with its copies, and if it is a directory with all
   * that is below it.
   */
  private void remove(long directory, DirectoryEntry gone) {
    Deque<GoneName> rest = new ArrayDeque<>(List.of(new GoneName(directory, gone)));
    while (!rest.isEmpty()) {
      GoneName name = rest.pop();
      long number = name.entry.inode();
      Inode inode = namespace.inode(number);
      if (inode == null
          || inode.parent() != name.directory
          || !inode.name().equals(name.entry.name())) {
        // It lives on by another name.
        continue;
      }
      if (inode.attributes().type() == FileType.DIRECTORY) {
        Listing empty = new Listing(namespace.session(), Instant.EPOCH);
        for (DirectoryEntry child :
            namespace.beginImport(number).finish(inode.attributes(), empty)) {
          rest.push(new GoneName(number, child));
        }
      } else {
        copies.drop(number);
      }
      namespace.removeInode(number);
    }
  }

  private record GoneName(long directory, DirectoryEntry entry) {}
}
