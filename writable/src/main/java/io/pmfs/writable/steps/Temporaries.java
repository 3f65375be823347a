package io.pmfs.writable.steps;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.TemporaryNames;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Intent;
import io.pmfs.writable.journal.Refusal;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.tree.SourceTree;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Unfinished copies at the source and their intents. Each intent is synced before the copy is made,
 * so that no copy is left behind and each one is recognised. Thread-safe.
 */
@SuppressWarnings("try")
public final class Temporaries {
  private static final Logger log = LoggerFactory.getLogger(Temporaries.class);

  private final State state;
  private final SourceTree tree;
  private final OutputCalls calls;
  private final String mount;

  /** Sequence numbers of changes whose temporary file may exist. */
  private final Set<Long> present = ConcurrentHashMap.newKeySet();

  /** Changes whose copy has its final name, or may have had it when an earlier process ended. */
  private final Set<Long> named = ConcurrentHashMap.newKeySet();

  /** Inode numbers of copies at the source, by sequence number. */
  private final Map<Long, Known> known = new ConcurrentHashMap<>();

  private record Known(long inode, long number) {}

  /** Changes whose copy was removed to free room, until the next one is complete. */
  private final Set<Long> givenBack = ConcurrentHashMap.newKeySet();

  /** Completed changes whose copy could not be removed. */
  private final Set<Long> left = ConcurrentHashMap.newKeySet();

  /** The temporary files of a mount, whose names include the mount's id. */
  public Temporaries(State state, SourceTree tree, String mount) {
    this.state = state;
    this.tree = tree;
    this.calls = tree.calls();
    this.mount = mount;
  }

  /** Whether this mount uses the name for temporary files. */
  private boolean isOurs(FileName name) {
    return name.toString().startsWith(TemporaryNames.PREFIX + mount + "-");
  }

  FileName name(long sequence) {
    return FileName.of(TemporaryNames.PREFIX + mount + "-" + Long.toHexString(sequence));
  }

  // ---- intents

  /** Whether an earlier attempt may have started. */
  public boolean isIntended(Change change) throws FsException {
    return Intent.of(state, change.sequence()) != null;
  }

  /** Changes that earlier attempts may have started. */
  public Set<Long> intended() throws FsException {
    Set<Long> sequences = new HashSet<>();
    state.scan(
        Tables.INTENTS,
        new byte[0],
        (key, value) -> {
          sequences.add(Tables.first(key));
          return true;
        });
    return sequences;
  }

  /** Records an intent for the next process, without syncing it. */
  void intend(Change change, long directory) throws FsException {
    put(change, new Intent(directory, Intent.Mark.NOTHING));
  }

  public void intendAppend(Change.Content change, long directory) throws FsException {
    Intent before = Intent.of(state, change);
    if (before == null || before.mark() != Intent.Mark.APPENDS || before.left() != null) {
      mark(change, directory, Intent.Mark.APPENDS);
    }
  }

  /** Whether an earlier attempt may have truncated a file to overwrite it in place. */
  public static boolean isOverwriting(State state, Change.Content change) throws FsException {
    return mark(state, change) == Intent.Mark.OVERWRITES;
  }

  public void intendOverwrite(Change.Content change, long directory) throws FsException {
    mark(change, directory, Intent.Mark.OVERWRITES);
  }

  /** Records what an attempt that failed has made of the file that is changed in place. */
  void leave(Change.Content change, Stat file) throws FsException {
    Intent intent = Intent.of(state, change);
    if (intent != null) {
      put(change, intent.withLeft(file));
    }
  }

  /** Records what a file is like that could not be opened to be changed in place. */
  void leave(Change.Content change, long directory, Stat file) throws FsException {
    put(change, new Intent(directory, mark(state, change)).withLeft(file));
  }

  private static Intent.Mark mark(State state, Change.Content change) throws FsException {
    Intent intent = Intent.of(state, change);
    return intent == null ? Intent.Mark.NOTHING : intent.mark();
  }

  private void mark(Change.Content change, long directory, Intent.Mark mark) throws FsException {
    put(change, new Intent(directory, mark));
    state.sync();
  }

  private void put(Change change, Intent intent) throws FsException {
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      update.put(Tables.INTENTS, Tables.key(change.sequence()), intent.encode());
      update.commit();
    }
  }

  /** Records and syncs the identity of copies before they get their final names. */
  public void prove(List<Copies.Copy> copies) throws FsException {
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      for (Copies.Copy copy : copies) {
        long sequence = copy.change().sequence();
        givenBack.remove(sequence);
        Intent intent = Intent.of(state, sequence);
        Stat made = copy.made();
        if (intent != null && made != null) {
          Intent proof = intent.with(made);
          update.put(Tables.INTENTS, Tables.key(sequence), proof.encode());
          know(sequence, proof, copy.change().inode());
        }
      }
      update.commit();
    }
    state.sync();
  }

  // ---- temporary files

  /**
   * Records the directories of future temporary files, so that none is left behind, even after a
   * power failure.
   */
  void record(Map<? extends Change, Long> directories) throws FsException {
    if (directories.isEmpty()) {
      return;
    }
    directories.forEach(
        (change, where) -> {
          present.add(change.sequence());
          tree.disturbed().add(change.sequence(), where);
        });
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      for (Map.Entry<? extends Change, Long> entry : directories.entrySet()) {
        Change change = entry.getKey();
        Intent before = Intent.of(state, change.sequence());
        Intent intent =
            before == null
                ? new Intent(entry.getValue(), Intent.Mark.NOTHING)
                : before.at(entry.getValue());
        update.put(Tables.INTENTS, Tables.key(change.sequence()), intent.encode());
      }
      update.commit();
    }
    state.sync();
  }

  /** Finds what earlier processes left. The source need not be reachable. */
  public void begin() throws FsException {
    Map<Long, Intent> intents = new LinkedHashMap<>();
    state.scan(
        Tables.INTENTS,
        new byte[0],
        (key, value) -> {
          intents.put(Tables.first(key), Intent.decode(value));
          return true;
        });
    for (Map.Entry<Long, Intent> entry : intents.entrySet()) {
      long sequence = entry.getKey();
      present.add(sequence);
      named.add(sequence);
      tree.disturbed().add(sequence, entry.getValue().directory());
      if (state.isPending(sequence)) {
        know(sequence, entry.getValue());
      } else {
        left.add(sequence);
      }
    }
  }

  /** Lets the mount recognise a copy under its final name. */
  private void know(long sequence, Intent intent) throws FsException {
    Change change = intent.inode() == 0 ? null : state.change(sequence);
    if (change != null) {
      know(sequence, intent, change.inode());
    }
  }

  private void know(long sequence, Intent intent, long number) {
    forgetKnown(sequence); // The copy was made again.
    known.put(sequence, new Known(intent.inode(), number));
    tree.copied(intent.inode(), intent.birth(), number);
  }

  private void forgetKnown(long sequence) {
    Known copy = known.remove(sequence);
    if (copy != null) {
      tree.recorded(copy.inode(), copy.number());
    }
  }

  /** Forgets a copy that is recorded or no longer needed. */
  public void forget(Change change) {
    present.remove(change.sequence());
    named.remove(change.sequence());
    givenBack.remove(change.sequence());
    if (!isLeft(change)) {
      tree.disturbed().remove(change.sequence());
    }
    forgetKnown(change.sequence());
  }

  /**
   * Removes the copies of completed changes before these are forgotten. For one that cannot be
   * removed now, the intent remains and removal is retried.
   */
  public void settle(List<Change> done) {
    for (Change change : done) {
      try {
        removeTemporary(change);
      } catch (FsException e) {
        log.debug("cannot remove {}: {}", name(change.sequence()), e.getMessage());
        left.add(change.sequence());
      }
    }
  }

  /** Whether the temporary file of a change could not be removed. */
  public boolean isLeft(Change change) {
    return left.contains(change.sequence());
  }

  public void tidy() throws FsException {
    for (long sequence : left.isEmpty() ? List.<Long>of() : List.copyOf(left)) {
      Intent intent = Intent.of(state, sequence);
      try {
        if (intent != null) {
          remove(intent.directory(), sequence);
          if (intent.mark() == Intent.Mark.NOTHING || !state.isPending(sequence)) {
            forgetIntent(sequence);
          }
        }
        left.remove(sequence);
        tree.disturbed().leave(sequence);
      } catch (FsException e) {
        log.debug("still cannot remove {}: {}", name(sequence), e.getMessage());
      }
    }
  }

  private void forgetIntent(long sequence) throws FsException {
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      update.delete(Tables.INTENTS, Tables.key(sequence));
      update.commit();
    }
  }

  /** Removes the result of an earlier attempt at a change. */
  public void removeTemporary(Change change) throws FsException {
    Intent intent =
        present.contains(change.sequence()) ? Intent.of(state, change.sequence()) : null;
    if (intent != null) {
      remove(intent.directory(), change.sequence());
    }
  }

  /** Records that a copy has its final name. */
  public void used(Change change) {
    present.remove(change.sequence());
    named.add(change.sequence());
  }

  /**
   * Removes the unfinished copy of a content that the source refused, because room may be short. If
   * certainly nothing of the content is at the source, the intent is removed, too.
   */
  public void undo(Change change) throws FsException {
    Intent intent = Intent.of(state, change.sequence());
    if (intent == null || intent.mark() != Intent.Mark.NOTHING) {
      return;
    }
    try {
      boolean isRemoved = remove(intent.directory(), change.sequence());
      boolean isUndone = givenBack.remove(change.sequence()) || isRemoved;
      if (isUndone && !named.contains(change.sequence())) {
        forgetIntent(change.sequence());
      }
    } catch (FsException e) {
      present.add(change.sequence());
      log.debug("cannot remove the copy of inode {}: {}", change.inode(), e.getMessage());
    }
  }

  /** Returns whether the temporary file existed. */
  private boolean remove(long where, long sequence) throws FsException {
    boolean wasThere = true;
    tree.disturbed().add(sequence, where);
    try (SourceTree.Directory directory = tree.open(where)) {
      unlink(directory, name(sequence));
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
      wasThere = false;
    }
    present.remove(sequence);
    return wasThere;
  }

  /** Removes a temporary file; without another name, its inode number may soon be reused. */
  private void unlink(SourceTree.Directory directory, FileName name) throws FsException {
    if (!known.isEmpty()) {
      Stat there = directory.status(name);
      if (there.attributes().linkCount() <= 1) {
        known.entrySet().stream()
            .filter(entry -> entry.getValue().inode() == there.inode())
            .map(Map.Entry::getKey)
            .toList()
            .forEach(this::forgetKnown);
      }
    }
    calls.unlink(directory.file(), name);
  }

  /**
   * Removes the temporary files of a directory that is about to be removed.
   *
   * @return false if it has other names
   */
  public boolean clear(long number) throws FsException {
    boolean[] isForeign = {false};
    List<FileName> temporaries = new ArrayList<>();
    try (SourceTree.Directory inside = tree.open(number)) {
      calls.list(
          inside.file(),
          (name, inode, type) -> {
            if (isOurs(name)) {
              temporaries.add(name);
            } else {
              isForeign[0] = true;
            }
          });
      if (isForeign[0]) {
        return false;
      }
      for (FileName name : temporaries) {
        unlink(inside, name);
      }
    }
    return true;
  }

  /** Removes what was written of a copy that does not fit, so that others may. */
  void giveBack(SourceTree.Directory directory, Change change, FsException why) {
    if (Refusal.isOfRoom(why.errno())) {
      FileName name = name(change.sequence());
      try {
        calls.unlink(directory.file(), name);
        givenBack.add(change.sequence());
      } catch (FsException e) {
        log.debug("cannot remove {}: {}", name, e.getMessage());
      }
    }
  }
}
