package io.pmfs.fs;

import com.google.common.util.concurrent.Striped;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Listing;
import io.pmfs.metadata.Namespace;
import io.pmfs.metadata.NamespaceLostException;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceAccess;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.Pace;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.InodeBytes;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.Lock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Imports the source's names and attributes into the namespace, each when it is first requested in
 * a session. A directory that was never imported, or has changed since, is listed. A file imported
 * in an earlier session is compared with the source once; if the source {@link
 * BackingStore#listsAtOnce lists at once}, all files of its directory are compared together. Then
 * the source is not asked again in this session.
 *
 * <p>A store may list entries that are not {@link SourceEntry#isVerified verified}. Each such file
 * is compared with the source at its first lookup, like one of an earlier session, and the next
 * session lists the directory again.
 */
public final class Importer {
  private static final Logger log = LoggerFactory.getLogger(Importer.class);

  /**
   * A change within this time of the previous one may leave the modification time unchanged on file
   * systems with coarse clocks.
   */
  private static final Duration CLOCK_GRAIN = Duration.ofSeconds(2);

  /**
   * One lock per inode. The holder may wait for a peer, and the peer may ask this node for another
   * inode, whose lock must be free.
   */
  private static final int LOCKS = 1 << 30;

  private static final int IMPORT_COUNTS = 1024;

  /** A READDIRPLUS of one page holds fewer: more would be read again for the next one. */
  private static final int LISTED_AT_ONCE = 32;

  /** The attempt at which the listing of a directory that keeps changing is accepted. */
  private static final int LISTING_ATTEMPTS = 3;

  // What this session knows of a directory or file.
  private static final byte UNKNOWN = 0;
  private static final byte LISTED = 2;

  private final Namespace namespace;
  private final BackingStore source;
  private final Forgetting forgetting;
  private final DirectoryReader reader;
  private final InstantSource clock;
  private volatile Known known = new Known(0, new InodeBytes());

  private final Doubts doubts = new Doubts();
  private final Contradictions contradictions;

  private volatile BooleanSupplier readsLists = () -> false;

  /**
   * Counts of imports, by hash of the directory: they reveal to a listing that an import ran
   * meanwhile.
   */
  private final AtomicIntegerArray imports = new AtomicIntegerArray(IMPORT_COUNTS);

  /** Directories that a thread waits for while they are imported at a task's pace. */
  private final Set<Long> awaited = ConcurrentHashMap.newKeySet();

  // Held while a directory is imported or an inode is compared, so that this happens once. The
  // inode number selects the lock.
  // LOCK ORDER: a directory's lock before those of its entries, never two directories' locks.
  private final Striped<Lock> directoryLocks = Striped.lazyWeakLock(LOCKS);
  private final Striped<Lock> inodeLocks = Striped.lazyWeakLock(LOCKS);

  /** Marks, valid until the namespace loses the inodes that they describe. */
  private record Known(int losses, InodeBytes marks) {}

  Importer(
      Namespace namespace,
      BackingStore source,
      Copies copies,
      ExecutorService threads,
      InstantSource clock) {
    this.namespace = namespace;
    this.source = source;
    this.contradictions = new Contradictions(namespace);
    this.forgetting = new Forgetting(namespace, copies);
    this.reader =
        new DirectoryReader(source, threads, Pace.UNLIMITED, () -> false, this::readsLists);
    this.clock = clock;
    forgetting.goOn(threads);
  }

  /** While the condition is true, imports access-control lists with attributes. */
  void readLists(BooleanSupplier condition) {
    readsLists = condition;
  }

  public boolean readsLists() {
    return readsLists.getAsBoolean();
  }

  private InodeBytes known() {
    Known last = known;
    int losses = namespace.losses();
    if (last.losses != losses) {
      last = new Known(losses, new InodeBytes());
      known = last;
    }
    return last.marks;
  }

  /** Checks that the root is a directory, and creates its inode if missing. */
  void importRoot() throws FsException {
    SourceStatus status = source.status(FileName.of(""));
    if (status.attributes().type() != FileType.DIRECTORY) {
      throw new FsException(Errno.ENOTDIR, "the source is not a directory");
    }
    Inode before = namespace.inode(Namespace.ROOT);
    Inode now =
        namespace.updateInode(
            Namespace.ROOT,
            known ->
                new Inode(
                    Namespace.ROOT,
                    status.identity(),
                    Namespace.ROOT,
                    FileName.of(""),
                    namespace.session(),
                    known == null ? null : listing(known, status),
                    status.attributes()));
    if (before != null && now != null) {
      forgetting.dropOutdated(before, now);
    }
  }

  /** Steps that are repeated if the namespace loses data that they depend on. */
  interface Steps<T> {
    T take() throws FsException;
  }

  /**
   * Runs steps on one consistent state of the namespace: repeats all of them if it lost data
   * meanwhile.
   */
  <T> T whole(Steps<T> steps) throws FsException {
    while (true) {
      int losses = namespace.losses();
      try {
        return steps.take();
      } catch (FsException e) {
        if (e.errno() != Errno.ESTALE || namespace.losses() == losses) {
          throw e;
        }
      } catch (NamespaceLostException e) {
        if (namespace.losses() == losses) {
          throw new FsException(Errno.ESTALE, String.valueOf(e.getMessage()), e);
        }
      }
    }
  }

  /** The inode, compared with the source in this session. */
  Inode checked(long number) throws FsException {
    Inode known = namespace.recentInode(number);
    return known != null && known.checkedIn() == namespace.session()
        ? known
        : whole(() -> checkedNow(number));
  }

  /** Like {@link #checked}; null if only another node has described the file so far. */
  @Nullable Inode verified(long number) throws FsException {
    Inode recent = namespace.recentInode(number);
    Inode known =
        recent == null
            ? whole(() -> Optional.ofNullable(namespace.inode(number))).orElse(null)
            : recent;
    if (known != null && known.checkedIn() == namespace.session()) {
      return known;
    }
    return known != null && known.checkedIn() == Inode.NEVER ? null : checked(number);
  }

  private Inode checkedNow(long number) throws FsException {
    Inode inode = namespace.inode(number);
    if (inode == null && number == Namespace.ROOT) {
      // The session continues, but its records were lost.
      importRoot();
      inode = namespace.inode(number);
    }
    if (inode == null) {
      inode = foundAgain(number);
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
      // The inode's name now belongs to another file. If the inode is a hard link with other names,
      // listing the directory again gives it the next one.
      Inode before = namespace.inode(number);
      if (before != null) {
        try {
          ensureListed(before.parent());
        } catch (FsException e) {
          log.debug("looking for another name of inode {}: {}", number, e.getMessage());
        }
        // Also after a listing that broke off.
        forgetting.forgetNameless();
      }
      Inode after = namespace.inode(number);
      if (before == null
          || after == null
          || (after.parent() == before.parent() && after.name().equals(before.name()))) {
        return Objects.requireNonNull(check(number, true));
      }
    }
  }

  /**
   * Finds an inode that the namespace assigned and then lost, in the directory where it was last
   * seen. Lists that directory and those above it again if they were lost too.
   */
  private Inode foundAgain(long number) throws FsException {
    if (number == Namespace.ROOT) {
      importRoot();
    } else {
      long directory = namespace.losses() == 0 ? 0 : namespace.seenIn(number);
      if (directory == 0) {
        throw new FsException(Errno.ESTALE, "inode " + number);
      }
      ensureListed(directory);
    }
    Inode inode = namespace.inode(number);
    if (inode == null) {
      inode = namespace.adopt(number);
    }
    if (inode == null) {
      throw new FsException(Errno.ESTALE, "inode " + number);
    }
    return inode;
  }

  /** The path below the root. */
  FileName path(long number) throws FsException {
    return whole(
        () -> {
          checkedNow(number);
          FileName path = namespace.path(number);
          if (path == null) {
            throw new FsException(Errno.ESTALE, "inode " + number + " has no path");
          }
          return path;
        });
  }

  /**
   * The inode, compared with the source itself now: it may have changed since the mount, or differ
   * from what other nodes reported.
   */
  Inode lookAgain(long number) throws FsException {
    if (!source.isSecondHand()) {
      markUnchecked(number);
      return checked(number);
    }
    return whole(() -> Objects.requireNonNull(checkAgain(number, true)));
  }

  private void markUnchecked(long number) {
    mark(number, namespace.session() - 1);
  }

  private void mark(long number, int session) {
    Lock lock = inodeLocks.get(number);
    lock.lock();
    try {
      namespace.updateInode(number, known -> known == null ? null : known.withSession(session));
    } finally {
      lock.unlock();
    }
  }

  /**
   * Compares an inode with the source itself, even if it was compared before. Under the lock, so
   * that two concurrent calls find one difference, not two.
   */
  private @Nullable Inode checkAgain(long number, boolean anyFile) throws FsException {
    Lock lock = inodeLocks.get(number);
    lock.lock();
    try {
      Inode before = namespace.inode(number);
      markUnchecked(number);
      try {
        return check(number, anyFile, true);
      } catch (FsException e) {
        if (source.isSecondHand() && before != null) {
          // Keep it as it was shown: otherwise another version reported next would go unnoticed.
          mark(number, before.checkedIn());
        }
        throw e;
      }
    } finally {
      lock.unlock();
    }
  }

  /** Whether files are as other nodes described them; used only if the source is second-hand. */
  Doubts doubts() {
    return doubts;
  }

  /** Which files turned out to be otherwise; used only if the source is second-hand. */
  Contradictions contradictions() {
    return contradictions;
  }

  private @Nullable Inode check(long number, boolean anyFile) throws FsException {
    return check(number, anyFile, false);
  }

  /**
   * Compares an inode with the file at its path.
   *
   * @param anyFile true: a missing file is an error, and a different file is accepted as the
   *     inode's; false: both return null
   * @param isAgain asks the source itself; the file may have been shown as another version
   */
  private @Nullable Inode check(long number, boolean anyFile, boolean isAgain) throws FsException {
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
      SourceAccess access;
      try {
        access = isAgain ? lookMyself(path) : look(path);
      } catch (FsException e) {
        if (!anyFile && (e.errno() == Errno.ENOENT || e.errno() == Errno.ENOTDIR)) {
          return null;
        }
        throw e;
      }
      SourceStatus status = access.status();
      if (!anyFile && !before.continuesAs(status.identity(), status.attributes())) {
        return null;
      }
      if (before.isRenumbered(status.identity(), status.attributes())) {
        namespace.noteRenumbered(1);
      }
      if (status.attributes().type() != before.attributes().type()) {
        throw new FsException(
            Errno.ESTALE, path + ": its file type differs from its directory entry");
      }
      Inode changed = checked(before, status);
      if (isAgain
          && source.isSecondHand()
          && changed.attributes().type() == FileType.REGULAR
          && !changed.attributes().version().equals(before.attributes().version())) {
        // Before the update: a thread that opens the new version must not fail after it.
        contradictions.add(number);
        doubts.contradict(number);
      }
      // Before the update, so that no reader takes the old copy for the new version; again after
      // it, because a copy of the old version may have been completed in between.
      forgetting.dropOutdated(before, changed);
      Inode now =
          namespace.updateInode(number, known -> known == null ? null : checked(known, status));
      if (now == null) {
        throw new FsException(Errno.ESTALE, "inode " + number);
      }
      forgetting.dropOutdated(before, now);
      if (access.keepsLists()) {
        namespace.putAccessList(number, status.attributes().changeTime(), access.list());
      }
      return now;
    } finally {
      lock.unlock();
    }
  }

  /** The status of a file, with its access-control list if lists are imported. */
  private SourceAccess look(FileName path) throws FsException {
    return readsLists() ? source.access(path) : SourceAccess.withoutLists(source.status(path));
  }

  /** Like {@link #look}, but from the source itself. */
  private SourceAccess lookMyself(FileName path) throws FsException {
    return readsLists() ? source.access(path) : SourceAccess.withoutLists(source.ownStatus(path));
  }

  private Inode checked(Inode before, SourceStatus status) {
    return new Inode(
        before.number(),
        status.identity(),
        before.parent(),
        before.name(),
        namespace.session(),
        listing(before, status),
        status.attributes());
  }

  /** The listing; null if another directory now has the name. */
  private static @Nullable Listing listing(Inode before, SourceStatus now) {
    return before.isFile(now.identity(), now.attributes()) ? before.listing() : null;
  }

  /**
   * Whether the entries of a directory still have to be compared with the source, and comparing
   * them together is faster.
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
   * Makes sure that the namespace has all entries of a directory, each compared with the source in
   * this session.
   */
  void ensureCompared(long directory) throws FsException {
    whole(
        () -> {
          compare(directory);
          return directory;
        });
  }

  private void compare(long directory) throws FsException {
    InodeBytes known = known();
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

  /** Makes sure that the namespace has all entries of a directory. */
  public void ensureListed(long directory) throws FsException {
    ensureListed(directory, reader, () -> false);
  }

  /**
   * Like {@link #ensureListed(long)}, with a reader that may be paced. The pace is dropped as soon
   * as an unpaced caller waits for the same directory.
   */
  public void ensureListed(long directory, DirectoryReader by, BooleanSupplier hurries)
      throws FsException {
    if (known().get(directory) == LISTED) {
      return;
    }
    whole(
        () -> {
          listOnce(directory, by, hurries);
          return directory;
        });
  }

  private void listOnce(long directory, DirectoryReader by, BooleanSupplier hurries)
      throws FsException {
    InodeBytes known = known();
    if (known.get(directory) == LISTED) {
      return;
    }
    // Outside the lock: this may list a parent.
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

  /** The entry of a name in a directory; null if there is none. */
  @Nullable
  public DirectoryEntry find(long directory, FileName name) throws FsException {
    while (true) {
      int losses = namespace.losses();
      ensureListed(directory);
      DirectoryEntry entry = namespace.find(directory, name);
      if (entry != null && entry.type() == FileType.UNKNOWN) {
        identify(directory, name);
        entry = namespace.find(directory, name);
      }
      boolean isWhole = entry != null && namespace.inode(entry.inode()) != null;
      if (isWhole || losses == namespace.losses()) {
        return entry;
      }
    }
  }

  /**
   * Passes the entries after a position, in order, to the visitor until it returns false.
   *
   * <p>A directory listed in an earlier session can be shown at once, and may be listed again while
   * its entries are passed: entries that were not found again yet are then missing.
   *
   * @param visitor called without a lock, so it may ask the source and change inodes
   */
  void list(long directory, long afterPosition, Namespace.EntryVisitor visitor) throws FsException {
    long last = afterPosition;
    while (true) {
      int losses = namespace.losses();
      int importsBefore = imports.get(importCount(directory));
      ensureListed(directory);
      List<DirectoryEntry> entries = entries(directory, last);
      for (DirectoryEntry entry : entries) {
        if (!visitor.visit(entry)) {
          return;
        }
        last = entry.position();
      }
      boolean isWhole =
          losses == namespace.losses() && importsBefore == imports.get(importCount(directory));
      if (isWhole && entries.size() < LISTED_AT_ONCE) {
        return;
      }
    }
  }

  /** The next entries after a position. */
  private List<DirectoryEntry> entries(long directory, long afterPosition) {
    List<DirectoryEntry> entries = new ArrayList<>(LISTED_AT_ONCE);
    try {
      namespace.list(
          directory,
          afterPosition,
          entry -> {
            entries.add(entry);
            return entries.size() < LISTED_AT_ONCE;
          });
    } catch (NamespaceLostException e) {
      log.debug("{}", e.getMessage());
    }
    return entries;
  }

  /**
   * Requests the attributes of a file that the source could not deliver when the directory was
   * listed.
   */
  private void identify(long number, FileName name) throws FsException {
    Inode directory = directory(number);
    FileName path = path(number);
    SourceEntry entry = reader.entry(path, name, () -> false);
    Lock lock = directoryLocks.get(number);
    lock.lock();
    try {
      namespace.identify(number, proven(directory, path, List.of(entry)).get(0));
    } finally {
      lock.unlock();
    }
  }

  private static int importCount(long directory) {
    return Math.floorMod(Long.hashCode(directory), IMPORT_COUNTS);
  }

  private void list(Inode directory, DirectoryReader by, BooleanSupplier hurries)
      throws FsException {
    FileName path = namespace.path(directory.number());
    if (path == null) {
      throw new FsException(Errno.ESTALE, "inode " + directory.number() + " has no path");
    }
    // From here on the namespace may lack entries: the source may fail before the end.
    known().set(directory.number(), UNKNOWN);
    imports.incrementAndGet(importCount(directory.number()));
    Attributes before = directory.attributes();
    for (int attempt = 1; ; attempt++) {
      Namespace.DirectoryImport listing = namespace.beginImport(directory.number());
      boolean isLast = attempt == LISTING_ATTEMPTS;
      boolean[] isVerified = {true};
      boolean[] isReported = {false};
      by.list(
          path,
          hurries,
          isLast,
          entries -> {
            isVerified[0] &= entries.stream().allMatch(SourceEntry::isVerified);
            isReported[0] |= entries.stream().anyMatch(SourceEntry::isReported);
            add(listing, proven(directory, path, entries));
          });
      Attributes after = by.status(path, hurries).attributes();
      boolean settled = after.modificationTime().equals(before.modificationTime());
      if (settled || isReported[0] || isLast) {
        boolean isReliable = settled && isVerified[0] && isPast(after.modificationTime());
        Instant reliable = isReliable ? after.modificationTime() : Instant.EPOCH;
        listing.finish(after, new Listing(namespace.session(), reliable));
        forgetting.forgetNameless();
        return;
      }
      before = after;
    }
  }

  /**
   * Returns the entries, those that only look like another name of a known file marked as
   * unverified. The inode number of an entry may have been reused: the known file is then compared
   * with the source again.
   */
  private List<SourceEntry> proven(Inode directory, FileName path, List<SourceEntry> entries)
      throws FsException {
    List<SourceEntry> proven = new ArrayList<>(entries.size());
    for (SourceEntry entry : entries) {
      Inode byNumber = entry.mayHaveOtherNames() ? namespace.linked(entry.identity()) : null;
      DirectoryEntry former =
          directory.listing() == null ? null : namespace.find(directory.number(), entry.name());
      Inode byName = former == null ? null : namespace.inode(former.inode());
      boolean isProven = byNumber == null || proveName(byNumber, directory, path, entry);
      if (byName != null && byName.attributes().linkCount() > 1) {
        isProven &= proveName(byName, directory, path, entry);
      }
      proven.add(isProven ? entry : entry.unverified());
    }
    return proven;
  }

  /** Whether an entry with the number of a known file really is another name of that file. */
  private boolean proveName(Inode file, Inode directory, FileName path, SourceEntry entry)
      throws FsException {
    boolean isUntouched = file.attributes().areUntouched(entry.attributes());
    if (file.goesBy(directory.number(), entry.name())
        || file.identity().inode() != entry.identity().inode()
        || (isUntouched && entry.attributes().showChanges())) {
      return true;
    }
    try {
      Inode now = checkAgain(file.number(), false);
      SourceStatus entryNow = source.ownStatus(path.resolve(entry.name()));
      return now == null ? !isUntouched : now.identity().inode() == entryNow.identity().inode();
    } catch (FsException e) {
      log.debug(
          "cannot determine whether an entry of {} is a name of inode {}: {}",
          path,
          file.number(),
          e.getMessage());
      return !isUntouched;
    }
  }

  private boolean isPast(Instant time) {
    return time.plus(CLOCK_GRAIN).isBefore(clock.instant());
  }

  private void add(Namespace.DirectoryImport listing, List<SourceEntry> entries) {
    for (Inode before : listing.add(entries)) {
      Inode now = namespace.inode(before.number());
      if (now != null) {
        forgetting.dropOutdated(before, now);
      }
    }
  }
}
