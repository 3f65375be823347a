package io.pmfs.writable.drain;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.data.OutputFiles;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Deferred;
import io.pmfs.writable.journal.Dependency;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.NameRow;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.steps.Copies;
import io.pmfs.writable.steps.Step;
import io.pmfs.writable.steps.Temporaries;
import io.pmfs.writable.tree.Extended;
import io.pmfs.writable.tree.Names;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Retries changes that the source refuses, or gives them up, on a user's request. Thread-safe. */
@SuppressWarnings("try")
public final class Refused {
  private static final long PATIENCE_MILLIS = 1000;

  private final State state;
  private final Step step;
  private final OutputFiles files;
  private final Unclosed unclosed;
  private final UnreportedFailures unreported;
  private final Committer committer;
  private final Settlement settlement;
  private final Copies copies;
  private final Temporaries temporaries;

  Refused(
      Step step,
      OutputFiles files,
      Unclosed unclosed,
      UnreportedFailures unreported,
      Committer committer,
      Settlement settlement,
      Copies copies,
      Temporaries temporaries) {
    this.state = step.state();
    this.step = step;
    this.files = files;
    this.unclosed = unclosed;
    this.unreported = unreported;
    this.committer = committer;
    this.settlement = settlement;
    this.copies = copies;
    this.temporaries = temporaries;
  }

  /** Retries the refused changes at and below a path; returns their paths. */
  public List<String> retry(FileName path) throws FsException {
    Set<Long> sequences = new HashSet<>();
    Set<String> paths = new LinkedHashSet<>();
    for (Deferred.Entry entry : at(path)) {
      sequences.add(entry.change().sequence());
      paths.add(step.path(entry.change()));
    }
    committer.retries().ask(sequences);
    state.wake();
    return List.copyOf(paths);
  }

  private List<Deferred.Entry> at(FileName path) throws FsException {
    List<Deferred.Entry> found = new ArrayList<>();
    String wanted = path.toLatin1();
    for (Deferred.Entry entry : state.deferred().all()) {
      if (entry.refusal() != null && isAt(entry.change(), wanted)) {
        found.add(entry);
      }
    }
    return found;
  }

  private boolean isAt(Change change, String wanted) throws FsException {
    List<At> names = new ArrayList<>(change.names());
    Inode inode = state.find(change.inode());
    if (inode != null) {
      names.add(new At(inode.parent(), inode.name()));
    }
    boolean isThere = wanted.isEmpty();
    for (At name : names) {
      String path = step.place(name.directory(), name.name()).toLatin1();
      isThere |= path.equals(wanted) || path.startsWith(wanted + "/");
    }
    return isThere;
  }

  /**
   * Gives up the refused changes at and below a path, and all changes that depend on them; the
   * mount then shows what the source has. Returns the paths.
   *
   * @throws FsException EBUSY while changes are being made, which may be these or depend on them,
   *     while a program uses one of the files, or if another change of one of them waits that would
   *     stay; then nothing is given up
   */
  public List<String> drop(FileName path) throws FsException {
    beginTurn();
    try {
      Map<Long, Change> dropped = new LinkedHashMap<>();
      for (Deferred.Entry entry : at(path)) {
        if (!dropped.containsKey(entry.change().sequence())) {
          dropped.putAll(withDependants(entry));
        }
      }
      Set<String> paths = new LinkedHashSet<>();
      for (Change change : dropped.values()) {
        paths.add(step.path(change));
      }
      if (!dropped.isEmpty()) {
        drop(dropped, paths);
      }
      state.wake();
      return List.copyOf(paths);
    } finally {
      committer.turn().unlock();
    }
  }

  private void beginTurn() throws FsException {
    try {
      if (!committer.turn().tryLock(PATIENCE_MILLIS, TimeUnit.MILLISECONDS)) {
        throw onTheirWay();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new FsException(Errno.EINTR, "waiting for a step at the source", e);
    }
  }

  private static FsException onTheirWay() {
    return new FsException(Errno.EBUSY, "changes are on their way to the source; try again");
  }

  private void drop(Map<Long, Change> dropped, Set<String> paths) throws FsException {
    Set<Long> nodes = new LinkedHashSet<>();
    for (Change change : dropped.values()) {
      nodes.add(change.inode());
      if (change.other() != 0) {
        nodes.add(change.other());
      }
    }
    for (long number : List.copyOf(newFiles(dropped, nodes).values())) {
      nodes.add(number);
      paths.add(step.path(number));
    }
    List<OutputFiles.Locked> all = new ArrayList<>();
    try {
      for (long number : nodes) {
        OutputFiles.Locked locked = files.tryLock(number);
        if (locked != null) {
          all.add(locked);
        }
        if (locked == null || isWritten(locked)) {
          throw inUse(number);
        }
      }
      removeCopies(dropped);
      dropLocked(dropped, nodes);
    } finally {
      all.forEach(OutputFiles.Locked::close);
    }
  }

  private FsException inUse(long number) throws FsException {
    return new FsException(Errno.EBUSY, "a program is using " + step.path(number));
  }

  /** Files that are in no change yet and would lose their names, in directories or by a change. */
  private Map<At, Long> newFiles(Map<Long, Change> dropped, Set<Long> nodes) throws FsException {
    Map<At, Long> files = new LinkedHashMap<>();
    for (Change change : dropped.values()) {
      for (At name : change.names()) {
        addNewFile(files, name, state.name(name.directory(), name.name()));
      }
    }
    for (long number : nodes) {
      Inode inode = state.find(number);
      if (inode != null && inode.isDirectory() && !inode.hasHome()) {
        state.scanGroup(
            Tables.NAMES,
            Tables.key(number),
            (key, value) -> {
              At name = new At(number, Tables.nameIn(key, 2 * Long.BYTES));
              boolean isInside = Tables.first(key) == number;
              addNewFile(files, name, isInside ? NameRow.decode(value) : null);
              return isInside;
            });
      }
    }
    return files;
  }

  private static void addNewFile(Map<At, Long> files, At name, @Nullable NameRow row) {
    if (row != null && !row.announced()) {
      files.put(name, row.inode());
    }
  }

  /**
   * Whether a program has a file open for writing, or may have. What cannot be announced after its
   * last close, as on a node that is away, would only be one more dependant.
   */
  private boolean isWritten(OutputFiles.Locked locked) throws FsException {
    long number = locked.file().number();
    Inode inode = state.find(number);
    boolean isNew = inode != null && inode.is(Inode.WRITING);
    return locked.file().hasWriter() || (isNew && !unclosed.isClosed(number));
  }

  /** Contents may have been copied ahead of a turn that they do not get any more. */
  private void removeCopies(Map<Long, Change> dropped) throws FsException {
    for (Change change : dropped.values()) {
      if (change instanceof Change.Content content) {
        copies.discard(content);
      } else {
        temporaries.settle(List.of(change));
      }
    }
  }

  private Map<Long, Change> withDependants(Deferred.Entry root) {
    Map<Long, Change> dropped = new LinkedHashMap<>();
    Set<Dependency> left = new HashSet<>(root.change().leaves());
    dropped.put(root.change().sequence(), root.change());
    for (Deferred.Entry entry : state.deferred().all()) {
      Change change = entry.change();
      boolean waits =
          change.sequence() > root.change().sequence()
              && change.needs().stream().anyMatch(left::contains);
      if (waits) {
        dropped.put(change.sequence(), change);
        left.addAll(change.leaves());
      }
    }
    return dropped;
  }

  private void dropLocked(Map<Long, Change> dropped, Set<Long> nodes) throws FsException {
    settlement.record(
        List.copyOf(dropped.values()),
        null,
        update -> {
          if (state.head() != state.committed()) {
            throw onTheirWay();
          }
          for (Map.Entry<At, Long> file : newFiles(dropped, nodes).entrySet()) {
            if (!nodes.contains(file.getValue())) {
              throw inUse(file.getValue());
            }
            update.deleteName(file.getKey().directory(), file.getKey().name());
          }
          for (Change change : dropped.values()) {
            requireNoOther(change, dropped.keySet());
            update.afterwards(() -> unreported.forget(change.inode()));
            update.afterwards(() -> step.tree().disturbed().leave(change.sequence()));
            for (At name : change.names()) {
              step.tree().forget(name.directory());
              update.afterwards(() -> step.tree().disturbed().leaveDirectory(name.directory()));
            }
          }
          for (long number : nodes) {
            Inode inode = update.find(number);
            if (inode != null) {
              files.drop(update, inode);
              reset(update, inode);
            }
          }
        });
    committer.forget(dropped.values());
  }

  /**
   * The mount cannot show a node or name as the source has it while it shows a change that stays.
   */
  private void requireNoOther(Change change, Set<Long> dropped) throws FsException {
    Deferred.Entry other = state.deferred().ofSame(change, dropped);
    if (other != null) {
      throw new FsException(
          Errno.EBUSY,
          "%s waits as well, and concerns the same file or name as %s; retry it, or drop both by a path above them"
              .formatted(step.path(other.change()), step.path(change)));
    }
  }

  /** Makes the mount show a node as the source has it, or remove it. */
  private void reset(State.Update update, Inode inode) throws FsException {
    Stat seen = inode.seen();
    Extended.remove(state, update, inode);
    update.delete(Tables.WRITING, Tables.key(inode.number()));
    Inode bare =
        inode
            .withData(0, 0, -1)
            .withFlag(Inode.WRITING, false)
            .withFlag(Inode.XATTRS, false)
            .withFlag(Inode.ANNOUNCED, true);
    if (!inode.hasHome() || seen == null) {
      if (!inode.is(Inode.FORGOTTEN)) {
        update.put(Tables.NAMELESS, Tables.key(inode.number()), new byte[0]);
      }
      update.put(bare.withLinks(0, inode.attributes().changeTime()));
      return;
    }
    update.delete(Tables.NAMELESS, Tables.key(inode.number()));
    if (inode.is(Inode.FORGOTTEN)) {
      Names.removeNode(state, update, inode);
      return;
    }
    step.tree().unmark(inode.number());
    update.put(bare.with(seen.attributes()).withPlace(inode.homeParent(), inode.homeName()));
  }
}
