package io.pmfs.writable.steps;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Encoder;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Intent;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.tree.Homes;
import io.pmfs.writable.tree.Listing;
import io.pmfs.writable.tree.SourceTree;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Common parts of steps at the source: open directories, names for conflicts, and recording. Used
 * by one thread.
 */
@SuppressWarnings("try")
public final class Step {
  private static final int NAME_MAX = 255;
  private static final int MAX_BESIDE = 10_000;

  /** Consecutive changes often use the same directories. */
  private static final int KEPT = 8;

  private static final long KEPT_NANOS = 1_000_000_000L;
  private static final int MAX_DEPTH = 4096;
  private static final int PERMISSIONS = 07777;

  private final State state;
  private final SourceTree tree;
  private final OutputCalls calls;
  private final Actors actors;
  private final SourceAttributes attributes;
  private final Homes homes;
  private final Conflicts conflicts;
  private final OwnVersions versions;
  private final DirectoryTimes times;
  private final String host;
  private final Map<Long, SourceTree.Directory> kept = new HashMap<>();
  private long keptNanos = System.nanoTime();
  private boolean isAgain;

  /** Repeatable calls that complete a step. */
  public interface Rest {
    void make() throws FsException;
  }

  public Step(State state, SourceTree tree, Actors actors, Conflicts conflicts, String host) {
    this.state = state;
    this.tree = tree;
    this.calls = tree.calls();
    this.actors = actors;
    this.homes = new Homes(state);
    this.attributes = new SourceAttributes(calls, actors);
    this.conflicts = conflicts;
    this.versions = new OwnVersions(state);
    this.times = new DirectoryTimes(this);
    this.host = host;
  }

  // ---- its parts

  public State state() {
    return state;
  }

  public SourceTree tree() {
    return tree;
  }

  public OutputCalls calls() {
    return calls;
  }

  public Actors actors() {
    return actors;
  }

  SourceAttributes attributes() {
    return attributes;
  }

  public Homes homes() {
    return homes;
  }

  /** Which files of the source are versions of this mount. */
  OwnVersions versions() {
    return versions;
  }

  /** The times of directories at the source. */
  public DirectoryTimes times() {
    return times;
  }

  /** The node of a change, under one of its names at the source; null if it is unknown. */
  @Nullable Inode inode(Change change) throws FsException {
    Inode inode = state.find(change.inode());
    return inode == null ? null : tree.atHome(inode);
  }

  // ---- directories

  /** Starts a step; directories opened long ago are reopened. */
  public void begin(List<Change> changes) {
    versions.setWindow(changes);
    if (kept.size() > KEPT || System.nanoTime() - keptNanos > KEPT_NANOS) {
      closeDirectories();
    }
  }

  /** The next step may have been made already without being recorded. */
  public void setAgain(boolean isAgain) {
    this.isAgain = isAgain;
  }

  public boolean isAgain() {
    return isAgain;
  }

  /** Called after a failure and at the end. */
  public void closeDirectories() {
    kept.values().forEach(SourceTree.Directory::close);
    kept.clear();
    keptNanos = System.nanoTime();
  }

  /** Opens a directory at the source, and creates it again if it vanished there. */
  public SourceTree.Directory open(long number) throws FsException {
    SourceTree.Directory known = kept.get(number);
    if (known == null) {
      known = openAgain(number);
      kept.put(number, known);
    }
    return known.shared();
  }

  private SourceTree.Directory openAgain(long number) throws FsException {
    try {
      return tree.open(number);
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
      recreate(number, e);
      return tree.open(number);
    }
  }

  private void recreate(long number, FsException why) throws FsException {
    Inode inode = state.find(number);
    if (inode == null || !inode.isDirectory() || number == WritableFileSystem.ROOT) {
      throw why;
    }
    long parent = inode.hasHome() ? inode.homeParent() : inode.parent();
    FileName name = inode.hasHome() ? inode.homeName() : inode.name();
    if (parent == 0 || parent == number) {
      throw why;
    }
    try (SourceTree.Directory above = open(parent)) {
      boolean isMade = makeAgain(above, name, inode.attributes());
      try (SourceTree.Directory node = above.node(name)) {
        Stat stat = node.status(Inode.NO_NAME);
        if (stat.attributes().type() != FileType.DIRECTORY) {
          throw why;
        }
        if (isMade && stat.attributes().uid() == inode.attributes().uid()) {
          attributes.setRights(node, inode.attributes(), () -> {});
          stat = node.status(Inode.NO_NAME);
        }
        Stat there = stat;
        Recording again =
            update ->
                update.put(Homes.seen(update, update.inode(number).withHome(parent, name), there));
        String reason =
            isMade
                ? "vanished from the source; created again"
                : "another user made a directory in the place of this one, and keeps it";
        recordNow(
            (isMade ? again : again.and(adopted(number, there)))
                .and(reported(state.committed() + 1, path(parent, name), reason, false)));
      }
      tree.forget(number);
      tree.forget(parent);
    }
  }

  /** Creates a directory as its owner or, if the source refuses that, as the daemon. */
  private boolean makeAgain(SourceTree.Directory above, FileName name, Attributes wanted)
      throws FsException {
    int mode = wanted.mode() & PERMISSIONS;
    try {
      try (OutputCalls.Acting acting = calls.actAs(wanted.uid(), wanted.gid())) {
        calls.mkdir(above.file(), name, mode);
        return true;
      } catch (FsException e) {
        if (e.errno() != Errno.EACCES && e.errno() != Errno.EPERM) {
          throw e;
        }
      }
      calls.mkdir(above.file(), name, mode);
      return true;
    } catch (FsException e) {
      if (e.errno() != Errno.EEXIST) {
        throw e;
      }
      return false;
    }
  }

  /** Opens a directory at the source; null if it does not exist. */
  public SourceTree.@Nullable Directory openIfThere(long number) throws FsException {
    SourceTree.Directory known = kept.get(number);
    if (known != null) {
      return known.shared();
    }
    try {
      return tree.open(number);
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT && e.errno() != Errno.ENOTDIR) {
        throw e;
      }
      return null;
    }
  }

  // ---- completing a step

  /**
   * Completes a step. On failure, the tables record that the change was made and must still be
   * {@linkplain Completion completed}.
   *
   * @param directory whose names were changed
   * @param made the named file, if its attributes are still to be set
   */
  Recording finish(Change change, long directory, @Nullable Stat made, Rest rest)
      throws FsException {
    try {
      rest.make();
      return Recording.NOTHING;
    } catch (FsException e) {
      if (e.errno() == Errno.EINTR) {
        throw e;
      }
      return Recording.of(
          update -> {
            Intent intent = Intent.of(state, change.sequence());
            Intent rested =
                intent == null
                    ? new Intent(directory, Intent.Mark.MADE)
                    : intent.at(directory).with(Intent.Mark.MADE);
            update.put(
                Tables.INTENTS,
                Tables.key(change.sequence()),
                (made == null ? rested : rested.with(made)).encode());
          },
          e);
    }
  }

  /** Completes a step by a sync of its directory. */
  Recording finish(Change change, long number, SourceTree.Directory directory) throws FsException {
    return finish(change, number, null, () -> sync(directory));
  }

  public void sync(SourceTree.Directory directory) throws FsException {
    calls.sync(directory.file(), false);
  }

  /** The file under a name; null if there is none. */
  public static @Nullable Stat find(SourceTree.Directory directory, FileName name)
      throws FsException {
    try {
      return directory.status(name);
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
      return null;
    }
  }

  /** Fails with ESTALE if another program has changed a file since it was seen under its name. */
  static void require(SourceTree.Directory directory, FileName name, Stat seen) throws FsException {
    Stat now = find(directory, name);
    if (now == null || !seen.hasSameContent(now)) {
      throw new FsException(Errno.ESTALE, name + ": another program changed it just now");
    }
  }

  /** Opens a node under its name at the source; null if that is gone or another program's. */
  public SourceTree.@Nullable Directory node(
      SourceTree.Directory directory, FileName name, @Nullable Stat seen) throws FsException {
    if (seen == null) {
      return null;
    }
    SourceTree.Directory node = null;
    boolean isSame = false;
    try {
      node = directory.node(name);
      isSame = node.status(Inode.NO_NAME).isSameFile(seen);
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
    } finally {
      if (node != null && !isSame) {
        node.close();
      }
    }
    return isSame ? node : null;
  }

  // ---- names

  /** Renames to a free name; returns false if the name is taken. */
  public boolean renameFree(
      SourceTree.Directory from, FileName name, SourceTree.Directory to, FileName toName)
      throws FsException {
    try {
      calls.rename(from.file(), name, to.file(), toName, OutputCalls.RENAME_NOREPLACE);
      return true;
    } catch (FsException e) {
      if (e.errno() == Errno.EEXIST) {
        return false;
      }
      if (e.errno() != Errno.EINVAL) {
        throw e;
      }
    }
    if (find(to, toName) != null) {
      return false;
    }
    calls.rename(from.file(), name, to.file(), toName, 0);
    return true;
  }

  /** Renames to a free name, as the user of a change. */
  public boolean renameFreeAs(
      Change change,
      SourceTree.Directory from,
      FileName name,
      SourceTree.Directory to,
      FileName toName)
      throws FsException {
    try (OutputCalls.Acting acting = actors.as(change)) {
      return renameFree(from, name, to, toName);
    }
  }

  /** A name for a version saved beside another program's file. */
  public FileName beside(FileName name, int count) {
    byte[] suffix = (".pmfs-conflict-" + host + "-" + count).getBytes(StandardCharsets.UTF_8);
    byte[] base = name.bytes();
    int kept = Math.max(0, Math.min(base.length, NAME_MAX - suffix.length));
    byte[] joined = Arrays.copyOf(base, kept + suffix.length);
    System.arraycopy(suffix, 0, joined, kept, suffix.length);
    return FileName.of(joined);
  }

  /** Creates something under the first free name beside a taken one. */
  public interface Making {
    /** Returns false if the name is taken. */
    boolean make(FileName name) throws FsException;
  }

  public FileName makeBeside(FileName taken, Making making) throws FsException {
    for (int count = 1; count <= MAX_BESIDE; count++) {
      FileName name = beside(taken, count);
      if (making.make(name)) {
        return name;
      }
    }
    throw new FsException(Errno.EEXIST, taken + ": too many conflicts");
  }

  // ---- recording

  /** Records what a step did before it failed. */
  public void recordNow(Recording recording) throws FsException {
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      recording.record(update);
      update.commit();
    }
  }

  public Recording added(long number, long directory, FileName name, Stat stat) {
    return update -> {
      Listing listing = tree.known(directory);
      if (listing != null) {
        listing.add(name, stat.inode(), stat.attributes().type());
      }
      Inode inode = update.find(number);
      if (inode != null) {
        Inode next = homes.add(update, inode, new At(directory, name));
        update.put(Homes.seen(update, next, stat));
        tree.markChecked(number);
      }
    };
  }

  /** Records that a node has lost a name at the source. */
  public Recording removed(long number, long directory, FileName name) {
    return update -> {
      Listing listing = tree.known(directory);
      if (listing != null) {
        listing.remove(name);
      }
      Inode inode = update.find(number);
      if (inode != null) {
        Inode next = homes.remove(update, inode, new At(directory, name));
        update.put(next.hasHome() ? next : Homes.unseen(update, next));
      }
    };
  }

  /** Records that a directory is another program's: the mount shows the rights that it has. */
  static Recording adopted(long number, Stat there) {
    return update -> {
      Inode inode = update.find(number);
      if (inode != null) {
        Attributes now = there.attributes();
        Attributes rights = inode.attributes().withOwner(now.uid(), now.gid()).withMode(now.mode());
        update.put(inode.with(rights).withFlag(Inode.FOREIGN, true));
      }
    };
  }

  /**
   * Records whether a new directory has the owner who made it. If not, the source has owners of its
   * own, or another program has replaced it already.
   */
  static Recording owned(long number, boolean isOwn) {
    return update -> {
      Inode inode = update.find(number);
      if (inode != null && !isOwn) {
        update.put(inode.withFlag(Inode.FOREIGN, true));
      }
    };
  }

  public static Recording seen(long number, Stat stat) {
    return update -> {
      Inode inode = update.find(number);
      if (inode != null) {
        update.put(Homes.seen(update, inode, stat));
      }
    };
  }

  /**
   * The state to record after a step that changes names or attributes. If another program changed
   * the content before the step, that must still be noticed: the state has the old size and times.
   *
   * @param before the file's state before the step
   * @param isMade whether an earlier attempt made the change
   */
  public Stat after(Inode inode, Stat before, Stat now, boolean isMade) throws FsException {
    Stat seen = inode.seen();
    if (seen == null || !inode.isRegular() || !seen.isSameFile(before)) {
      return now;
    }
    boolean isSame =
        (isMade || isAgain) ? seen.hasSameSizeAndTime(before) : seen.hasSameContent(before);
    return isSame || versions.isOwnVersion(before, inode.number()) ? now : now.withContentOf(seen);
  }

  /** Updates the change time of the file's other names, which this mount caused itself. */
  public Recording linksOf(Inode inode, At gone) throws FsException {
    List<At> left;
    try (State.Held held = state.hold()) {
      left = new ArrayList<>(homes.all(inode));
    }
    left.remove(gone);
    if (left.isEmpty()) {
      return Recording.NOTHING;
    }
    At other = left.get(0);
    try (SourceTree.Directory parent = openIfThere(other.directory())) {
      Stat now = parent == null ? null : find(parent, other.name());
      Stat seen = inode.seen();
      boolean isKnown = now != null && seen != null && seen.hasSameContent(now);
      return now != null && (isKnown || versions.isOwnVersion(now, inode.number()))
          ? seen(inode.number(), now)
          : Recording.NOTHING;
    }
  }

  /** The path of a name below the mount point, as far as it is known, for messages. */
  public String path(long directory, FileName name) throws FsException {
    return place(directory, name).toString();
  }

  /** The bytes of that path. */
  public FileName place(long directory, FileName name) throws FsException {
    FileName path = name;
    long at = directory;
    for (int depth = 0; at > WritableFileSystem.ROOT && depth < MAX_DEPTH; depth++) {
      Inode inode = state.find(at);
      if (inode == null || inode.parent() == 0) {
        break;
      }
      path = inode.name().resolve(path);
      at = inode.parent();
    }
    return path;
  }

  public Recording conflict(Change change, String reason) throws FsException {
    return conflict(change, path(change), reason);
  }

  /** Records a conflict at another path than the change's. */
  public Recording conflict(Change change, String path, String reason) {
    return reported(change.sequence(), path, reason, false);
  }

  /** Records that the source can never make a change. */
  public Recording givenUp(Change change, String reason) throws FsException {
    Recording recording = reported(change.sequence(), path(change), "given up: " + reason, true);
    Inode inode = inode(change);
    if (inode == null || !(change instanceof Change.SetAttributes set)) {
      return recording;
    }
    Stat there = tree.statusAtHome(inode);
    Stat seen = inode.seen();
    return seen == null || !seen.isSameFile(there)
        ? recording
        : recording.and(takenBack(set, after(inode, there, there, false)));
  }

  /** Shows the source's attributes again, unless they were changed since. */
  private static Recording takenBack(Change.SetAttributes change, Stat there) {
    return update -> {
      Inode now = update.inode(change.inode());
      Attributes shown = change.takenBack(now.attributes(), there.attributes());
      update.put(Homes.seen(update, now.with(shown), there));
    };
  }

  public Recording lost(Change change, String path, String reason) {
    return reported(change.sequence(), path, reason, true);
  }

  /** Reports that a content was lost which is in no change. */
  public Recording lost(long sequence, String path, String reason) {
    return reported(sequence, path, reason, true);
  }

  private Recording reported(long sequence, String path, String reason, boolean isGivenUp) {
    byte[] row =
        new Encoder()
            .name(FileName.of(path))
            .name(FileName.of(reason))
            .number(isGivenUp ? 1 : 0)
            .toBytes();
    return update -> {
      // By path, too: a change may concern several names of a file.
      update.put(Tables.CONFLICTS, Tables.key(sequence, FileName.of(path)), row);
      update.afterwards(() -> conflicts.add(path, reason, isGivenUp));
    };
  }

  public String path(Change change) throws FsException {
    List<At> names = change.names();
    if (!names.isEmpty()) {
      At last = names.get(names.size() - 1);
      return path(last.directory(), last.name());
    }
    return path(change.inode());
  }

  /** The path of a node in the mount. */
  public String path(long number) throws FsException {
    Inode inode = state.find(number);
    return inode == null ? "inode " + number : path(inode.parent(), inode.name());
  }

  /** Records that a node's name at the source differs: another program's file has its name. */
  public Recording aside(long number, long directory) {
    return update -> {
      tree.forget(directory);
      Inode inode = update.find(number);
      if (inode != null) {
        update.put(inode.withFlag(Inode.ASIDE, true));
      }
    };
  }
}
