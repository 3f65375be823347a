package io.pmfs.writable.tree;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.TemporaryNames;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.AtSource;
import io.pmfs.writable.WritableFileSystem.Entry;
import io.pmfs.writable.WritableFileSystem.EntryConsumer;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.NameRow;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Names and attributes as the mount shows them: those of the source, overlaid with changes that the
 * source lacks. Thread-safe.
 */
@SuppressWarnings("try")
public final class Nodes {
  private static final Logger log = LoggerFactory.getLogger(Nodes.class);

  /** Marks the inode numbers of files first seen at the source; their number there follows. */
  public static final long SOURCE = 1L << 61;

  private static final int NAME_MAX = 255;
  private static final int LISTED_AT_ONCE = 128;
  private static final int KEPT_HINTS = 20_000;
  private static final int KEPT_TARGETS = 10_000;

  private final State state;
  private final Homes homes;
  private final SourceTree tree;
  private final WrittenFiles written;

  /** Names of files that were listed, but not looked up. */
  private final Cache<Long, Hint> hints = CacheBuilder.newBuilder().maximumSize(KEPT_HINTS).build();

  private record Hint(long directory, FileName name) {}

  /** Targets of the source's symbolic links, which never change. */
  private final Cache<Long, FileName> targets =
      CacheBuilder.newBuilder().maximumSize(KEPT_TARGETS).build();

  private record Target(long inode) {}

  public Nodes(State state, SourceTree tree, WrittenFiles written) {
    this.state = state;
    this.homes = new Homes(state);
    this.tree = tree;
    this.written = written;
  }

  // ---- names

  public static void checkName(FileName name) throws FsException {
    if (name.size() > NAME_MAX) {
      throw new FsException(Errno.ENAMETOOLONG, name.toString());
    }
    // A kernel never sends these, but another node may.
    if (!name.isEntry()) {
      throw new FsException(Errno.EINVAL, name + ": not a name");
    }
  }

  public static void checkNewName(FileName name) throws FsException {
    checkName(name);
    if (TemporaryNames.contains(name)) {
      throw new FsException(Errno.EPERM, name + ": the name is reserved");
    }
  }

  public Inode directory(long number) throws FsException {
    Inode inode = find(number);
    if (!inode.isDirectory()) {
      throw new FsException(Errno.ENOTDIR, "inode " + number);
    }
    return inode;
  }

  /** A node that the kernel knows from a lookup or a listing. */
  public Inode find(long number) throws FsException {
    Inode inode = state.find(number);
    if (inode != null) {
      return inode;
    }
    if (number == WritableFileSystem.ROOT) {
      return createRoot();
    }
    Hint hint = hints.getIfPresent(number);
    Inode found = hint == null ? null : lookup(hint.directory(), hint.name());
    if (found == null || found.number() != number) {
      throw new FsException(Errno.ESTALE, "inode " + number);
    }
    return found;
  }

  private Inode createRoot() throws FsException {
    Stat stat = tree.rootNow();
    try (State.Held held = state.hold()) {
      Inode before = state.find(WritableFileSystem.ROOT);
      if (before != null) {
        return before;
      }
      Inode root =
          Inode.found(WritableFileSystem.ROOT, stat, WritableFileSystem.ROOT, Inode.NO_NAME);
      State.Update update = state.update();
      update.put(root);
      update.put(
          Tables.SOURCES,
          Tables.key(stat.device(), stat.inode()),
          Tables.key(WritableFileSystem.ROOT));
      update.commit();
      return root;
    }
  }

  /** The source's names in a directory; null if the directory is not there. */
  @Nullable
  public Listing listing(Inode directory) throws FsException {
    return directory.number() == WritableFileSystem.ROOT || directory.hasHome()
        ? tree.listing(directory.number())
        : null;
  }

  /** Finds a name; null if there is none. */
  @Nullable
  public Inode lookup(long directoryNumber, FileName name) throws FsException {
    checkName(name);
    for (boolean isAgain = false; ; isAgain = true) {
      if (isAgain) {
        tree.looks().checkInterrupted();
      }
      Inode directory = directory(directoryNumber);
      NameRow row = state.name(directoryNumber, name);
      if (row != null) {
        return row.isRemoved() ? null : state.find(row.inode());
      }
      Listing listing = listing(directory);
      if (listing == null || listing.find(name) == null) {
        // A name leaves the tables when the source has it: look there again.
        if (state.name(directoryNumber, name) == null
            && (listing == null
                ? !directory(directoryNumber).hasHome()
                : tree.isKept(directoryNumber, listing))) {
          return null;
        }
        continue;
      }
      Adopted found =
          tree.looks()
              .ask(
                  new At(directoryNumber, name),
                  () -> tree.still(() -> new Adopted(lookAndAdopt(directoryNumber, name, listing))),
                  () -> known(directoryNumber, name, listing));
      if (found.inode() != null) {
        return found.inode();
      }
    }
  }

  /**
   * A node found at the source.
   *
   * @param inode null if the name must be looked up again
   */
  private record Adopted(@Nullable Inode inode) {}

  /** The node that a name last had at the source; null if unknown. */
  private @Nullable Adopted known(long directory, FileName name, Listing listing)
      throws FsException {
    Listing.Child child = listing.find(name);
    if (child == null) {
      return null;
    }
    try (State.Held held = state.hold()) {
      if (state.name(directory, name) != null) {
        return new Adopted(null); // It was changed in the mount meanwhile.
      }
      Long last = tree.nodeOf(new At(directory, name));
      byte[] row = state.get(Tables.SOURCES, Tables.key(0, child.inode()));
      long listed = row == null ? SOURCE | child.inode() : Tables.first(row);
      // Some file systems list other inode numbers than stat(2) reports.
      Inode inode = state.find(last == null ? listed : last);
      Stat seen = inode == null ? null : inode.seen();
      if (inode == null || seen == null || inode.isRemoved()) {
        return null;
      }
      boolean isSame = last != null || seen.inode() == child.inode();
      return isSame && homes.has(inode, directory, name) ? new Adopted(inode) : null;
    }
  }

  /** Looks up a name at the source; null if it must be looked up again. */
  private @Nullable Inode lookAndAdopt(long directory, FileName name, Listing listing)
      throws FsException {
    State.Progress then = state.progress();
    Stat stat = statusOf(directory, name, listing, then);
    return stat == null ? null : adopt(directory, name, stat, then);
  }

  private @Nullable Stat statusOf(
      long directory, FileName name, Listing listing, State.Progress then) throws FsException {
    try (SourceTree.Directory opened = tree.openNow(directory)) {
      return opened.status(name);
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT && e.errno() != Errno.ENOTDIR) {
        throw e;
      }
      if (state.progress().equals(then)) {
        listing.remove(name);
      }
      return null;
    }
  }

  /**
   * The node of a file of the source.
   *
   * @param then the source's progress before the file was read
   * @return null if the name was changed in the mount meanwhile
   */
  private @Nullable Inode adopt(long directory, FileName name, Stat stat, State.Progress then)
      throws FsException {
    try (State.Held held = state.hold()) {
      if (state.name(directory, name) != null) {
        return null;
      }
      State.Update update = state.update();
      long number = numberOf(stat, update);
      Inode known = state.find(number);
      Inode next =
          known == null
              ? Inode.found(number, stat, directory, name)
              : refreshed(update, known, stat, directory, name, then);
      if (!next.equals(known)) {
        update.put(next);
        dropStale(update, known, next);
      }
      if (!update.isEmpty()) { // A further name of a known file changes nothing else.
        update.commit();
      }
      tree.markChecked(number);
      tree.named(new At(directory, name), number);
      return next;
    }
  }

  /** The inode number for a file of the source; a new one if another file has its usual number. */
  private long numberOf(Stat stat, State.Update update) throws FsException {
    Long copied = tree.copyOf(stat);
    if (copied != null && state.find(copied) != null) {
      return copied;
    }
    byte[] key = Tables.key(stat.device(), stat.inode());
    byte[] row = state.get(Tables.SOURCES, key);
    long usual =
        stat.device() == 0 && stat.inode() > 0 && stat.inode() < SOURCE ? SOURCE | stat.inode() : 0;
    long candidate = row == null ? usual : Tables.first(row);
    if (candidate != 0) {
      Inode known = state.find(candidate);
      Stat seen = known == null ? null : known.seen();
      if (known == null || (seen != null && seen.isSameFile(stat))) {
        return candidate;
      }
    }
    long number = update.newNumber();
    update.put(Tables.SOURCES, key, Tables.key(number));
    return number;
  }

  /** The inode number that a listed name will probably have when it is looked up. */
  private long listedNumber(Listing.Child child) throws FsException {
    Long copied = tree.copyOf(child.inode());
    if (copied != null && state.find(copied) != null) {
      return copied;
    }
    byte[] key = Tables.key(0, child.inode());
    byte[] row = state.get(Tables.SOURCES, key);
    if (row != null) {
      return Tables.first(row);
    }
    long usual = SOURCE | child.inode();
    Inode known = state.find(usual);
    Stat seen = known == null ? null : known.seen();
    if (known == null || (seen != null && seen.inode() == child.inode())) {
      return usual;
    }
    // Another file, replaced since, has its usual number.
    State.Update update = state.update();
    long number = update.newNumber();
    update.put(Tables.SOURCES, key, Tables.key(number));
    update.commit();
    return number;
  }

  private Inode refreshed(
      State.Update update,
      Inode known,
      Stat stat,
      long directory,
      FileName name,
      State.Progress then)
      throws FsException {
    Inode next = known;
    boolean isBusy = isBusy(known, then);
    Stat seen = known.seen();
    if (!isBusy && (seen == null || !seen.isUnchanged(stat))) {
      next = changedAtSource(next, stat);
    }
    boolean isThere = known.homeParent() == directory && known.homeName().equals(name);
    boolean isOnly = known.isDirectory() || stat.attributes().linkCount() <= 1;
    boolean isPlaced = known.isDirectory() && known.hasHome();
    boolean isFree = isPlaced ? isMovable(known, directory) : !isBusy;
    if (!isThere && isFree && isOnly) {
      next = homes.clear(update, next).withHome(directory, name).withPlace(directory, name);
      // The names that were listed may be those of another directory.
      update.afterwards(() -> tree.forget(known.number()));
    }
    if (!isThere && !isOnly && known.hasHome()) {
      next = homes.add(update, next, new At(directory, name));
    }
    return next;
  }

  /**
   * Whether a directory can have moved into another one, which was found at the source: no change
   * of its name waits, and it is not above that one in the mount or in the tables.
   */
  private boolean isMovable(Inode known, long into) throws FsException {
    return state.name(known.homeParent(), known.homeName()) == null
        && !isAbove(known, into, Inode::homeParent)
        && !isAbove(known, into, Inode::parent);
  }

  private boolean isAbove(Inode known, long below, ToLongFunction<Inode> parent)
      throws FsException {
    long at = below;
    for (int depth = 0; at != WritableFileSystem.ROOT && at != known.number(); depth++) {
      Inode inode = state.find(at);
      if (inode == null || depth > SourceTree.MAX_DEPTH) {
        return inode != null;
      }
      at = parent.applyAsLong(inode);
    }
    return at == known.number();
  }

  /** Takes over a file's state after another program changed it at the source. */
  private static Inode changedAtSource(Inode known, Stat stat) {
    Stat seen = known.seen();
    boolean hasSameContent = seen != null && seen.hasSameContent(stat);
    Inode next = known.with(stat.attributes()).withSeen(stat);
    return hasSameContent || known.isDirectory() ? next : next.withData(0, 0, -1);
  }

  private void dropStale(State.Update update, @Nullable Inode before, Inode after)
      throws FsException {
    if (before != null && before.generation() != 0 && after.generation() == 0) {
      written.drop(update, before);
    }
  }

  // ---- attributes

  /** A node with its present attributes, including changes by other programs at the source. */
  public Node node(long number) throws FsException {
    return shown(refresh(find(number)));
  }

  /** A node as it is known, without reading the source. */
  public Node shown(Inode inode) throws FsException {
    boolean isWritten = inode.isRegular() && inode.is(Inode.WRITING);
    return new Node(inode.number(), isWritten ? written.attributes(inode) : inode.attributes());
  }

  /** Where the content is, if only the source has it; else null. */
  public @Nullable AtSource atSource(Inode inode) {
    Stat seen = inode.seen();
    boolean isThere = inode.generation() == 0 && !inode.is(Inode.WRITING) && inode.hasHome();
    if (!isThere || seen == null || !inode.isRegular()) {
      return null;
    }
    try {
      return new AtSource(tree.relativePath(inode.homeParent()), inode.homeName(), seen.inode());
    } catch (FsException e) {
      log.debug("inode {} is read through this node: {}", inode.number(), e.getMessage());
      return null;
    }
  }

  private boolean isBusy(Inode inode) {
    return state.isBusy(inode) || tree.disturbed().contains(inode.number());
  }

  private boolean isBusy(Inode inode, State.Progress then) {
    return state.isBusy(inode, then) || tree.disturbed().contains(inode.number());
  }

  /**
   * Checks at most once in a moment whether another program changed a file at the source. If the
   * source does not answer, the file counts as unchanged.
   */
  public Inode refresh(Inode inode) throws FsException {
    boolean isHome = inode.hasHome() || inode.number() == WritableFileSystem.ROOT;
    if (!isHome || isBusy(inode) || tree.isChecked(inode.number())) {
      return inode;
    }
    long number = inode.number();
    Refreshed now =
        tree.looks()
            .ask(
                number,
                () -> tree.still(() -> refreshStill(state.inode(number))),
                () -> new Refreshed(state.inode(number), null));
    if (now.gone() != null) {
      throw now.gone();
    }
    return now.inode();
  }

  /**
   * A checked node.
   *
   * @param gone whether the source no longer has it
   */
  private record Refreshed(Inode inode, @Nullable FsException gone) {}

  private Refreshed refreshStill(Inode known) throws FsException {
    boolean isHome = known.hasHome() || known.number() == WritableFileSystem.ROOT;
    if (!isHome || isBusy(known) || tree.isChecked(known.number())) {
      return new Refreshed(known, null);
    }
    Inode inode = tree.atHome(known);
    Stat stat;
    State.Progress then = state.progress();
    try {
      stat = tree.statusAtHome(inode);
    } catch (FsException e) {
      if (e.errno() == Errno.ENOENT || e.errno() == Errno.ENOTDIR) {
        return vanished(inode, e);
      }
      throw e;
    }
    try (State.Held held = state.hold()) {
      Inode now = state.inode(inode.number());
      Stat seen = now.seen();
      boolean isElsewhere =
          now.homeParent() != inode.homeParent() || !now.homeName().equals(inode.homeName());
      if (isBusy(now, then) || isElsewhere) {
        return new Refreshed(now, null);
      }
      tree.markChecked(inode.number());
      if (seen != null && seen.isUnchanged(stat)) {
        return new Refreshed(now, null);
      }
      if (seen != null && !seen.isSameFile(stat)) {
        return new Refreshed(
            now, new FsException(Errno.ESTALE, inode.homeName() + ": replaced at the source"));
      }
      State.Update update = state.update();
      Inode next = changedAtSource(now, stat);
      update.put(next);
      dropStale(update, now, next);
      update.commit();
      return new Refreshed(next, null);
    }
  }

  private Refreshed vanished(Inode inode, FsException why) throws FsException {
    Inode now = state.inode(inode.number());
    if (state.isBusy(now) || now.isRemoved()) {
      return new Refreshed(now, null);
    }
    return new Refreshed(
        now, new FsException(Errno.ESTALE, inode.homeName() + ": gone from the source", why));
  }

  public FileName target(Inode inode) throws FsException {
    FileName made = inode.target();
    if (made != null) {
      return made;
    }
    long number = inode.number();
    return tree.looks()
        .ask(
            new Target(number),
            () -> tree.still(() -> targetAt(state.inode(number))),
            () -> targets.getIfPresent(number));
  }

  private FileName targetAt(Inode known) throws FsException {
    Inode inode = tree.atHome(known);
    try (SourceTree.Directory directory = tree.openNow(inode.homeParent())) {
      FileName found = directory.readSymbolicLink(inode.homeName());
      targets.put(inode.number(), found);
      return found;
    }
  }

  // ---- listings

  public void list(long number, long position, EntryConsumer entries) throws FsException {
    Inode directory = directory(number);
    long from = position + 1;
    while (from > 0) {
      Listing listing = directory.isRemoved() ? null : listing(directory);
      List<Entry> found;
      try (State.Held held = state.hold()) {
        found = entries(number, listing, from);
      }
      for (Entry entry : found) {
        if (!entries.accept(entry)) {
          return;
        }
        from = entry.position() + 1;
      }
      if (found.size() < LISTED_AT_ONCE) {
        return;
      }
    }
  }

  /** Some entries at or after a position, in order. */
  private List<Entry> entries(long directory, @Nullable Listing listing, long from)
      throws FsException {
    List<Entry> found = new ArrayList<>();
    long at = from;
    while (found.size() < LISTED_AT_ONCE && at > 0) {
      List<Listing.Child> below =
          listing == null ? List.of() : listing.from(at, 2 * LISTED_AT_ONCE);
      long[] end = {
        below.size() < 2 * LISTED_AT_ONCE ? Long.MAX_VALUE : below.get(below.size() - 1).position()
      };
      List<Listing.Child> names = new ArrayList<>();
      List<NameRow> rows = new ArrayList<>();
      readRows(directory, at, end, names, rows);
      merge(directory, below, names, rows, end[0], found);
      at = end[0] == Long.MAX_VALUE ? 0 : end[0];
    }
    return found.size() > LISTED_AT_ONCE ? cut(found) : found;
  }

  /** Reads changed names up to {@code end}; lowers {@code end} if there are too many. */
  private void readRows(
      long directory, long at, long[] end, List<Listing.Child> names, List<NameRow> rows)
      throws FsException {
    state.scanGroup(
        Tables.NAMES,
        Tables.key(directory, at),
        (key, value) -> {
          long position = Tables.second(key);
          if (Tables.first(key) != directory || position >= end[0]) {
            return false;
          }
          if (names.size() >= 2 * LISTED_AT_ONCE
              && position != names.get(names.size() - 1).position()) {
            end[0] = position;
            return false;
          }
          names.add(new Listing.Child(position, Tables.nameIn(key, 2 * Long.BYTES), 0, null));
          rows.add(NameRow.decode(value));
          return true;
        });
  }

  private void merge(
      long directory,
      List<Listing.Child> below,
      List<Listing.Child> names,
      List<NameRow> rows,
      long end,
      List<Entry> found)
      throws FsException {
    int row = 0;
    for (Listing.Child child : below) {
      if (child.position() >= end) {
        break;
      }
      boolean isHidden = false;
      while (row < names.size() && order(names.get(row), child) <= 0) {
        isHidden = order(names.get(row), child) == 0;
        add(names.get(row), rows.get(row), found);
        row++;
      }
      if (!isHidden) {
        addListed(directory, child, found);
      }
    }
    for (; row < names.size(); row++) {
      add(names.get(row), rows.get(row), found);
    }
  }

  private static int order(Listing.Child one, Listing.Child other) {
    int positions = Long.compare(one.position(), other.position());
    return positions != 0 ? positions : one.name().compareTo(other.name());
  }

  private static void add(Listing.Child name, NameRow row, List<Entry> found) {
    if (!row.isRemoved()) {
      found.add(new Entry(name.name(), row.inode(), row.type(), name.position()));
    }
  }

  private void addListed(long directory, Listing.Child child, List<Entry> found)
      throws FsException {
    long number = listedNumber(child);
    hints.put(number, new Hint(directory, child.name()));
    FileType type = child.type();
    found.add(
        new Entry(child.name(), number, type == null ? FileType.UNKNOWN : type, child.position()));
  }

  /** Cuts between two positions, so that the next listing continues without losing an entry. */
  private static List<Entry> cut(List<Entry> found) {
    int size = LISTED_AT_ONCE;
    while (size < found.size() && found.get(size).position() == found.get(size - 1).position()) {
      size++;
    }
    return found.subList(0, size);
  }

  public boolean isEmpty(Inode directory, @Nullable Listing listing) throws FsException {
    return entries(directory.number(), listing, 1).isEmpty();
  }
}
