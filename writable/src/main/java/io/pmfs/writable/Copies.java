package io.pmfs.writable;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.DaemonThread;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
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
final class Copies implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Copies.class);

  private static final int TEMPORARY_MODE = 0600;
  private static final int PERMISSIONS = 07777;

  /** What a node copies in one request. */
  private static final int RANGE_BYTES = 16 << 20;

  private static final int SET_GROUP_ID = 02000;

  /** What is done to a file at the source itself, and not to a temporary one. */
  private static final long OVERWRITES = 1;

  private static final long APPENDS = 2;

  private final State state;
  private final SourceTree tree;
  private final LocalFiles local;
  private final OutputCalls calls;
  private final Pace pace;
  private final String mount;
  private final @Nullable ExecutorService threads;
  private final Map<Long, Future<Copy>> ahead = new ConcurrentHashMap<>();

  /** Sequence numbers of changes whose temporary file may be there. */
  private final Set<Long> present = ConcurrentHashMap.newKeySet();

  private boolean isBegun; // Used by the committer only.

  /**
   * A complete copy under a temporary name.
   *
   * @param directory the number of the directory that has it
   * @param attributes that it was given
   */
  record Copy(long directory, FileName name, Attributes attributes) {}

  Copies(
      State state,
      SourceTree tree,
      LocalFiles local,
      OutputCalls calls,
      Pace pace,
      String mount,
      int threadCount) {
    this.state = state;
    this.tree = tree;
    this.local = local;
    this.calls = calls;
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

  int aheadCount() {
    return ahead.size();
  }

  boolean isAhead(long sequence) {
    return ahead.containsKey(sequence);
  }

  /** Begins to copy contents before their turn, which is recorded for all of them together. */
  void begin(List<Change.Content> changes) throws FsException {
    ExecutorService workers = threads;
    if (workers == null) {
      return;
    }
    Map<Change.Content, Long> untried = new LinkedHashMap<>();
    for (Change.Content change : changes) {
      if (isIntended(change)) {
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
  Copy take(Change.Content change) throws FsException {
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
  void discard(Change.Content change) throws FsException {
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
    removeTemporary(change);
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
      try (OutputCalls.Acting acting = calls.actAs(change.uid(), change.gid())) {
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
        try (OutputCalls.Acting acting = calls.actAs(change.uid(), change.gid())) {
          if (!isWriters) {
            acting.close();
          }
          // Not by its name: others may change the directory.
          attributes(tree.opened(file), Inode.NO_NAME, change, acting);
        }
        calls.sync(file, false);
      } finally {
        calls.close(file);
      }
      return new Copy(where, name, change.attributes());
    }
  }

  /** Gives a file at the source the temporary name of a change too. */
  Copy link(Change.Content change, At home) throws FsException {
    removeTemporary(change);
    record(Map.of(change, home.directory()));
    FileName name = name(change.sequence());
    try (SourceTree.Directory directory = tree.open(home.directory())) {
      asWriter(change, () -> calls.link(directory.file(), home.name(), directory.file(), name));
      return new Copy(home.directory(), name, change.attributes());
    }
  }

  /** A call at the source. */
  interface Call {
    void make() throws FsException;
  }

  /** Makes a call as the writer, who may change a file, but perhaps not its directory. */
  void asWriter(Change.Content change, Call call) throws FsException {
    try (OutputCalls.Acting acting = calls.actAs(change.uid(), change.gid())) {
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

  void giveAway(SourceTree.Directory directory, FileName name, Attributes wanted)
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
  void setMode(
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
  void setAttributes(
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
  long transfer(Change.Content change, int to, long from) throws FsException {
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
      requireAll(change, remote.copyTo(calls, to, from, change.size(), pace::take));
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
  long transferOver(Change.Content change, int to) throws FsException {
    return transfer(
        change, to, 0, (file, end) -> DataCopy.copyOver(calls, file, to, end, pace::take));
  }

  // ---- what is about to be done

  /** A former attempt may have got anywhere. */
  boolean isIntended(Change.Content change) throws FsException {
    return state.get(Tables.INTENTS, Tables.key(change.sequence())) != null;
  }

  /** A former attempt may have written some of an append. */
  static boolean isAppending(State state, Change.Content change) throws FsException {
    return mark(state, change) == APPENDS;
  }

  void intendAppend(Change.Content change, long directory) throws FsException {
    if (!isAppending(state, change)) {
      mark(change, directory, APPENDS);
    }
  }

  /** A former attempt may have emptied a file that was to be written in its place. */
  static boolean isOverwriting(State state, Change.Content change) throws FsException {
    return mark(state, change) == OVERWRITES;
  }

  void intendOverwrite(Change.Content change, long directory) throws FsException {
    mark(change, directory, OVERWRITES);
  }

  /** What is done to the file itself; 0 if nothing. */
  private static long mark(State state, Change.Content change) throws FsException {
    byte[] intent = state.get(Tables.INTENTS, Tables.key(change.sequence()));
    return intent != null && intent.length > Long.BYTES ? Tables.second(intent) : 0;
  }

  private void mark(Change.Content change, long directory, long mark) throws FsException {
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      update.put(Tables.INTENTS, Tables.key(change.sequence()), Tables.key(directory, mark));
      update.commit();
    }
    state.sync();
  }

  // ---- temporary files

  /**
   * Remembers in which directories temporary files will be, so that none is left behind: not even
   * if the machine dies.
   */
  private void record(Map<Change.Content, Long> directories) throws FsException {
    if (directories.isEmpty()) {
      return;
    }
    directories.keySet().forEach(change -> present.add(change.sequence()));
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      for (Map.Entry<Change.Content, Long> entry : directories.entrySet()) {
        Change.Content change = entry.getKey();
        long mark = mark(state, change);
        byte[] intent =
            mark == 0 ? Tables.key(entry.getValue()) : Tables.key(entry.getValue(), mark);
        update.put(Tables.INTENTS, Tables.key(change.sequence()), intent);
      }
      update.commit();
    }
    state.sync();
  }

  /** Finds what former processes left, and removes what belongs to changes that the source has. */
  void begin(long committed) throws FsException {
    if (isBegun) {
      return;
    }
    Map<Long, Long> former = new LinkedHashMap<>();
    state.scan(
        Tables.INTENTS,
        new byte[0],
        (key, value) -> {
          former.put(Tables.first(key), Tables.first(value));
          return true;
        });
    present.addAll(former.keySet());
    for (Map.Entry<Long, Long> left : former.entrySet()) {
      if (left.getKey() <= committed) {
        remove(left.getValue(), left.getKey());
        try (State.Held held = state.hold()) {
          State.Update update = state.update();
          update.delete(Tables.INTENTS, Tables.key(left.getKey()));
          update.commit();
        }
      }
    }
    isBegun = true;
  }

  /** Removes what is left of changes that are made, before they are forgotten. */
  void settle(List<Change> done) throws FsException {
    for (Change change : done) {
      removeTemporary(change);
    }
  }

  /** Removes what a former attempt at a change left. */
  void removeTemporary(Change change) throws FsException {
    byte[] intent =
        present.contains(change.sequence())
            ? state.get(Tables.INTENTS, Tables.key(change.sequence()))
            : null;
    if (intent != null) {
      remove(Tables.first(intent), change.sequence());
    }
  }

  /** A copy has its name now. */
  void used(Change.Content change) {
    present.remove(change.sequence());
  }

  private void remove(long where, long sequence) throws FsException {
    try (SourceTree.Directory directory = tree.open(where)) {
      calls.unlink(directory.file(), name(sequence));
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
    }
    present.remove(sequence);
  }

  /**
   * Removes temporary files from a directory that is to go.
   *
   * @return false if it has other names
   */
  boolean clear(long number) throws FsException {
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
        calls.unlink(inside.file(), name);
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
