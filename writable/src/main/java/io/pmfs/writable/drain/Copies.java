package io.pmfs.writable.drain;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.DaemonThread;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.DataCopy;
import io.pmfs.writable.Extended;
import io.pmfs.writable.LocalFiles;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.RemoteFile;
import io.pmfs.writable.SourceTree;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Intent;
import io.pmfs.writable.journal.Refusal;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies of announced contents at the source, complete under temporary names, made ahead of their
 * turn. Safe for use by many threads.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
public final class Copies implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Copies.class);

  private static final int TEMPORARY_MODE = 0600;
  private static final int PERMISSIONS = 07777;

  /** What a node copies in one request. */
  private static final int RANGE_BYTES = 16 << 20;

  private static final int SET_GROUP_ID = 02000;

  private final State state;
  private final SourceTree tree;
  private final LocalFiles local;
  private final OutputCalls calls;
  private final Actors actors;
  private final Pace pace;
  private final String mount;
  private final @Nullable ExecutorService threads;
  private final Map<Long, Future<Copy>> ahead = new ConcurrentHashMap<>();

  /** Sequence numbers of changes whose temporary file may be there. */
  private final Set<Long> present = ConcurrentHashMap.newKeySet();

  /** Those whose copy has a name now, or had one when a former process ended. */
  private final Set<Long> named = ConcurrentHashMap.newKeySet();

  /** Inode numbers of copies at the source, by sequence number. */
  private final Map<Long, Known> known = new ConcurrentHashMap<>();

  private record Known(long inode, long number) {}

  /** Those of which it was removed, for the sake of room. */
  private final Set<Long> givenBack = ConcurrentHashMap.newKeySet();

  /** Those of changes that are made, which could not be removed. */
  private final Set<Long> left = ConcurrentHashMap.newKeySet();

  /**
   * A complete copy under a temporary name.
   *
   * @param directory the number of the directory that has it
   * @param attributes that it was given
   * @param made which file it is; null if it is a further name of one
   */
  public record Copy(
      Change change, long directory, FileName name, Attributes attributes, @Nullable Stat made) {}

  public Copies(
      State state,
      SourceTree tree,
      LocalFiles local,
      OutputCalls calls,
      Actors actors,
      Pace pace,
      String mount,
      int threadCount) {
    this.state = state;
    this.tree = tree;
    this.local = local;
    this.calls = calls;
    this.actors = actors;
    this.pace = pace;
    this.mount = mount;
    ThreadFactory copier = DaemonThread.numbered("pmfs-copier");
    this.threads =
        threadCount == 0
            ? null
            : Executors.newFixedThreadPool(
                threadCount,
                work ->
                    copier.newThread(
                        () -> {
                          calls.lowerPriority();
                          work.run();
                        }));
  }

  public int aheadCount() {
    return ahead.size();
  }

  public boolean isAhead(long sequence) {
    return ahead.containsKey(sequence);
  }

  /** Begins to copy contents before their turn, which is recorded for all of them together. */
  public void begin(List<Change.Content> changes) throws FsException {
    ExecutorService workers = threads;
    if (workers == null) {
      return;
    }
    Map<Change.Content, Long> untried = new LinkedHashMap<>();
    for (Change.Content change : changes) {
      Intent former = Intent.of(state, change);
      if (former != null && former.inode() != 0) {
        continue; // Its copy may have its name already: that is looked at in its turn.
      }
      if (former != null) {
        // A former attempt left something to remove.
        begin(workers, change, () -> copy(change, nearest(change)));
      } else {
        untried.put(change, nearest(change));
      }
    }
    record(untried);
    untried.forEach((change, where) -> begin(workers, change, () -> make(change, where)));
  }

  /** Without a thread the content is copied when it is its turn. */
  private void begin(ExecutorService workers, Change.Content change, Callable<Copy> copying) {
    try {
      ahead.put(change.sequence(), workers.submit(copying));
    } catch (OutOfMemoryError e) {
      log.debug("inode {} is not copied ahead: {}", change.inode(), e.toString());
    }
  }

  /** The copy of a content, made now if it was not made ahead. */
  public Copy take(Change.Content change) throws FsException {
    Future<Copy> begun = ahead.remove(change.sequence());
    if (begun == null) {
      return copy(change, nearest(change));
    }
    try {
      Copy copy = begun.get();
      if (isThere(copy.directory())) {
        return copy;
      }
      return copy(change, nearest(change));
    } catch (ExecutionException | CancellationException e) {
      // It may have had to lie where the writer may not write; now its directory is there.
      log.debug("copying inode {} ahead: {}", change.inode(), e.getMessage());
      return copy(change, nearest(change));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new FsException(Errno.EINTR, "copying inode " + change.inode(), e);
    }
  }

  /** A copy that is not needed goes, once it is complete: a running copy cannot be stopped. */
  public void discard(Change.Content change) throws FsException {
    Future<Copy> begun = ahead.remove(change.sequence());
    if (begun != null) {
      try {
        begun.get();
      } catch (ExecutionException e) {
        log.debug("copying inode {} ahead: {}", change.inode(), e.getMessage());
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new FsException(Errno.EINTR, "copying inode " + change.inode(), e);
      }
    }
    settle(List.of(change));
  }

  /** The directory where the copy will be, or the nearest above it that the source has. */
  private long nearest(Change.Content change) throws FsException {
    Inode inode = state.find(change.inode());
    At name = change.name();
    long first = name == null ? WritableFileSystem.ROOT : name.directory();
    long at = change.isFirst() || inode == null || !inode.hasHome() ? first : inode.homeParent();
    while (at != WritableFileSystem.ROOT && at != 0) {
      Inode directory = state.find(at);
      if (directory == null) {
        break;
      }
      if (directory.hasHome()) {
        return at;
      }
      at = directory.parent();
    }
    return WritableFileSystem.ROOT;
  }

  /** A directory in which a copy was made may have been removed since. */
  private boolean isThere(long directory) throws FsException {
    Inode inode = state.find(directory);
    return directory == WritableFileSystem.ROOT || (inode != null && inode.hasHome());
  }

  /** Whether a name is that of a temporary file of this mount. */
  private boolean isOurs(FileName name) {
    return name.toString().startsWith(SourceTree.TEMPORARY + mount + "-");
  }

  private FileName name(long sequence) {
    return FileName.of(SourceTree.TEMPORARY + mount + "-" + Long.toHexString(sequence));
  }

  private Copy copy(Change.Content change, long where) throws FsException {
    removeTemporary(change);
    record(Map.of(change, where));
    return make(change, where);
  }

  private Copy make(Change.Content change, long where) throws FsException {
    FileName name = name(change.sequence());
    try (SourceTree.Directory directory = tree.open(where)) {
      int flags = OutputCalls.O_RDWR | OutputCalls.O_CREAT | OutputCalls.O_EXCL;
      int file;
      boolean isWriters = true;
      // Only while it is made: the tables and the data file are not the user's.
      try (OutputCalls.Acting acting = actors.as(change)) {
        file = calls.open(directory.file(), name, flags, TEMPORARY_MODE);
      } catch (FsException e) {
        if (change.isFirst() || e.errno() != Errno.EACCES) {
          throw e;
        }
        // The writer may change the file, but not its directory.
        file = calls.open(directory.file(), name, flags, TEMPORARY_MODE);
        isWriters = false;
      }
      try {
        boolean isCopied = copyAtNode(change, file, where, name);
        calls.truncate(file, isCopied ? change.size() : transfer(change, file, 0));
        try (OutputCalls.Acting acting = actors.as(change)) {
          if (!isWriters) {
            acting.close();
          }
          // Not by its name: others may change the directory.
          attributes(tree.opened(file), Inode.NO_NAME, change, acting);
        }
        calls.sync(file, false);
        Stat made = calls.status(file, Inode.NO_NAME);
        return new Copy(change, where, name, change.attributes(), made);
      } catch (FsException e) {
        giveBack(directory, change, e);
        throw e;
      } finally {
        calls.close(file);
      }
    }
  }

  /** What was written of a copy for which there is no room goes: others may fit. */
  private void giveBack(SourceTree.Directory directory, Change change, FsException why) {
    if (Refusal.isOfRoom(why.errno())) {
      FileName name = name(change.sequence());
      try {
        calls.unlink(directory.file(), name);
        givenBack.add(change.sequence());
      } catch (FsException e) {
        log.debug("{} is left: {}", name, e.getMessage());
      }
    }
  }

  /**
   * Copies a file at the source next to where it is to be, as it cannot be renamed.
   *
   * @param there what it is
   */
  public Copy duplicate(Change.Rename change, SourceTree.Directory from, FileName name, Stat there)
      throws FsException {
    long where = change.to().directory();
    removeTemporary(change);
    record(Map.of(change, where));
    FileName temporary = name(change.sequence());
    int flags = OutputCalls.O_RDWR | OutputCalls.O_CREAT | OutputCalls.O_EXCL;
    try (SourceTree.Directory to = tree.open(where)) {
      int source = calls.open(from.file(), name, OutputCalls.O_RDONLY, 0);
      try {
        int file;
        try (OutputCalls.Acting acting = actors.as(change)) {
          file = calls.open(to.file(), temporary, flags, TEMPORARY_MODE);
        }
        try {
          long size = there.attributes().size();
          DataCopy.copy(calls, source, file, 0, size, pace::take);
          calls.truncate(file, size);
          SourceTree.Directory opened = tree.opened(file);
          for (Map.Entry<FileName, byte[]> attribute :
              calls.extendedAttributes(source, Inode.NO_NAME).entrySet()) {
            setExtended(opened, Inode.NO_NAME, attribute.getKey(), attribute.getValue());
          }
          setAttributes(opened, Inode.NO_NAME, there.attributes(), () -> {});
          calls.sync(file, false);
          Stat made = calls.status(file, Inode.NO_NAME);
          return new Copy(change, where, temporary, there.attributes(), made);
        } catch (FsException e) {
          giveBack(to, change, e);
          throw e;
        } finally {
          calls.close(file);
        }
      } finally {
        calls.close(source);
      }
    }
  }

  /** Gives a file at the source the temporary name of a change too. */
  public Copy link(Change.Content change, At home) throws FsException {
    removeTemporary(change);
    record(Map.of(change, home.directory()));
    FileName name = name(change.sequence());
    try (SourceTree.Directory directory = tree.open(home.directory())) {
      asWriter(change, () -> calls.link(directory.file(), home.name(), directory.file(), name));
      return new Copy(change, home.directory(), name, change.attributes(), null);
    }
  }

  /** A call at the source. */
  public interface Call {
    void make() throws FsException;
  }

  /** Makes a call as the writer, who may change a file, but perhaps not its directory. */
  public void asWriter(Change.Content change, Call call) throws FsException {
    try (OutputCalls.Acting acting = actors.as(change)) {
      call.make();
      return;
    } catch (FsException e) {
      if (e.errno() != Errno.EACCES && e.errno() != Errno.EPERM) {
        throw e;
      }
    }
    call.make();
  }

  /** Sets what an announced file has beside its data. */
  private void attributes(
      SourceTree.Directory directory,
      FileName name,
      Change.Content change,
      OutputCalls.Acting acting)
      throws FsException {
    FileName extended = change.extended();
    if (extended != null) {
      for (Map.Entry<FileName, byte[]> attribute : Extended.decode(extended.bytes()).entrySet()) {
        setExtended(directory, name, attribute.getKey(), attribute.getValue());
      }
    }
    setAttributes(directory, name, change.attributes(), acting);
  }

  private void setExtended(
      SourceTree.Directory directory, FileName name, FileName attribute, byte[] value)
      throws FsException {
    try {
      calls.setExtendedAttribute(directory.file(), name, attribute, value);
    } catch (FsException e) {
      switch (e.errno()) {
        case EPERM, EINVAL, EOPNOTSUPP, ENAMETOOLONG, E2BIG, ERANGE ->
            log.warn("the source cannot keep {} of {}: {}", attribute, name, e.getMessage());
        default -> throw e;
      }
    }
  }

  public void giveAway(SourceTree.Directory directory, FileName name, Attributes wanted)
      throws FsException {
    try {
      calls.chown(directory.file(), name, wanted.uid(), wanted.gid());
    } catch (FsException e) {
      if (e.errno() != Errno.EPERM && e.errno() != Errno.EINVAL) {
        throw e;
      }
      log.debug("the source keeps the owner of {}: {}", name, e.getMessage());
    }
  }

  /**
   * Sets the mode. Linux drops the set-group-ID bit, without an error, for a user who is not in the
   * group. A writer may be in more groups than its user, and the mount's kernel has allowed the
   * bit: so the daemon sets it.
   */
  public void setMode(
      SourceTree.Directory directory, FileName name, Attributes wanted, OutputCalls.Acting acting)
      throws FsException {
    int mode = wanted.mode() & PERMISSIONS;
    calls.chmod(directory.file(), name, mode);
    if ((mode & SET_GROUP_ID) != 0
        && (directory.status(name).attributes().mode() & SET_GROUP_ID) == 0) {
      acting.close();
      calls.chmod(directory.file(), name, mode);
    }
  }

  /**
   * Sets owner, rights and times, in the order in which each leaves the others as they are. What
   * the source never takes does not keep the content from it.
   */
  public void setAttributes(
      SourceTree.Directory directory, FileName name, Attributes wanted, OutputCalls.Acting acting)
      throws FsException {
    Attributes there = directory.status(name).attributes();
    if (there.uid() != wanted.uid() || there.gid() != wanted.gid()) {
      // Only root gives files away; the writer need not be.
      acting.close();
      giveAway(directory, name, wanted);
      there = directory.status(name).attributes();
    }
    if (((there.mode() ^ wanted.mode()) & PERMISSIONS) != 0) {
      setIfTaken("mode", name, acting, () -> setMode(directory, name, wanted, acting));
    }
    setIfTaken(
        "times",
        name,
        acting,
        () ->
            calls.setTimes(directory.file(), name, wanted.accessTime(), wanted.modificationTime()));
  }

  /** Makes a call as the writer, then as the daemon, and then does without it. */
  private static void setIfTaken(String what, FileName name, OutputCalls.Acting acting, Call call)
      throws FsException {
    try {
      call.make();
      return;
    } catch (FsException e) {
      if (e.errno() != Errno.EPERM && e.errno() != Errno.EACCES) {
        throw e;
      }
    }
    // Only its owner sets the times of a file that others may write.
    acting.close();
    try {
      call.make();
    } catch (FsException e) {
      if (e.errno() != Errno.EPERM) {
        throw e;
      }
      log.debug("the source keeps the {} of {}: {}", what, name, e.getMessage());
    }
  }

  /**
   * Copies the data of an announced content from an offset on; holes stay holes.
   *
   * @return where the content ends
   */
  public long transfer(Change.Content change, int to, long from) throws FsException {
    return transfer(
        change, to, from, (file, end) -> DataCopy.copy(calls, file, to, from, end, pace::take));
  }

  /**
   * Lets the node that keeps the data write them to the source itself.
   *
   * @return false if that is not possible: then the data come through this node
   */
  private boolean copyAtNode(Change.Content change, int to, long where, FileName name)
      throws FsException {
    RemoteFile remote = change.generation() == 0 ? null : remote(change);
    if (remote == null) {
      return false;
    }
    NodeData.Target target =
        new NodeData.Target(
            tree.relativePath(where),
            name,
            calls.status(to, Inode.NO_NAME).inode(),
            change.uid(),
            change.gid());
    int range = pace.atOnce(RANGE_BYTES);
    for (long at = 0; at < change.size(); at += range) {
      int count = (int) Math.min(range, change.size() - at);
      pace.take(count);
      try {
        remote.copy(target, at, at + count);
      } catch (FsException e) {
        log.debug("inode {} is copied by way of this node: {}", change.inode(), e.getMessage());
        return false;
      }
    }
    return true;
  }

  private static void requireAll(Change.Content change, long there) throws FsException {
    if (there < change.size()) {
      throw new FsException(
          Errno.EIO, "%d of %d bytes are left of the data".formatted(there, change.size()));
    }
  }

  private @Nullable RemoteFile remote(Change.Content change) throws FsException {
    DataRow row = row(change);
    return local.remote(row.place(), change.inode(), change.generation());
  }

  private DataRow row(Change.Content change) throws FsException {
    DataRow row = state.data(change.inode(), change.generation());
    if (row == null) {
      throw new FsException(Errno.EIO, "the data of inode " + change.inode() + " are gone");
    }
    return row;
  }

  /** Copies an open data file up to an end. */
  private interface Transfer {
    void copy(int file, long end) throws FsException;
  }

  private long transfer(Change.Content change, int to, long from, Transfer transfer)
      throws FsException {
    if (change.generation() == 0 || from >= change.size()) {
      return change.size();
    }
    RemoteFile remote = remote(change);
    if (remote != null) {
      DataCopy.Target target = (bytes, at) -> calls.write(to, bytes, at);
      requireAll(change, remote.copyTo(target, from, change.size(), pace::take));
      return change.size();
    }
    int file = local.openForReading(row(change).place(), change.inode(), change.generation());
    try {
      requireAll(change, calls.status(file, Inode.NO_NAME).attributes().size());
      transfer.copy(file, change.size());
      return change.size();
    } finally {
      calls.close(file);
    }
  }

  /** The same into a file with other content; its holes become zeros. Returns the end. */
  public long transferOver(Change.Content change, int to) throws FsException {
    return transfer(
        change, to, 0, (file, end) -> DataCopy.copyOver(calls, file, to, end, pace::take));
  }

  // ---- what is about to be done

  /** A former attempt may have got anywhere. */
  public boolean isIntended(Change.Content change) throws FsException {
    return Intent.of(state, change) != null;
  }

  /** A former attempt may have written some of an append. */
  public static boolean isAppending(State state, Change.Content change) throws FsException {
    return mark(state, change) == Intent.Mark.APPENDS;
  }

  public void intendAppend(Change.Content change, long directory) throws FsException {
    if (!isAppending(state, change)) {
      mark(change, directory, Intent.Mark.APPENDS);
    }
  }

  /** A former attempt may have emptied a file that was to be written in its place. */
  public static boolean isOverwriting(State state, Change.Content change) throws FsException {
    return mark(state, change) == Intent.Mark.OVERWRITES;
  }

  public void intendOverwrite(Change.Content change, long directory) throws FsException {
    mark(change, directory, Intent.Mark.OVERWRITES);
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

  /** The tables say on the disk which files copies are, before these get their names. */
  public void prove(List<Copy> copies) throws FsException {
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      for (Copy copy : copies) {
        long sequence = copy.change().sequence();
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
   * Remembers in which directories temporary files will be, so that none is left behind: not even
   * if the machine dies.
   */
  private void record(Map<? extends Change, Long> directories) throws FsException {
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

  /** Finds what former processes left. The source need not be there. */
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

  /** The mount knows a copy when it finds it under its name. */
  private void know(long sequence, Intent intent) throws FsException {
    Change change = intent.inode() == 0 ? null : state.change(sequence);
    if (change != null) {
      know(sequence, intent, change.inode());
    }
  }

  private void know(long sequence, Intent intent, long number) {
    forgetKnown(sequence); // It was made anew.
    known.put(sequence, new Known(intent.inode(), number));
    tree.copied(intent.inode(), intent.birth(), number);
  }

  private void forgetKnown(long sequence) {
    Known copy = known.remove(sequence);
    if (copy != null) {
      tree.recorded(copy.inode(), copy.number());
    }
  }

  /** The tables know the file of a change, or no longer need to. */
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
   * Removes what is left of changes that are made, before they are forgotten. What cannot be
   * removed now stays intended, and is tried again later.
   */
  public void settle(List<Change> done) {
    for (Change change : done) {
      try {
        removeTemporary(change);
      } catch (FsException e) {
        log.debug("{} is left: {}", name(change.sequence()), e.getMessage());
        left.add(change.sequence());
      }
    }
  }

  /** Whether a temporary file of a change could not be removed. */
  public boolean isLeft(Change change) {
    return left.contains(change.sequence());
  }

  /** Tries to remove what could not be removed. */
  public void tidy() throws FsException {
    for (long sequence : left.isEmpty() ? List.<Long>of() : List.copyOf(left)) {
      Intent intent = Intent.of(state, sequence);
      try {
        if (intent != null) {
          remove(intent.directory(), sequence);
          forgetIntent(sequence);
        }
        left.remove(sequence);
        tree.disturbed().leave(sequence);
      } catch (FsException e) {
        log.debug("{} is still left: {}", name(sequence), e.getMessage());
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

  /** Removes what a former attempt at a change left. */
  public void removeTemporary(Change change) throws FsException {
    Intent intent =
        present.contains(change.sequence()) ? Intent.of(state, change.sequence()) : null;
    if (intent != null) {
      remove(intent.directory(), change.sequence());
    }
  }

  /** A copy has its name now. */
  public void used(Change change) {
    present.remove(change.sequence());
    named.add(change.sequence());
  }

  /**
   * Removes the unfinished copy of a content that the source did not take: there may be no room for
   * it. If it is certain that nothing of the content came to the source, nothing is intended then.
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
      log.debug("the copy of inode {} is left: {}", change.inode(), e.getMessage());
    }
  }

  /** Returns whether the temporary file was there. */
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

  /** Removes a temporary file; if it had no other name, its number is soon that of another file. */
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
   * Removes temporary files from a directory that is to go.
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

  @Override
  public void close() {
    if (threads != null) {
      threads.shutdownNow();
    }
  }
}
