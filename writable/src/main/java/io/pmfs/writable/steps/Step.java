package io.pmfs.writable.steps;

import com.google.common.collect.Iterables;
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
import java.time.Instant;
import java.time.temporal.ChronoField;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

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

  /** File systems store times in one of these units. */
  private static final List<Integer> UNIT_NANOS =
      List.of(1, 100, 1000, 1_000_000, 10_000_000, 1_000_000_000, 2_000_000_000);

  private static final Logger log = LoggerFactory.getLogger(Step.class);

  private final State state;
  private final SourceTree tree;
  private final OutputCalls calls;
  private final Actors actors;
  private final SourceAttributes attributes;
  private final Homes homes;
  private final Conflicts conflicts;
  private final String host;
  private final Map<Long, SourceTree.Directory> kept = new HashMap<>();
  private long keptNanos = System.nanoTime();
  private List<Change> window = List.of();
  private boolean isAgain;

  /** Records a step that was made at the source. The caller holds the state's lock. */
  public interface Recording {
    void record(State.Update update) throws FsException;

    Recording NOTHING = update -> {};

    /** The failure after the step was made; null if the step is complete. */
    default @Nullable FsException failure() {
      return null;
    }

    default Recording and(Recording next) {
      FsException first = failure();
      return of(
          update -> {
            record(update);
            next.record(update);
          },
          first == null ? next.failure() : first);
    }

    private static Recording of(Recording recording, @Nullable FsException failure) {
      return new Recording() {
        @Override
        public void record(State.Update update) throws FsException {
          recording.record(update);
        }

        @Override
        public @Nullable FsException failure() {
          return failure;
        }
      };
    }
  }

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

  // ---- directories

  /** Starts a step; directories opened long ago are reopened. */
  public void begin(List<Change> changes) {
    window = changes;
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

  /**
   * Whether the source has an announced version, or a part of one, that an earlier attempt or
   * process put there without recording it.
   */
  public boolean isOwnVersion(Stat there, long number) throws FsException {
    Inode inode = state.find(number);
    Stat seen = inode == null ? null : inode.seen();
    for (Change.Content content : contents(number)) {
      if (isMade(there, seen, content) || isPart(there, seen, content)) {
        return true;
      }
    }
    return seen != null
        && seen.isSameFile(there)
        && seen.attributes().size() == there.attributes().size()
        && isTimeSet(there.attributes().modificationTime(), number);
  }

  public List<Change.Content> contents(long number) {
    List<Change.Content> contents = new ArrayList<>();
    for (Change change : Iterables.concat(state.deferred().of(number), window)) {
      if (change instanceof Change.Content content && content.inode() == number) {
        contents.add(content);
      }
    }
    return contents;
  }

  /**
   * Whether an earlier attempt produced the wanted file; another program may have produced one that
   * looks alike.
   */
  public boolean isMade(Stat there, @Nullable Stat seen, Change.Content change) throws FsException {
    boolean isVersion = isVersion(there, change) || isVersionWithOtherTimes(there, change);
    Intent intent = isVersion ? Intent.of(state, change) : null;
    boolean isInPlace =
        intent != null
            && intent.mark() != Intent.Mark.NOTHING
            && seen != null
            && seen.isSameFile(there);
    return intent != null && (isInPlace || intent.isOf(there));
  }

  /**
   * Like {@link #isVersion}, with the times that the content had before it was merged with a later
   * change, or those of a change that an earlier attempt made together with it.
   */
  private boolean isVersionWithOtherTimes(Stat there, Change.Content change) {
    Attributes found = there.attributes();
    return found.type() == change.attributes().type()
        && found.size() == change.size()
        && (isTimeSet(found.modificationTime(), change.inode())
            || contents(change.inode()).stream()
                .anyMatch(
                    content ->
                        content.sequence() == change.sequence() && isVersion(there, content)));
  }

  /** Whether an unrecorded change of a node sets this time. */
  private boolean isTimeSet(Instant time, long number) {
    for (Change change : Iterables.concat(state.deferred().of(number), window)) {
      if (change instanceof Change.SetAttributes set
          && set.inode() == number
          && set.setsTimes()
          && isKept(time, set.attributes().modificationTime())) {
        return true;
      }
    }
    return false;
  }

  private boolean isPart(Stat there, @Nullable Stat seen, Change.Content change)
      throws FsException {
    long size = there.attributes().size();
    return seen != null
        && seen.isSameFile(there)
        && (Temporaries.isOverwriting(state, change)
            || (Temporaries.isAppending(state, change)
                && size >= seen.attributes().size()
                && size <= change.attributes().size()));
  }

  /**
   * Whether an earlier attempt may have truncated a file to overwrite it in place. Several contents
   * may have been merged since, under the number of the last.
   */
  public boolean isOverwriting(long number) throws FsException {
    for (Change.Content content : contents(number)) {
      if (Temporaries.isOverwriting(state, content)) {
        return true;
      }
    }
    return false;
  }

  /** Whether a file is the result of a change, even if a power failure cut the data here since. */
  public static boolean isVersion(Stat there, Change.Content change) {
    Attributes wanted = change.attributes();
    Attributes found = there.attributes();
    return found.type() == wanted.type()
        && (found.size() == change.size() || found.size() == wanted.size())
        && isKept(found.modificationTime(), wanted.modificationTime());
  }

  /** Whether a file system may store a given time like this: some truncate it. */
  private static boolean isKept(Instant there, Instant given) {
    int nanos =
        Math.floorMod(given.getEpochSecond(), 2) * 1_000_000_000
            + given.get(ChronoField.NANO_OF_SECOND);
    return UNIT_NANOS.stream().anyMatch(unit -> there.equals(given.minusNanos(nanos % unit)));
  }

  /** Whether the source has the time that the mount shows, as its file system stores it. */
  public static boolean hasTimeOf(Stat there, Inode shown) {
    return isKept(there.attributes().modificationTime(), shown.attributes().modificationTime());
  }

  /** The node, once drained, with the source's timestamps. */
  public static Inode agreed(Inode inode, Stat there) {
    Attributes kept = there.attributes();
    return inode.with(inode.attributes().withTimes(kept.accessTime(), kept.modificationTime()));
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
      try {
        calls.mkdir(above.file(), name, inode.attributes().mode() & PERMISSIONS);
        conflicts.add(path(parent, name), "vanished from the source; created again", false);
      } catch (FsException e) {
        if (e.errno() != Errno.EEXIST) {
          throw e;
        }
      }
      Stat stat = above.status(name);
      if (stat.attributes().type() != FileType.DIRECTORY) {
        throw why;
      }
      try (State.Held held = state.hold()) {
        State.Update update = state.update();
        Inode now = update.inode(number).withHome(parent, name);
        update.put(Homes.seen(update, now, stat));
        update.commit();
      }
      tree.forget(number);
      tree.forget(parent);
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
    return isSame || isOwnVersion(before, inode.number()) ? now : now.withContentOf(seen);
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
      return now != null && (isKnown || isOwnVersion(now, inode.number()))
          ? seen(inode.number(), now)
          : Recording.NOTHING;
    }
  }

  /** Call before a change modifies the names in a directory of the source. */
  public void disturb(Change change, long directory) {
    tree.disturbed().add(change.sequence(), directory);
  }

  /**
   * Gives directories of the source the times that the mount shows: all directories in which these
   * changes create, omit or remove a name, or had a temporary file. Directories that later changes
   * modify are left to those.
   */
  public Recording touched(List<Change> done, Set<Long> sequences) throws FsException {
    Set<Long> directories = tree.disturbed().of(sequences);
    if (!directories.isEmpty()) {
      tree.beginMove(); // Readers see the directories before or after, not in between.
    }
    for (Change change : done) {
      change.names().forEach(name -> directories.add(name.directory()));
      if (change instanceof Change.SetAttributes || change instanceof Change.SetExtended) {
        directories.add(change.inode());
      }
    }
    long position = Math.max(state.committed(), done.get(done.size() - 1).sequence());
    boolean isAlone = done.size() == 1 && done.get(0) instanceof Change.SetAttributes;
    Recording recording = Recording.NOTHING;
    for (long number : directories) {
      Inode inode = state.find(number);
      boolean isDue =
          inode != null
              && inode.isDirectory()
              && !inode.isRemoved()
              && inode.change() <= position
              && !tree.disturbed().isByOthers(number, sequences);
      if (isDue) {
        recording = recording.and(isAlone ? touched(number) : touchedNowOrLater(number));
      }
    }
    return recording;
  }

  private Recording touchedNowOrLater(long number) throws FsException {
    try {
      return touched(number);
    } catch (FsException e) {
      if (e.errno() == Errno.EINTR) {
        throw e;
      }
      log.debug("the times of directory {} are set later: {}", number, e.getMessage());
      return toBeTouched(number);
    }
  }

  /** Adds a change that sets the times of a directory, because they could not be set now. */
  private Recording toBeTouched(long number) {
    return update -> {
      Inode inode = update.find(number);
      if (inode != null && !inode.isRemoved()) {
        long sequence = update.nextSequence();
        update.journal(
            new Change.SetAttributes(
                new Change.Head(sequence, number, 0, 0, state.millis()),
                inode.attributes(),
                Change.SetAttributes.TOUCH));
        update.put(inode.withChange(sequence));
      }
    };
  }

  /** Gives a directory the times that the mount shows. */
  private Recording touched(long number) throws FsException {
    try (SourceTree.Directory directory = openIfThere(number)) {
      Inode inode = state.find(number);
      if (directory == null || inode == null) {
        return Recording.NOTHING;
      }
      Stat there = directory.status(Inode.NO_NAME);
      Stat seen = inode.seen();
      if (seen == null || !seen.isSameFile(there)) {
        return Recording.NOTHING; // Another program's directory, or one that was just moved.
      }
      Instant wanted = inode.attributes().modificationTime();
      if (!wanted.equals(there.attributes().modificationTime())) {
        setTimes(directory, Inode.NO_NAME, inode.attributes());
        there = directory.status(Inode.NO_NAME);
      }
      return touched(number, there);
    }
  }

  private static Recording touched(long number, Stat there) {
    return update -> {
      Inode now = update.find(number);
      if (now != null) {
        Inode next = hasTimeOf(there, now) ? agreed(now, there) : now;
        update.put(Homes.seen(update, next, there));
      }
    };
  }

  /** Gives a moved directory the times that the mount shows. */
  public void touchMoved(SourceTree.Directory directory, FileName name, long number)
      throws FsException {
    Inode inode = state.find(number);
    if (inode != null && inode.isDirectory()) {
      setTimes(directory, name, inode.attributes());
    }
  }

  /**
   * Marks the directories in which a change may have had temporary files: those of its names and
   * their ancestors.
   */
  public void leave(Change change) throws FsException {
    for (At name : change.names()) {
      long at = name.directory();
      while (at != 0 && tree.disturbed().leaveDirectory(at)) {
        Inode inode = at == WritableFileSystem.ROOT ? null : state.find(at);
        at = inode == null ? 0 : inode.parent();
      }
    }
  }

  /** Restores the times that no later change will. */
  public void touchLeft() throws FsException {
    for (long number : tree.disturbed().left()) {
      Inode inode = state.find(number);
      if (inode != null && !inode.isRemoved() && inode.change() <= state.committed()) {
        tree.beginMove();
        recordNow(touchedNowOrLater(number));
      }
      tree.disturbed().removeLeft(number);
    }
  }

  /** The path of a name below the mount point, as far as it is known. */
  public String path(long directory, FileName name) throws FsException {
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
    return path.toString();
  }

  /** Sets a directory's times, if its owner and file system allow that. */
  private void setTimes(SourceTree.Directory directory, FileName name, Attributes wanted)
      throws FsException {
    try {
      calls.setTimes(directory.file(), name, wanted.accessTime(), wanted.modificationTime());
    } catch (FsException e) {
      switch (e.errno()) {
        case EPERM, EACCES, EBADF, EINVAL, EOPNOTSUPP, EROFS, ENOENT -> {}
        default -> throw e;
      }
    }
  }

  public Recording conflict(Change change, String reason) throws FsException {
    return conflict(change, path(change), reason);
  }

  /** Records a conflict at another path than the change's. */
  public Recording conflict(Change change, String path, String reason) {
    return reported(change, path, reason, false);
  }

  /** Records that the source can never make a change. */
  public Recording givenUp(Change change, String reason) throws FsException {
    Recording recording = reported(change, path(change), "given up: " + reason, true);
    Inode inode = state.find(change.inode());
    if (inode == null || !(change instanceof Change.SetAttributes set)) {
      return recording;
    }
    Stat there = tree.statusAtHome(inode);
    return recording.and(takenBack(set, after(inode, there, there, false)));
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
    return reported(change, path, reason, true);
  }

  private Recording reported(Change change, String path, String reason, boolean isGivenUp) {
    byte[] row =
        new Encoder()
            .name(FileName.of(path))
            .name(FileName.of(reason))
            .number(isGivenUp ? 1 : 0)
            .toBytes();
    return update -> {
      // By path, too: a change may concern several names of a file.
      update.put(Tables.CONFLICTS, Tables.key(change.sequence(), FileName.of(path)), row);
      update.afterwards(() -> conflicts.add(path, reason, isGivenUp));
    };
  }

  public String path(Change change) throws FsException {
    List<At> names = change.names();
    if (!names.isEmpty()) {
      At last = names.get(names.size() - 1);
      return path(last.directory(), last.name());
    }
    Inode inode = state.find(change.inode());
    return inode == null ? "inode " + change.inode() : path(inode.parent(), inode.name());
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
