package io.pmfs.writable.tree;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import com.google.common.collect.MapMaker;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.TemporaryNames;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableSettings;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Encoder;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;

/**
 * The source's present state: directories by their inode numbers in the mount, their names and
 * their files' attributes, each at most a moment old. Thread-safe.
 */
@SuppressWarnings("try")
public final class SourceTree implements AutoCloseable {
  private static final byte[] ROOT_FACT = "root".getBytes(StandardCharsets.US_ASCII);

  private static final int KEPT_PROJECTS = 10_000;
  private static final Duration PROJECT_AGE = Duration.ofSeconds(10);
  private static final int KEPT_CHECKS = 30_000;
  private static final int KEPT_NODES = 30_000;
  private static final int KEPT_ROOTS = 64;
  static final int MAX_DEPTH = 4096;
  private static final int LONGEST_NAME = 255;

  /** A listing is valid for at least this many times its own cost. */
  private static final long PAUSE_FACTOR = 10;

  private final OutputCalls calls;
  private final State state;
  private final Path path;
  private final long freshMillis;
  private final long keptNames;

  /** LOCK ORDER: OutputFile.lock < moving < State.lock. */
  private final ReentrantReadWriteLock moving = new ReentrantReadWriteLock();

  /** Those that stay in memory. */
  private final Map<Long, Listing> listings = new LinkedHashMap<>(64, 0.75f, true);

  /** All; a request may use one that was evicted. GUARDED_BY(listings) */
  private final Map<Long, Listing> used = new MapMaker().weakValues().makeMap();

  private final Cache<Long, Long> checked =
      CacheBuilder.newBuilder().maximumSize(KEPT_CHECKS).build();
  private final Cache<Long, Long> projects =
      CacheBuilder.newBuilder().maximumSize(KEPT_PROJECTS).expireAfterWrite(PROJECT_AGE).build();

  /** Nodes by their names at the source, as last looked up or created. */
  private final Cache<At, Long> nodes = CacheBuilder.newBuilder().maximumSize(KEPT_NODES).build();

  /** Whether directories may be elsewhere at the source than the tables say. */
  private volatile boolean isUnsure;

  private volatile int longestName = LONGEST_NAME;
  private final Homes homes;
  private final FileSystems fileSystems;
  private final SourceLooks looks;
  private final Disturbed disturbed = new Disturbed();

  /** Held while the root is opened, which lasts until the source answers. */
  private final ReentrantLock opening = new ReentrantLock();

  private final ArrayDeque<Integer> abandoned = new ArrayDeque<>(); // GUARDED_BY(opening)
  private volatile int root = -1; // changed while holding opening
  private volatile @Nullable Stat rootStat;
  private volatile @Nullable StoreStatistics lastStatistics;

  public SourceTree(OutputCalls calls, State state, WritableSettings settings, SourceLooks looks) {
    this.calls = calls;
    this.looks = looks;
    this.state = state;
    this.homes = new Homes(state);
    this.fileSystems = new FileSystems(state, settings.freshMillis());
    this.path = settings.source();
    this.freshMillis = settings.freshMillis();
    this.keptNames = settings.keptNames();
  }

  // ---- the root

  /** The source's root, reopened if necessary; may wait long. */
  private int root() throws FsException {
    int known = root;
    if (known >= 0) {
      return known;
    }
    opening.lock();
    try {
      return root >= 0 ? root : openRoot();
    } finally {
      opening.unlock();
    }
  }

  private int openRoot() throws FsException { // GUARDED_BY(opening)
    int opened = calls.openRoot(path);
    try {
      Stat found = calls.status(opened, Inode.NO_NAME);
      checkRoot(found);
      rootStat = found;
      longestName = longestName(opened);
      root = opened;
      opened = -1;
      return root;
    } finally {
      if (opened >= 0) {
        calls.close(opened);
      }
    }
  }

  private int longestName(int opened) {
    try {
      long bytes = calls.statistics(opened).nameMaximum();
      return bytes > 0 && bytes < LONGEST_NAME ? (int) bytes : LONGEST_NAME;
    } catch (FsException e) {
      return LONGEST_NAME;
    }
  }

  /** Rejects a name that is too long for the source's file system. */
  public void checkLength(FileName name) throws FsException {
    if (name.size() > longestName) {
      throw new FsException(
          Errno.ENAMETOOLONG, "%s: the source allows %d bytes".formatted(name, longestName));
    }
  }

  /** Rejects an empty directory on which a file system should be mounted. */
  private void checkRoot(Stat found) throws FsException {
    byte[] now = new Encoder().number(found.inode()).time(found.birth()).toBytes();
    try (State.Held held = state.hold()) {
      byte[] before = state.get(Tables.FACTS, ROOT_FACT);
      if (before == null) {
        State.Update update = state.update();
        update.put(Tables.FACTS, ROOT_FACT, now);
        update.commit();
      } else if (!Arrays.equals(before, now)) {
        throw new FsException(
            Errno.ESTALE, path + " is not the directory that was mounted; is it unmounted?");
      }
    }
  }

  /** Forgets the root after an error of the source itself. */
  public void failed(FsException e) {
    boolean isGone =
        switch (e.errno()) {
          case ESTALE, ENOTCONN, ESHUTDOWN, ENODEV, EIO, EHOSTDOWN, EREMOTEIO -> true;
          default -> false;
        };
    if (!isGone) {
      return;
    }
    opening.lock();
    try {
      if (root >= 0) {
        // Other threads may be using it.
        abandoned.add(root);
        root = -1;
        if (abandoned.size() > KEPT_ROOTS) {
          calls.close(abandoned.remove());
        }
      }
    } finally {
      opening.unlock();
    }
  }

  public Stat rootStatus() throws FsException {
    try {
      return calls.status(root(), Inode.NO_NAME).withDevice(0);
    } catch (FsException e) {
      failed(e);
      throw e;
    }
  }

  /** The root's state, for a request; the last known one if the source does not answer. */
  public Stat rootNow() throws FsException {
    return looks.ask(
        "root",
        this::rootStatus,
        () -> {
          Stat last = rootStat;
          return last == null ? null : last.withDevice(0);
        });
  }

  /** The number of a file system; null if it is not known now. */
  private @Nullable Long fileSystem(long device) {
    Stat top = rootStat;
    return top != null && device == top.device() ? (Long) 0L : fileSystems.known(device);
  }

  /** The source's free room; the last known one if the source does not answer. */
  public StoreStatistics statistics() throws FsException {
    return looks.ask("statistics", this::statisticsNow, () -> lastStatistics);
  }

  /** Fetches {@link #statistics} without waiting. */
  public void beginStatistics() throws FsException {
    looks.begin("statistics", this::statisticsNow);
  }

  private StoreStatistics statisticsNow() throws FsException {
    try {
      StoreStatistics now = calls.statistics(root());
      lastStatistics = now;
      return now;
    } catch (FsException e) {
      failed(e);
      throw e;
    }
  }

  /** Says that the source does not answer, and since when; null if it does. May take a moment. */
  @Nullable
  public String failure() {
    try {
      rootNow();
    } catch (FsException e) {
      return path + ": " + e.getMessage();
    }
    SourceLooks.Silence silence = looks.silence();
    if (silence == null) {
      return null;
    }
    Instant since = state.now().minusMillis(silence.millis()).truncatedTo(ChronoUnit.SECONDS);
    FsException failure = silence.failure();
    return failure == null
        ? path + " has not answered since " + since
        : path + " fails since " + since + ": " + failure.getMessage();
  }

  public OutputCalls calls() {
    return calls;
  }

  /** How requests of programs read the source; not for the committer, which moves names. */
  public SourceLooks looks() {
    return looks;
  }

  /** Directories whose times at the source must not be shown. */
  public Disturbed disturbed() {
    return disturbed;
  }

  /** Closes a file of the source without waiting for it. */
  public void closeLater(int file) {
    looks.closeLater(file, calls::close);
  }

  // ---- moving names

  public interface Look<T> {
    T at() throws FsException;
  }

  /**
   * Looks while no name is moving at the source: between a step and its record, the tables do not
   * match the source. Do not call while holding the state's lock.
   */
  public <T> T still(Look<T> look) throws FsException {
    moving.readLock().lock();
    try {
      return look.at();
    } finally {
      moving.readLock().unlock();
    }
  }

  /** Whether a rename may be at the source that is not recorded; set before {@link #endMove}. */
  public void setUnsure(boolean isUnsure) {
    this.isUnsure = isUnsure;
  }

  /** Begins moving names; called by the committer, until {@link #endMove}. */
  public void beginMove() {
    if (!moving.isWriteLockedByCurrentThread()) {
      moving.writeLock().lock();
    }
  }

  public void endMove() {
    if (moving.isWriteLockedByCurrentThread()) {
      moving.writeLock().unlock();
    }
  }

  // ---- directories

  /** An open directory of the source. */
  public final class Directory implements AutoCloseable {
    private final int file;
    private final boolean isOwner;

    public Directory(int file, boolean isOwner) {
      this.file = file;
      this.isOwner = isOwner;
    }

    /** Opens a directory for a caller that does not close it. */
    public Directory shared() {
      return new Directory(file, false);
    }

    public int file() {
      return file;
    }

    public Stat status(FileName name) throws FsException {
      Stat raw = calls.status(file, name);
      Long number = fileSystem(raw.device());
      return number == null ? identified(name) : raw.withDevice(number);
    }

    private Stat identified(FileName name) throws FsException {
      try (Directory node = node(name)) {
        Stat raw = calls.status(node.file, Inode.NO_NAME);
        Long number = fileSystem(raw.device());
        return raw.withDevice(
            number == null
                ? fileSystems.number(raw.device(), calls.fileSystem(node.file))
                : number);
      }
    }

    /**
     * Opens the node that has a name now; the empty name in the result is that node. A program that
     * renames it meanwhile does not change which node the caller works on.
     *
     * @throws FsException ENOENT if nothing has the name
     */
    public Directory node(FileName name) throws FsException {
      return name.size() == 0 ? shared() : new Directory(calls.openNode(file, name), true);
    }

    /** Like {@link #node}; ESTALE if it is not the expected one. */
    public Directory node(FileName name, Stat expected) throws FsException {
      Directory node = node(name);
      try {
        node.require(expected, name);
        return node;
      } catch (FsException e) {
        node.close();
        throw e;
      }
    }

    /** Fails with ESTALE unless this is the expected node, which was just seen under a name. */
    public void require(Stat expected, FileName name) throws FsException {
      if (!status(Inode.NO_NAME).isSameFile(expected)) {
        throw new FsException(Errno.ESTALE, name + ": another program replaced it just now");
      }
    }

    public FileName readSymbolicLink(FileName name) throws FsException {
      return calls.readSymbolicLink(file, name);
    }

    @Override
    public void close() {
      if (isOwner) {
        calls.close(file);
      }
    }
  }

  /** An open file as a directory, in which the empty name is the file. */
  public Directory opened(int file) {
    return new Directory(file, false);
  }

  /** Opens the directory with this number; ENOENT if it is not at the source any more. */
  public Directory open(long number) throws FsException {
    try {
      return still(() -> openSame(number));
    } catch (FsException e) {
      failed(e);
      throw e;
    }
  }

  /** Another directory at that place is not this one, unless it gives the same rights. */
  private Directory openSame(long number) throws FsException {
    Directory directory = new Directory(calls.openDirectory(root(), relativePath(number)), true);
    Inode inode = number == WritableFileSystem.ROOT ? null : state.find(number);
    try {
      if (inode != null && !inode.mayBe(directory.status(Inode.NO_NAME))) {
        throw new FsException(Errno.ENOENT, "another program replaced directory " + number);
      }
      return directory;
    } catch (FsException e) {
      directory.close();
      throw e;
    }
  }

  /** Like {@link #open}, for a request: a directory that may have been moved is not missing. */
  public Directory openNow(long number) throws FsException {
    return still(
        () -> {
          try {
            return open(number);
          } catch (FsException e) {
            throw isUnsure && isMissing(e)
                ? new FsException(Errno.EIO, "the source did not say whether it was moved", e)
                : e;
          }
        });
  }

  private static boolean isMissing(FsException e) {
    return e.errno() == Errno.ENOENT || e.errno() == Errno.ENOTDIR;
  }

  /** Whether root must not do in a directory what the source refuses to a user. */
  public boolean isForeign(long number) throws FsException {
    Inode inode = state.find(number);
    return inode != null && inode.is(Inode.FOREIGN);
  }

  /** The project whose quota counts new files in a directory; 0 if none is known. */
  public long project(long number) throws FsException {
    Long known = projects.getIfPresent(number);
    return known == null
        ? looks.ask(new Project(number), () -> projectNow(number), () -> 0L)
        : known;
  }

  private record Project(long directory) {}

  private long projectNow(long number) throws FsException {
    try (Directory directory = openNow(number)) {
      long project = calls.project(directory.file());
      projects.put(number, project);
      return project;
    } catch (FsException e) {
      if (e.errno() == Errno.ENOENT) {
        return 0; // It is moving now.
      }
      throw e;
    }
  }

  /** The path of a directory, below the source's root. */
  public FileName relativePath(long number) throws FsException {
    List<FileName> names = new ArrayList<>();
    long at = number;
    while (at != WritableFileSystem.ROOT) {
      Inode inode = state.find(at);
      if (inode == null || !inode.hasHome() || names.size() > MAX_DEPTH) {
        throw new FsException(Errno.ENOENT, "directory " + at + " is not at the source");
      }
      names.add(inode.homeName());
      at = inode.homeParent();
    }
    FileName joined = Inode.NO_NAME;
    for (int i = names.size() - 1; i >= 0; i--) {
      joined = joined.resolve(names.get(i));
    }
    return joined;
  }

  /**
   * The node, with one of its names at the source as its home: another program may have removed or
   * replaced the one that was. Call where no name is moving.
   */
  public Inode atHome(Inode inode) throws FsException {
    Stat seen = inode.seen();
    if (!inode.is(Inode.HOMES)
        || seen == null
        || isAt(new At(inode.homeParent(), inode.homeName()), seen)) {
      return inode;
    }
    List<At> names;
    try (State.Held held = state.hold()) {
      names = homes.all(inode);
    }
    for (At name : names) {
      if (isAt(name, seen)) {
        return withHome(inode.number(), name);
      }
    }
    return inode;
  }

  private boolean isAt(At name, Stat file) throws FsException {
    try (Directory directory = open(name.directory())) {
      return directory.status(name.name()).isSameFile(file);
    } catch (FsException e) {
      if (!isMissing(e)) {
        throw e;
      }
      return false;
    }
  }

  private Inode withHome(long number, At home) throws FsException {
    try (State.Held held = state.hold()) {
      Inode now = state.inode(number);
      if (!homes.has(now, home.directory(), home.name())) {
        return now;
      }
      Inode next = now.withHome(home.directory(), home.name());
      State.Update update = state.update();
      update.put(next);
      update.commit();
      return next;
    }
  }

  /** The place of a file at the source; ENOENT if it is not there. */
  public Stat statusAtHome(Inode inode) throws FsException {
    if (inode.number() == WritableFileSystem.ROOT) {
      return rootStatus();
    }
    if (!inode.hasHome()) {
      throw new FsException(Errno.ENOENT, "inode " + inode.number() + " is not at the source");
    }
    return still(
        () -> {
          try (Directory directory = openNow(inode.homeParent())) {
            return directory.status(inode.homeName());
          }
        });
  }

  // ---- listings

  /**
   * The names of a directory at the source; empty if it vanished there. If the source does not
   * answer, the last known ones. Do not call while holding the state's lock.
   */
  public Listing listing(long number) throws FsException {
    Listing listing;
    synchronized (listings) {
      listing = keep(number);
    }
    long now = state.millis();
    if (isFresh(listing, now)) {
      return listing;
    }
    looks.ask(listing, () -> loadIfDue(number, listing), () -> listing.isListed() ? listing : null);
    evict();
    return listing;
  }

  private Listing keep(long number) { // GUARDED_BY(listings)
    Listing listing = used.computeIfAbsent(number, key -> new Listing());
    listings.put(number, listing);
    return listing;
  }

  private Listing loadIfDue(long number, Listing listing) throws FsException {
    listing.lock();
    try {
      if (!isFresh(listing, state.millis())) {
        load(number, listing);
      }
      return listing;
    } finally {
      listing.unlock();
    }
  }

  private boolean isFresh(Listing listing, long now) {
    return listing.isFresh(now, freshMillis, PAUSE_FACTOR);
  }

  private void load(long number, Listing listing) throws FsException {
    long begin = state.millis();
    listing.beginLoading();
    PackedNames found = null;
    try (Directory directory = openNow(number)) {
      Stat now = directory.status(Inode.NO_NAME);
      if (!listing.isOf(now)) {
        PackedNames names = new PackedNames();
        calls.list(
            directory.file(),
            (name, inode, type) -> {
              if (!TemporaryNames.contains(name)) {
                names.add(Listing.Child.of(name, inode, type));
              }
            });
        found = names;
        listing.read(now, begin);
      }
    } catch (FsException e) {
      if (!isMissing(e)) {
        throw e;
      }
      found = new PackedNames();
      listing.read(null, begin);
    } finally {
      listing.endLoading(found);
    }
    listing.looked(begin, state.millis());
  }

  private void evict() {
    synchronized (listings) {
      long names = 0;
      for (Listing listing : listings.values()) {
        names += 1 + listing.size();
      }
      Iterator<Listing> oldest = listings.values().iterator();
      while (names > keptNames && listings.size() > 1 && oldest.hasNext()) {
        names -= 1 + oldest.next().size();
        oldest.remove();
      }
    }
  }

  /** Whether this mount's own changes still reach a listing. */
  public boolean isKept(long number, Listing listing) {
    synchronized (listings) {
      return used.get(number) == listing;
    }
  }

  /** The cached listing of a directory, if there is one. */
  @Nullable
  public Listing known(long number) {
    synchronized (listings) {
      return used.get(number);
    }
  }

  /** The committer has created a directory, which is known to be empty. */
  public void addEmpty(long number) {
    synchronized (listings) {
      keep(number).makeEmpty();
    }
  }

  /** Makes the next access to a directory list it again. */
  public void forget(long number) {
    synchronized (listings) {
      listings.remove(number);
      used.remove(number);
    }
  }

  // ---- copies

  /** Nodes by the inode numbers of their copies, which may have their final names already. */
  private final Map<Long, Copied> copies = new ConcurrentHashMap<>();

  private record Copied(Instant birth, long number) {}

  /** Registers a file of the source as the future content of a node. */
  public void copied(long inode, Instant birth, long number) {
    copies.put(inode, new Copied(birth, number));
  }

  /** The node whose unrecorded copy a file of the source is; null if none. */
  @Nullable
  public Long copyOf(Stat there) {
    Copied copied = copies.get(there.inode());
    // Inode numbers of removed files are reused, even for directories.
    return copied != null && copied.birth().equals(there.birth()) ? copied.number() : null;
  }

  /** Like {@link #copyOf(Stat)}, by the inode number alone, which is all that a listing has. */
  @Nullable
  public Long copyOf(long inode) {
    Copied copied = copies.get(inode);
    return copied == null ? null : copied.number();
  }

  /** Forgets a copy that is recorded or removed. */
  public void recorded(long inode, long number) {
    copies.computeIfPresent(inode, (key, copied) -> copied.number() == number ? null : copied);
  }

  // ---- names

  /** Registers the node of a name at the source. */
  public void named(At name, long number) {
    nodes.put(name, number);
  }

  /** The last known node of a name at the source; null if unknown. */
  @Nullable
  public Long nodeOf(At name) {
    return nodes.getIfPresent(name);
  }

  // ---- attributes

  /** Whether the attributes of a file were read a moment ago. */
  public boolean isChecked(long number) {
    Long at = checked.getIfPresent(number);
    long now = state.millis();
    return at != null && now >= at && now - at < freshMillis;
  }

  public void markChecked(long number) {
    checked.put(number, state.millis());
  }

  public void unmark(long number) {
    checked.invalidate(number);
  }

  /** A descriptor in use stays open, because its number could be reused. */
  @Override
  public void close() {
    if (!looks.end() || !opening.tryLock()) {
      return;
    }
    try {
      if (root >= 0) {
        calls.close(root);
        root = -1;
      }
      abandoned.forEach(calls::close);
      abandoned.clear();
    } finally {
      opening.unlock();
    }
  }
}
