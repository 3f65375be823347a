package io.pmfs.writable.drain;

import io.pmfs.posix.FsException;
import io.pmfs.writable.data.Room;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Deferred;
import io.pmfs.writable.journal.Dependency;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.NameRow;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.steps.OwnVersions;
import io.pmfs.writable.steps.Recording;
import io.pmfs.writable.steps.Temporaries;
import io.pmfs.writable.tree.Extended;
import io.pmfs.writable.tree.Names;
import io.pmfs.writable.tree.OutputTree;
import io.pmfs.writable.tree.SourceTree;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Cleans up the tables after changes that the source has, or that were given up. Used by who has
 * the committer's turn.
 */
@SuppressWarnings("try")
final class Settlement {
  private final State state;
  private final DataPlaces places;
  private final SourceTree tree;
  private final Extended extended;
  private final Temporaries temporaries;

  Settlement(State state, DataPlaces places, OutputTree tree, Temporaries temporaries) {
    this.state = state;
    this.places = places;
    this.tree = tree.source();
    this.extended = tree.extended();
    this.temporaries = temporaries;
  }

  /**
   * Records what these changes became, and removes what the tables keep for them.
   *
   * @param kept the one that must still be completed; null if there is none
   */
  void record(List<Change> all, Deferred.@Nullable Entry kept, Recording recording)
      throws FsException {
    long last = all.get(all.size() - 1).sequence();
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      recording.record(update);
      List<Change> done = kept == null ? all : keep(update, all, kept);
      Map<List<Long>, DataRow> data = new HashMap<>();
      Set<Long> made = done.stream().map(Change::sequence).collect(Collectors.toSet());
      for (Change change : done) {
        for (At name : change.names()) {
          if (kept == null || !kept.change().names().contains(name)) {
            settleName(update, name, last, made);
          }
        }
        update.done(change);
        if (!temporaries.isLeft(change)) {
          update.delete(Tables.INTENTS, Tables.key(change.sequence()));
        }
        if (change instanceof Change.Content content) {
          settleContent(update, content, data);
        }
      }
      for (Map.Entry<List<Long>, DataRow> entry : data.entrySet()) {
        settleData(update, entry.getKey().get(0), entry.getKey().get(1), entry.getValue(), last);
      }
      Predicate<Inode> left = left(last, made, kept);
      for (Change change : done) {
        settleInode(update, change, last, left);
      }
      update.committed(last);
      update.commit();
    }
  }

  /** Replaces the incomplete change by what the changes amount to together; returns the others. */
  private static List<Change> keep(State.Update update, List<Change> all, Deferred.Entry kept) {
    List<Change> others = new ArrayList<>();
    for (Change change : all) {
      if (change.sequence() != kept.change().sequence()) {
        others.add(change);
      } else if (!change.equals(kept.change()) && isWhole(kept.change())) {
        update.replace(change, kept.change());
      }
    }
    update.defer(kept.change(), kept.refusal());
    return others;
  }

  /** Whether a change may stand for all that it was merged from. */
  private static boolean isWhole(Change change) {
    return change instanceof Change.Content || change instanceof Change.Rename;
  }

  /**
   * Removes a name's row if the source has the name as the mount does: it lacks no change of it,
   * also not an earlier one than those that came to nothing.
   */
  private void settleName(State.Update update, At name, long last, Set<Long> made)
      throws FsException {
    NameRow row = state.name(name.directory(), name.name());
    boolean isMade =
        row != null
            && row.change() <= Math.max(state.committed(), last)
            && !state.deferred().concerns(name, made);
    if (row != null && row.announced() && isMade) {
      update.deleteName(name.directory(), name.name());
      if (!row.isRemoved()) {
        update.afterwards(() -> tree.named(name, row.inode()));
      }
    }
  }

  private void settleContent(
      State.Update update, Change.Content change, Map<List<Long>, DataRow> data)
      throws FsException {
    boolean isEmpty = change.generation() == 0;
    Inode inode = isEmpty ? update.find(change.inode()) : null;
    long generation = inode == null ? change.generation() : inode.generation();
    List<Long> key = List.of(change.inode(), generation);
    DataRow row = data.get(key);
    if (row == null) {
      row = state.data(change.inode(), generation);
    }
    if (row != null) {
      data.put(key, isEmpty ? row : row.withWaiting(Math.max(0, row.waiting() - 1)));
    }
  }

  private void settleData(State.Update update, long number, long generation, DataRow row, long last)
      throws FsException {
    Inode inode = update.find(number);
    if (row.waiting() > 0) {
      update.data(number, generation, row);
    } else if (inode == null || inode.generation() != generation) {
      Room.discard(update, number, generation, row.place());
    } else if (places.get(row.place()).isElsewhere() && isAtSource(inode, last)) {
      // The source is as good a place, and nearer than another node.
      update.put(inode.withData(0, 0, -1));
      Room.discard(update, number, generation, row.place());
    } else {
      update.data(number, generation, row);
      Room.clean(update, number, generation, row.place());
    }
  }

  private boolean isAtSource(Inode inode, long last) {
    long size = inode.attributes().size();
    boolean isEmpty = size == 0 && inode.contentChange() <= Math.max(state.committed(), last);
    return inode.hasHome()
        && !inode.isRemoved()
        && !inode.is(Inode.WRITING)
        && (isEmpty || inode.drainedSize() == size);
  }

  private Predicate<Inode> left(long last, Set<Long> made, Deferred.@Nullable Entry kept) {
    long position = Math.max(state.committed(), last);
    return inode ->
        (kept != null && kept.leaves().contains(new Dependency.Node(inode.number())))
            || inode.change() > position
            || inode.contentChange() > position
            || state.deferred().concerns(inode.number(), made);
  }

  private void settleInode(State.Update update, Change change, long last, Predicate<Inode> left)
      throws FsException {
    Inode inode = update.find(change.inode());
    if (inode != null) {
      if (inode.is(Inode.XATTRS) && isExtended(change)) {
        extended.committed(update, inode.number(), last);
      }
      settleTimes(update, inode.number(), change, left);
      removeForgotten(update, change.inode(), left);
    }
    if (change.other() != 0) {
      settleTimes(update, change.other(), change, left);
      removeForgotten(update, change.other(), left);
    }
  }

  /**
   * Shows the times that the source keeps, which may not be exact, once it has all changes of a
   * node. A file that was created in a directory during the step has changed its time since.
   */
  private static void settleTimes(
      State.Update update, long number, Change change, Predicate<Inode> left) throws FsException {
    Inode inode = update.find(number);
    Stat seen = inode == null ? null : inode.seen();
    if (inode == null || seen == null || !inode.hasHome() || left.test(inode)) {
      return;
    }
    boolean isQuiet = !inode.is(Inode.WRITING) && inode.is(Inode.ANNOUNCED);
    if (isQuiet
        && (!inode.isDirectory() || change.setsTimes() || OwnVersions.hasTimeOf(seen, inode))) {
      update.put(OwnVersions.agreed(inode, seen));
    }
  }

  private static boolean isExtended(Change change) {
    return change instanceof Change.SetExtended
        || (change instanceof Change.Content content && content.isFirst());
  }

  private void removeForgotten(State.Update update, long number, Predicate<Inode> left)
      throws FsException {
    Inode inode = update.find(number);
    if (inode != null && inode.isRemoved() && inode.is(Inode.FORGOTTEN) && !left.test(inode)) {
      Names.removeNode(state, update, inode);
    }
  }
}
