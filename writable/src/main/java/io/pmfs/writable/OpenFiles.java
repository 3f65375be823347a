package io.pmfs.writable;

import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Open files: their handles, reads and writes. A handle carries the flags with which it was opened,
 * so a handle of a former process still works. Safe for use by many threads.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
public final class OpenFiles {
  private static final Logger log = LoggerFactory.getLogger(OpenFiles.class);

  private static final int REGULAR = 0100000;
  private static final int PERMISSIONS = 07777;
  private static final int ACCESS_MODE = 3;
  private static final int FLAG_BITS = 4;
  private static final int APPENDS = 1;
  private static final int WRITES = 2;

  private static final long PAUSE_MILLIS = 20;

  /** The kernel need not look for capabilities before it passes a write. */
  private static final int ONLY_WRITES = 4;

  private final State state;
  private final Nodes nodes;
  private final Names names;
  private final LiveFiles live;
  private final Descriptors descriptors;
  private final Contents contents;
  private final Room room;
  private final FileData data;
  private final Untold untold;
  private final InstantSource clock;
  private final AtomicLong nextHandle;
  private final long firstHandle;

  private final Writers writers = new Writers();

  /** The places of the data files that other nodes keep, by the numbers of their sessions. */
  private final Map<Integer, Integer> places = new ConcurrentHashMap<>();

  /** The handles of this process, each a use of a file. */
  private final Map<Long, Handle> handles = new ConcurrentHashMap<>();

  /** An open file, and the node that opened it. */
  private record Handle(LiveFile file, int node) {}

  public OpenFiles(
      State state,
      Nodes nodes,
      Names names,
      LiveFiles live,
      Descriptors descriptors,
      Contents contents,
      Room room,
      FileData data,
      Untold untold,
      InstantSource clock) {
    this.state = state;
    this.nodes = nodes;
    this.names = names;
    this.live = live;
    this.descriptors = descriptors;
    this.contents = contents;
    this.room = room;
    this.data = data;
    this.untold = untold;
    this.clock = clock;
    // Later than those of a former process.
    this.firstHandle = clock.millis() << 16;
    this.nextHandle = new AtomicLong(firstHandle);
  }

  // ---- opening

  /**
   * Creates and opens a file.
   *
   * @param place that has its data, if a node keeps them; -1 if this one does
   */
  public Opened create(long directory, FileName name, int mode, int flags, int place, Caller caller)
      throws FsException {
    Nodes.checkName(name);
    Long before = state.result(caller.unique());
    if (before != null) {
      return opened(state.inode(before), flags, place, caller);
    }
    while (true) {
      try {
        Inode created =
            names.makeName(
                directory,
                name,
                (update, parent, found) -> {
                  Inode inode = fresh(update, parent, name, mode, place, caller);
                  names.addName(update, parent, name, inode, found.change(), false);
                  update.put(inode);
                  update.result(caller.unique(), inode.number());
                  return inode;
                });
        return openedNew(created, flags, place, caller);
      } catch (FsException e) {
        if (e.errno() != Errno.EEXIST || (flags & OutputCalls.O_EXCL) != 0) {
          throw e;
        }
      }
      Inode existing = nodes.lookup(directory, name);
      if (existing != null) {
        return open(existing.number(), flags, place, caller);
      }
    }
  }

  /** A new file that is being written from its first moment on. */
  private Inode fresh(
      State.Update update, Inode parent, FileName name, int mode, int place, Caller caller)
      throws FsException {
    Inode inode = names.fresh(update, parent, name, REGULAR | (mode & PERMISSIONS), 0, caller);
    long generation = update.newNumber();
    update.data(
        inode.number(),
        generation,
        new DataRow(isHere(place, mode) ? room.placeForNew() : place, 0));
    update.put(Tables.WRITING, Tables.key(inode.number()), new byte[0]);
    return inode.withData(generation, 0, -1).withFlag(Inode.WRITING, true);
  }

  /** Writes clear set-id bits, so a file with them is no other node's. */
  private static boolean isHere(int place, int mode) {
    return place < 0 || (mode & Contents.SET_ID) != 0;
  }

  public Opened createUnnamed(long directory, int mode, int flags, Caller caller)
      throws FsException {
    Long before = state.result(caller.unique());
    if (before != null) {
      return opened(state.inode(before), flags, -1, caller);
    }
    nodes.directory(directory);
    Inode created;
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      update.add();
      Inode parent = update.inode(directory);
      if (parent.isRemoved()) {
        // As ext4.
        throw new FsException(Errno.EPERM, "directory " + directory + " was removed");
      }
      Inode inode =
          fresh(update, parent, Inode.NO_NAME, mode, -1, caller)
              .withLinks(0, clock.instant())
              .withFlag(Inode.UNNAMED, (flags & OutputCalls.O_EXCL) == 0)
              .withPlace(0, Inode.NO_NAME);
      update.put(inode);
      update.put(Tables.NAMELESS, Tables.key(inode.number()), new byte[0]);
      update.result(caller.unique(), inode.number());
      update.commit();
      created = inode;
    }
    return openedNew(created, flags, -1, caller);
  }

  /**
   * Opens a file.
   *
   * @param place that has its data, if it is emptied and a node keeps them; -1 if this one does
   */
  public Opened open(long number, int flags, int place, Caller caller) throws FsException {
    Inode inode = nodes.refresh(nodes.find(number));
    if (inode.isDirectory()) {
      throw new FsException(Errno.EISDIR, "inode " + number);
    }
    boolean isWriter = (flags & ACCESS_MODE) != 0;
    boolean empties = (flags & OutputCalls.O_TRUNC) != 0 && state.result(caller.unique()) == null;
    if (!isWriter && !empties) {
      return opened(inode, flags, place, caller);
    }
    awaitWriter(number, caller);
    // The writer before anything is changed: another node may be at the same point.
    writers.begin(number, caller.node());
    try {
      return empties
          ? openEmptied(number, flags, place, caller)
          : opened(inode, flags, place, caller);
    } finally {
      writers.end(number, caller.node());
    }
  }

  private Opened openEmptied(long number, int flags, int place, Caller caller) throws FsException {
    LiveFile file = live.acquire(number);
    file.lock.writeLock().lock();
    try {
      data.truncate(file, 0, caller.uid() != 0, caller);
      boolean isWriter = (flags & ACCESS_MODE) != 0;
      if (isWriter && !isHere(place, state.inode(number).attributes().mode())) {
        contents.restart(file, place);
      }
      announceAtOnce(file, flags, caller);
      return opened(state.inode(number), flags, place, caller);
    } finally {
      file.lock.writeLock().unlock();
      live.release(file);
    }
  }

  /** A file that was opened only to be read may be closed without a request. */
  private void announceAtOnce(LiveFile file, int flags, Caller caller) throws FsException {
    if ((flags & ACCESS_MODE) == OutputCalls.O_RDONLY && file.writers.get() == 0) {
      contents.announce(file, caller);
    }
  }

  /** A file that this process has just made is empty: its data file need not be asked. */
  private Opened openedNew(Inode inode, int flags, int place, Caller caller) throws FsException {
    LiveFile file = live.acquire(inode.number());
    file.lock.writeLock().lock();
    try {
      contents.beginNew(file, inode);
      announceAtOnce(file, flags, caller);
      boolean isOnlyWritten = (flags & ACCESS_MODE) == OutputCalls.O_WRONLY;
      Node node = new Node(inode.number(), inode.attributes());
      return opened(node, inode, flags, isOnlyWritten, place, caller);
    } finally {
      file.lock.writeLock().unlock();
      live.release(file);
    }
  }

  private Opened opened(Inode inode, int flags, int place, Caller caller) throws FsException {
    return opened(nodes.shown(inode), inode, flags, false, place, caller);
  }

  private Opened opened(
      Node node, Inode inode, int flags, boolean isOnlyWritten, int place, Caller caller)
      throws FsException {
    int bits = (flags & OutputCalls.O_APPEND) != 0 ? APPENDS : 0;
    bits |= (flags & ACCESS_MODE) != 0 ? WRITES : 0;
    bits |= isOnlyWritten ? ONLY_WRITES : 0;
    long handle = (nextHandle.incrementAndGet() << FLAG_BITS) | bits;
    keep(inode.number(), handle, caller.node());
    checkKnown(inode.number(), handle);
    boolean isElsewhere = caller.node() != 0 && (flags & ACCESS_MODE) == OutputCalls.O_RDONLY;
    return new Opened(
        node,
        handle,
        isOnlyWritten,
        place < 0 ? 0 : generation(inode, place),
        isElsewhere ? descriptors.atSource(inode) : null);
  }

  /** The generation of the content, if a place has it; else 0. */
  private long generation(Inode inode, int place) throws FsException {
    DataRow row = inode.generation() == 0 ? null : state.data(inode.number(), inode.generation());
    return row != null && row.place() == place ? inode.generation() : 0;
  }

  /**
   * Between a lookup and an open on one node, a file may lose its last name on another, and that
   * kernel may forget it. The kernel that gets ESTALE looks the name up again.
   */
  private void checkKnown(long number, long handle) throws FsException {
    Inode now = state.find(number);
    boolean isNamed = now != null && !now.isRemoved();
    if (!isNamed && live.exclusively(number, file -> isForgotten(state.find(number)))) {
      release(number, handle);
      throw new FsException(Errno.ESTALE, "inode " + number);
    }
  }

  private static boolean isForgotten(@Nullable Inode inode) {
    return inode == null || inode.is(Inode.FORGOTTEN);
  }

  private void keep(long number, long handle, int node) throws FsException {
    boolean isWriter = (handle & WRITES) != 0;
    if (isWriter) {
      writers.begin(number, node);
    }
    LiveFile file = live.acquire(number);
    handles.put(handle, new Handle(file, node));
    if (isWriter) {
      file.writers.incrementAndGet();
    }
  }

  /**
   * What a handle says of itself.
   *
   * @param isFormer whether a former process gave it, and may have made what is asked for again
   * @param isOnlyWritten whether the kernel passes writes without looking for capabilities
   */
  public record Origin(boolean isFormer, boolean isOnlyWritten) {}

  public Origin origin(long handle) {
    return new Origin(handle >>> FLAG_BITS <= firstHandle, (handle & ONLY_WRITES) != 0);
  }

  // ---- closing

  public void flush(long number, Caller caller) throws FsException {
    announce(number, caller);
    untold.tell(number);
  }

  /** Tells the journal of what was written, if the file was. */
  public void announce(long number, Caller caller) throws FsException {
    Inode inode = state.find(number);
    if (inode != null && (inode.is(Inode.WRITING) || !inode.is(Inode.ANNOUNCED))) {
      live.exclusively(number, file -> contents.announce(file, caller));
    }
  }

  public void fsync(long number) throws FsException {
    Inode found = nodes.find(number);
    if (found.isRegular() && found.generation() != 0) {
      live.exclusively(
          number,
          file -> {
            Inode inode = descriptors.load(file, state.inode(number));
            descriptors.sync(file, inode);
            return inode;
          });
    }
    state.sync();
  }

  /** The kernel says so some time after close(2), when others may be writing again. */
  public void release(long number, long handle) throws FsException {
    Handle open = handles.remove(handle);
    LiveFile file = open == null ? null : open.file();
    try {
      if ((handle & WRITES) != 0) {
        if (open != null) {
          writers.end(number, open.node());
          open.file().writers.decrementAndGet();
        }
        announceLast(number);
      }
    } finally {
      if (file != null) {
        live.release(file);
      }
    }
  }

  /** Tells the journal of what was written, unless it is still open for writing. */
  private void announceLast(long number) throws FsException {
    Inode inode = state.find(number);
    if (inode != null && (inode.is(Inode.WRITING) || !inode.is(Inode.ANNOUNCED))) {
      live.exclusively(
          number, file -> file.writers.get() == 0 && contents.announce(file, owner(inode)));
    }
    if (inode != null && inode.generation() != 0) {
      bringLast(number);
    }
  }

  private void bringLast(long number) {
    try {
      live.exclusively(
          number,
          file -> {
            if (file.remote != null && file.writers.get() == 0) {
              contents.bring(file);
            }
            return file;
          });
    } catch (FsException e) {
      log.debug("inode {} stays where it is: {}", number, e.getMessage());
    }
  }

  /** Who a change is made as that no process asked for. */
  public static Caller owner(Inode inode) {
    return new Caller(0, inode.attributes().uid(), inode.attributes().gid(), 0);
  }

  // ---- other nodes

  /** A session of another node has begun. */
  public void join(int node, int place) {
    places.put(node, place);
  }

  /** The place of the data files that the caller's node keeps; -1 for this node. */
  public int placeOf(Caller caller) {
    return places.getOrDefault(caller.node(), -1);
  }

  private void awaitWriter(long number, Caller caller) throws FsException {
    writers.await(number, caller.node());
    long end = System.nanoTime() + Writers.CLOSING_NANOS;
    while (isKeptElsewhere(number, caller) && System.nanoTime() - end < 0) {
      sleep();
    }
    checkKeeper(number, caller);
  }

  private static void sleep() throws FsException {
    try {
      Thread.sleep(PAUSE_MILLIS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new FsException(Errno.EINTR, "waiting for a writer", e);
    }
  }

  /** A node that keeps what it writes need not have told this process that it has a file open. */
  private void checkKeeper(long number, Caller caller) throws FsException {
    if (isKeptElsewhere(number, caller)) {
      throw new FsException(Errno.EBUSY, "inode " + number + ": another node writes it");
    }
  }

  private boolean isKeptElsewhere(long number, Caller caller) throws FsException {
    Inode inode = state.find(number);
    if (inode == null || !inode.is(Inode.WRITING) || inode.generation() == 0) {
      return false;
    }
    DataRow row = state.data(number, inode.generation());
    return row != null && contents.isOfNode(row.place()) && row.place() != placeOf(caller);
  }

  /**
   * A file is changed by a handle. One that this process does not know was given by a former one,
   * or was open on a node that had been away.
   */
  public void use(long number, long handle, Caller caller) throws FsException {
    if ((handle & WRITES) == 0 || handles.containsKey(handle)) {
      writers.check(number, caller.node());
      checkKeeper(number, caller);
    } else {
      nodes.find(number);
      keep(number, handle, caller.node());
    }
  }

  /** A kernel has forgotten a node: its data go, unless another kernel has it open. */
  public void forget(long number) throws FsException {
    names.forget(number, () -> isOpen(number));
  }

  private boolean isOpen(long number) {
    return handles.values().stream().anyMatch(handle -> handle.file().number == number);
  }

  /** The handles that a node has open, and their files. */
  public Map<Long, Long> handlesOf(int node) {
    Map<Long, Long> found = new HashMap<>();
    handles.forEach(
        (handle, open) -> {
          if (open.node() == node) {
            found.put(handle, open.file().number);
          }
        });
    return found;
  }
}
