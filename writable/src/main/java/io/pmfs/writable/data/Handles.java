package io.pmfs.writable.data;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.tree.Nodes;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * The handles of open files, and which node writes a file. A handle carries the flags with which it
 * was opened, so a handle of a former process still works. Safe for use by many threads.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
public final class Handles {
  private static final int ACCESS_MODE = 3;
  private static final int FLAG_BITS = 4;
  private static final int APPENDS = 1;
  private static final int WRITES = 2;

  /** The kernel need not look for capabilities before it passes a write. */
  private static final int ONLY_WRITES = 4;

  private static final long PAUSE_MILLIS = 20;

  private final State state;
  private final Nodes nodes;
  private final OutputFiles files;
  private final AtomicLong nextHandle;
  private final long firstHandle;

  private final Writers writers = new Writers();

  /** The places of the data files that other nodes keep, by the numbers of their sessions. */
  private final Map<Integer, Integer> places = new ConcurrentHashMap<>();

  /** The handles of this process, each a use of a file. */
  private final Map<Long, Handle> handles = new ConcurrentHashMap<>();

  /** An open file, and the node that opened it. */
  private record Handle(OutputFile file, int node) {}

  public Handles(State state, Nodes nodes, OutputFiles files) {
    this.state = state;
    this.nodes = nodes;
    this.files = files;
    // Later than those of a former process.
    this.firstHandle = state.millis() << 16;
    this.nextHandle = new AtomicLong(firstHandle);
  }

  // ---- flags

  static boolean isWriter(int flags) {
    return (flags & ACCESS_MODE) != OutputCalls.O_RDONLY;
  }

  static boolean isOnlyWriter(int flags) {
    return (flags & ACCESS_MODE) == OutputCalls.O_WRONLY;
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

  private static boolean writes(long handle) {
    return (handle & WRITES) != 0;
  }

  // ---- opening and closing

  /**
   * Opens a file for a node.
   *
   * @param isOnlyWritten whether it was just made, and the handle cannot read
   */
  long open(long number, int flags, boolean isOnlyWritten, int node) throws FsException {
    int bits = (flags & OutputCalls.O_APPEND) != 0 ? APPENDS : 0;
    bits |= isWriter(flags) ? WRITES : 0;
    bits |= isOnlyWritten ? ONLY_WRITES : 0;
    long handle = (nextHandle.incrementAndGet() << FLAG_BITS) | bits;
    keep(number, handle, node);
    checkKnown(number, handle);
    return handle;
  }

  private void keep(long number, long handle, int node) throws FsException {
    if (writes(handle)) {
      writers.begin(number, node);
    }
    OutputFile file = files.acquire(number);
    handles.put(handle, new Handle(file, node));
    if (writes(handle)) {
      file.beginWriter();
    }
  }

  /**
   * Between a lookup and an open on one node, a file may lose its last name on another, and that
   * kernel may forget it. The kernel that gets ESTALE looks the name up again.
   */
  private void checkKnown(long number, long handle) throws FsException {
    Inode now = state.find(number);
    boolean isNamed = now != null && !now.isRemoved();
    if (!isNamed && isForgotten(number)) {
      release(number, handle).close();
      throw new FsException(Errno.ESTALE, "inode " + number);
    }
  }

  private boolean isForgotten(long number) throws FsException {
    try (OutputFiles.Locked locked = files.lock(number)) {
      Inode inode = state.find(number);
      return inode == null || inode.is(Inode.FORGOTTEN);
    }
  }

  /** A handle that is closed; the use of its file ends when this does. */
  final class Released implements AutoCloseable {
    private final @Nullable OutputFile file;
    private final boolean wasWriter;

    private Released(@Nullable OutputFile file, boolean wasWriter) {
      this.file = file;
      this.wasWriter = wasWriter;
    }

    boolean wasWriter() {
      return wasWriter;
    }

    @Override
    public void close() {
      if (file != null) {
        files.release(file);
      }
    }
  }

  /** Closes a handle, which a former process may have given. */
  Released release(long number, long handle) {
    Handle open = handles.remove(handle);
    if (open != null && writes(handle)) {
      writers.end(number, open.node());
      open.file().endWriter();
    }
    return new Released(open == null ? null : open.file(), writes(handle));
  }

  boolean isOpen(long number) {
    return handles.values().stream().anyMatch(handle -> handle.file().number() == number);
  }

  /** The handles that a node has open, and their files. */
  public Map<Long, Long> handlesOf(int node) {
    Map<Long, Long> found = new HashMap<>();
    handles.forEach(
        (handle, open) -> {
          if (open.node() == node) {
            found.put(handle, open.file().number());
          }
        });
    return found;
  }

  // ---- which node writes

  /** A session of another node has begun. */
  public void join(int node, int place) {
    places.put(node, place);
  }

  /** The place of the data files that the caller's node keeps; -1 for this node. */
  public int placeOf(Caller caller) {
    return places.getOrDefault(caller.node(), -1);
  }

  /** The time in which a node is about to open a file for writing. */
  interface Writing extends AutoCloseable {
    @Override
    void close();
  }

  /** No other node writes the file from now on, until this is closed. */
  Writing write(long number, Caller caller) throws FsException {
    awaitWriter(number, caller);
    writers.begin(number, caller.node());
    return () -> writers.end(number, caller.node());
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
    return row != null
        && row.place() != placeOf(caller)
        && files.places().get(row.place()).isOfNode();
  }

  /**
   * A file is changed by a handle. One that this process does not know was given by a former one,
   * or was open on a node that had been away.
   */
  public void use(long number, long handle, Caller caller) throws FsException {
    if (!writes(handle) || handles.containsKey(handle)) {
      writers.check(number, caller.node());
      checkKeeper(number, caller);
    } else {
      nodes.find(number);
      keep(number, handle, caller.node());
    }
  }
}
