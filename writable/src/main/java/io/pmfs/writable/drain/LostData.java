package io.pmfs.writable.drain;

import io.pmfs.metadata.Attributes;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.data.OutputFiles;
import io.pmfs.writable.data.Room;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.ChangeRow;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.places.DataPlace;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.steps.Step;
import io.pmfs.writable.steps.Temporaries;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Contents lost in a power failure or to another program: their data file is gone or shorter than
 * the journal says. The first bytes that remain become the content, on the mount and at the source.
 * If nothing remains that the previous content lacks, the previous content is kept. Used by one
 * thread.
 */
@SuppressWarnings("try")
public final class LostData {
  private static final Logger log = LoggerFactory.getLogger(LostData.class);

  private static final int SECTOR = 512;

  /** A place makes the directory for the data files of this inode before it takes any file. */
  private static final long FIRST = 0;

  private static final String UNSYNCED = "because it was not synced when the machine stopped";

  private final State state;
  private final DataPlaces places;
  private final OutputFiles files;
  private final Step step;

  /** Whether files that are being written were last written before the machine was restarted. */
  private boolean isUnused;

  /** Data files that could not be checked since the machine was started. */
  private final Set<Data> unseen = new HashSet<>();

  public LostData(State state, DataPlaces places, OutputFiles files, Step step) {
    this.state = state;
    this.places = places;
    this.files = files;
    this.step = step;
  }

  private record Data(long number, long generation, DataRow row) {
    boolean isOf(Change.Content change) {
      return number == change.inode() && generation == change.generation();
    }
  }

  /**
   * What a file contains after some of its changes.
   *
   * @param generation of the data file that has it, or had it before it was drained
   * @param size how many bytes of that data file it includes; -1 if it does not come from a data
   *     file
   * @param seen the source's file if the content is read from there
   */
  private record Content(long generation, long size, Instant modified, @Nullable Stat seen) {
    Content at(Instant time) {
      return new Content(generation, size, time, seen);
    }

    /** Whether it includes this many first bytes of a data file. */
    boolean covers(long other, long left) {
      return left == 0 || (generation == other && left <= size);
    }
  }

  // ---- the start of a mount

  /** Fails unless all places are there: a disk that is not mounted has lost nothing. */
  public void checkPlaces() throws FsException {
    Map<Integer, Long> inodes = new HashMap<>();
    for (Data data : all()) {
      if (data.row().waiting() > 0 && named(data.number()) != null) {
        inodes.putIfAbsent(data.row().place(), data.number());
      }
    }
    for (long number : written()) {
      Inode inode = named(number);
      DataRow row = inode == null ? null : state.data(number, inode.generation());
      if (row != null) {
        inodes.putIfAbsent(row.place(), FIRST); // It may have no data file yet.
      }
    }
    for (Map.Entry<Integer, Long> inode : inodes.entrySet()) {
      places.get(inode.getKey()).checkThere(inode.getValue());
    }
  }

  /** A file that has a name: the content of others is of no use any more. */
  private @Nullable Inode named(long number) throws FsException {
    Inode inode = state.find(number);
    return inode == null || inode.isRemoved() ? null : inode;
  }

  /** The files that were being written. */
  private List<Long> written() throws FsException {
    List<Long> numbers = new ArrayList<>();
    state.scan(
        Tables.WRITING,
        new byte[0],
        (key, value) -> {
          numbers.add(Tables.first(key));
          return true;
        });
    return numbers;
  }

  private List<Data> all() throws FsException {
    List<Data> all = new ArrayList<>();
    state.scan(
        Tables.DATA,
        new byte[0],
        (key, value) -> {
          all.add(new Data(Tables.first(key), Tables.second(key), DataRow.decode(value)));
          return true;
        });
    return all;
  }

  /**
   * Checks all data files after a restart of the machine, while nothing else uses the mount. One
   * that cannot be checked now is checked when it is needed.
   *
   * @param isFirst whether no program has used the mount since
   */
  public void mendAll(boolean isFirst) throws FsException {
    isUnused = isFirst;
    Map<Long, Long> sizes = new HashMap<>();
    Set<Long> torn = new TreeSet<>();
    for (Data data : all()) {
      if (places.get(data.row().place()).isOfNode()) {
        continue; // Another machine, which was not restarted.
      }
      try {
        long size = size(data.row(), data.number(), data.generation());
        sizes.put(data.generation(), size);
        Inode inode = state.find(data.number());
        if (inode != null && inode.generation() == data.generation() && size < promised(inode)) {
          torn.add(data.number());
        }
      } catch (FsException e) {
        unseen.add(data);
        log.info("a data file cannot be looked at: {}", e.getMessage());
      }
    }
    state.scan(
        Tables.JOURNAL,
        new byte[0],
        (key, value) -> {
          Change change = ChangeRow.decode(Tables.first(key), value);
          if (change instanceof Change.Content content && left(content, sizes) < content.size()) {
            torn.add(change.inode());
          }
          return true;
        });
    Map<Long, List<Change>> changes = changes(torn);
    for (long number : torn) {
      mend(number, changes.getOrDefault(number, List.of()), sizes, false);
    }
    if (!torn.isEmpty()) {
      state.sync();
    }
  }

  /** The announced size of a file's present data file, or the least if it is being written. */
  private long promised(Inode inode) throws FsException {
    if (!inode.is(Inode.WRITING)) {
      return inode.attributes().size();
    }
    boolean isWaiting = state.isPending(inode.contentChange());
    long announced = Math.max(inode.drainedSize(), isWaiting ? inode.announcedSize() : 0);
    return Math.max(announced, leastSize(inode));
  }

  private long leastSize(Inode inode) throws FsException {
    DataRow row = state.data(inode.number(), inode.generation());
    DataPlace place = row == null ? null : places.get(row.place());
    if (place != null && place.isOfNode()) {
      return place.leastSize(inode);
    }
    return isUnused ? state.leastSize(inode.number()) : 0;
  }

  /** How many of a change's announced bytes are left. */
  private static long left(Change.Content change, Map<Long, Long> sizes) {
    return !change.isLost() && change.generation() != 0
        ? Math.min(change.size(), sizes.getOrDefault(change.generation(), change.size()))
        : change.size();
  }

  private Map<Long, List<Change>> changes(Set<Long> numbers) throws FsException {
    Map<Long, List<Change>> found = new TreeMap<>();
    if (!numbers.isEmpty()) {
      state.scan(
          Tables.JOURNAL,
          new byte[0],
          (key, value) -> {
            Change change = ChangeRow.decode(Tables.first(key), value);
            if (numbers.contains(change.inode())) {
              found.computeIfAbsent(change.inode(), one -> new ArrayList<>()).add(change);
            }
            return true;
          });
    }
    return found;
  }

  // ---- one file

  /**
   * Checks the data files of a file that a step at the source failed to read.
   *
   * @return whether something was lost: then the step must be chosen anew
   */
  public boolean mend(long number) throws FsException {
    Map<Long, Long> sizes = new HashMap<>();
    List<Change> changes = changes(Set.of(number)).getOrDefault(number, List.of());
    boolean isTorn = false;
    for (Change change : changes) {
      if (change instanceof Change.Content content) {
        long generation = content.generation();
        DataRow row = state.data(number, generation);
        if (row != null && !sizes.containsKey(generation)) {
          sizes.put(generation, size(row, number, generation));
        }
        isTorn |= left(content, sizes) < content.size();
      }
    }
    if (!isTorn) {
      return false;
    }
    try (OutputFiles.Locked locked = files.tryLock(number)) {
      if (locked != null) {
        mend(number, changes, sizes, true);
      }
      return locked != null; // The lock's holder may be waiting for the committer.
    }
  }

  /**
   * Shows the source's content of a closed file again, if the node that wrote it has less of it.
   * May be called by any thread.
   *
   * @return whether it was so
   */
  boolean giveUpWritten(long number) throws FsException {
    try (OutputFiles.Locked locked = files.tryLock(number)) {
      Inode inode = state.find(number);
      if (locked == null || inode == null || locked.file().hasWriter()) {
        return false;
      }
      DataRow row = state.data(number, inode.generation());
      if (row == null || !inode.is(Inode.WRITING) || state.isPending(inode.contentChange())) {
        return false;
      }
      DataPlace place = places.get(row.place());
      return place.isOfNode()
          && size(row, number, inode.generation()) < promised(inode)
          && giveUpWritten(inode, place);
    }
  }

  private boolean giveUpWritten(Inode then, DataPlace place) throws FsException {
    try (State.Held held = state.hold()) {
      Inode inode = state.inode(then.number());
      Content content = atSource(inode);
      if (content == null || inode.generation() != then.generation()) {
        return false;
      }
      State.Update update = state.update();
      show(update, inode, content);
      reportGivenUp(update, inode, "because " + place.name() + " no longer has it");
      update.commit();
      return true;
    }
  }

  /** Reports the loss of what was being written. */
  private void reportGivenUp(State.Update update, Inode inode, String cause) throws FsException {
    if (!inode.isRemoved()) {
      String path = step.path(inode.parent(), inode.name());
      String reason = "lost, " + cause + ": the previous content is kept";
      step.lost(inode.contentChange(), path, reason).record(update);
    }
  }

  private long size(DataRow row, long number, long generation) throws FsException {
    return places.get(row.place()).size(new NodeData.Id(number, generation));
  }

  private void mend(long number, List<Change> changes, Map<Long, Long> sizes, boolean isInUse)
      throws FsException {
    try (State.Held held = state.hold()) {
      Inode inode = state.find(number);
      if (inode == null) {
        return;
      }
      State.Update update = state.update();
      Content content = atSource(inode);
      boolean isReported = false;
      for (Change change : changes) {
        if (change instanceof Change.Content announced && !announced.isLost()) {
          Change.Content kept = mended(announced, left(announced, sizes), content);
          if (!kept.equals(announced)) {
            update.replace(announced, kept);
            isReported |= report(update, inode, announced, kept, isInUse);
          }
          if (!kept.isLost()) {
            Instant modified = kept.attributes().modificationTime();
            content = new Content(kept.generation(), kept.size(), modified, null);
          }
        } else if (content != null
            && change instanceof Change.SetAttributes set
            && set.setsTimes()) {
          content = content.at(set.attributes().modificationTime());
        }
      }
      long size = sizes.getOrDefault(inode.generation(), Long.MAX_VALUE);
      if (content != null && size < promised(inode) && !(isInUse && inode.is(Inode.WRITING))) {
        show(update, inode, content);
        if (inode.is(Inode.WRITING) && !isReported) {
          reportGivenUp(update, inode, UNSYNCED);
        }
      }
      update.commit();
    }
  }

  private static @Nullable Content atSource(Inode inode) {
    Stat seen = inode.seen();
    return seen == null || !inode.hasHome()
        ? null
        : new Content(
            inode.generation(), inode.drainedSize(), seen.attributes().modificationTime(), seen);
  }

  /** The change reduced to what is left of it. */
  private Change.Content mended(Change.Content change, long left, @Nullable Content before)
      throws FsException {
    if (left == change.size()) {
      return change;
    }
    boolean isCovered = before != null && before.covers(change.generation(), left);
    return isCovered && !Temporaries.isOverwriting(state, change)
        ? change.lost()
        : change.withSize(left);
  }

  /** Reports the loss; of several lost contents, only the last is. Returns whether it was. */
  private boolean report(
      State.Update update, Inode inode, Change.Content change, Change.Content kept, boolean isInUse)
      throws FsException {
    boolean isLast = change.sequence() == inode.contentChange() && !inode.isRemoved();
    if (isLast) {
      String left =
          kept.isLost()
              ? "the previous content is kept"
              : "%,d of %,d bytes are left".formatted(kept.size(), change.size());
      step.lost(
              change,
              step.path(inode.parent(), inode.name()),
              "lost, " + cause(change, isInUse) + ": " + left)
          .record(update);
    }
    return isLast;
  }

  /** A restart of the machine is the cause only if the data file was not checked since. */
  private String cause(Change.Content change, boolean isInUse) throws FsException {
    DataRow row = state.data(change.inode(), change.generation());
    DataPlace place = row == null ? null : places.get(row.place());
    if (place != null && place.isOfNode()) {
      return "because " + place.name() + " no longer has it";
    }
    return !isInUse || unseen.stream().anyMatch(data -> data.isOf(change))
        ? UNSYNCED
        : "because another program removed or cut its data file";
  }

  /** Makes the mount show an earlier content again. */
  private void show(State.Update update, Inode inode, Content content) throws FsException {
    Attributes a = inode.attributes();
    Stat seen = content.seen();
    Inode next =
        (seen == null
                ? inode
                    .withData(
                        content.generation(),
                        content.size(),
                        content.generation() == inode.generation() ? inode.drainedSize() : -1)
                    .withSize(content.size(), (content.size() + SECTOR - 1) / SECTOR)
                : inode
                    .withData(0, 0, -1)
                    .withSize(seen.attributes().size(), seen.attributes().blocks()))
            .withTimes(content.modified(), a.changeTime())
            .withFlag(Inode.WRITING, false);
    update.put(next);
    update.delete(Tables.WRITING, Tables.key(inode.number()));
    DataRow row = state.data(inode.number(), inode.generation());
    if (row != null && row.waiting() == 0 && next.generation() != inode.generation()) {
      Room.discard(update, inode.number(), inode.generation(), row.place());
    }
  }
}
