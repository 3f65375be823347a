package io.pmfs.writable.data;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.tree.Nodes;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The handles of open files, and the node that writes each file. A handle encodes its open flags,
 * so handles of an earlier process still work. Thread-safe.
 */
@SuppressWarnings("try")
public final class Handles {
  private static final int ACCESS_MODE = 3;
  private static final int FLAG_BITS = 4;
  private static final int APPENDS = 1;
  private static final int WRITES = 2;

  /** The kernel need not look for capabilities before each write. */
  private static final int ONLY_WRITES = 4;

  private static final long PAUSE_MILLIS = 20;

  private final State state;
  private final Nodes nodes;
  private final OutputFiles files;
  private final AtomicLong nextHandle;
  private final long firstHandle;

  private final Writers writers = new Writers();

  /** Indexes of the places of other nodes, by session number. */
  private final Map<Integer, Integer> places = new ConcurrentHashMap<>();

  /** Files without names that a kernel had open when an earlier process ended, unknown which. */
  private final Set<Long> former = ConcurrentHashMap.newKeySet();

  /** The handles of this process; each is one use of a file. */
  private final Map<Long, Handle> handles = new ConcurrentHashMap<>();

  /**
   * An open file, and the node that opened it.
   *
   * @param unique the number of its request; 0 if it was opened earlier
   */
  private record Handle(OutputFile file, int node, long unique) {}

  public Handles(State state, Nodes nodes, OutputFiles files) {
    this.state = state;
    this.nodes = nodes;
    this.files = files;
    // After the handles of an earlier process.
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
   * The flags of a handle.
   *
   * @param isFormer whether an earlier process gave it, so that a request may be a repetition
   * @param isOnlyWritten whether the kernel sends writes without looking for capabilities
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
   * Opens a file for the caller's node.
   *
   * @param isOnlyWritten whether the file was just created and the handle cannot read
   */
  long open(long number, int flags, boolean isOnlyWritten, Caller caller) throws FsException {
    int bits = (flags & OutputCalls.O_APPEND) != 0 ? APPENDS : 0;
    bits |= isWriter(flags) ? WRITES : 0;
    bits |= isOnlyWritten ? ONLY_WRITES : 0;
    long handle = (nextHandle.incrementAndGet() << FLAG_BITS) | bits;
    keep(number, handle, caller);
    checkKnown(number, handle);
    return handle;
  }

  private void keep(long number, long handle, Caller opening) throws FsException {
    if (writes(handle)) {
      writers.begin(number, opening.node());
    }
    OutputFile file = files.acquire(number);
    handles.put(handle, new Handle(file, opening.node(), opening.unique()));
    if (writes(handle)) {
      file.beginWriter();
    }
  }

  /**
   * Another node may unlink a file between this node's lookup and open, and its kernel may forget
   * the inode. On ESTALE this kernel looks the name up again.
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

  /** A handle that is being closed; the use of its file ends when this is closed. */
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

  /** Closes a handle, which may be from an earlier process. */
  Released release(long number, long handle) {
    Handle open = handles.remove(handle);
    if (open != null && writes(handle)) {
      writers.end(number, open.node());
      open.file().endWriter();
    }
    return new Released(open == null ? null : open.file(), writes(handle));
  }

  /** Whether a file is open for writing, as far as this process knows. */
  public boolean isWritten(long number) {
    return writers.has(number);
  }

  /** Adds files that other nodes may have open since an earlier process; until the session ends. */
  public void addFormer(Collection<Long> numbers) {
    former.addAll(numbers);
  }

  /** Whether a file may be open on any node. */
  boolean isOpen(long number) {
    return former.contains(number)
        || handles.values().stream().anyMatch(handle -> handle.file().number() == number);
  }

  /** The handles that a node has open, with their files. */
  public Map<Long, Long> handlesOf(int node) {
    return handles(open -> open.node() == node);
  }

  /** The handles that a node's request has opened, with their files. */
  public Map<Long, Long> handlesOf(Caller opening) {
    return handles(open -> open.unique() != 0 && open.unique() == opening.unique());
  }

  private Map<Long, Long> handles(Predicate<Handle> which) {
    Map<Long, Long> found = new HashMap<>();
    handles.forEach(
        (handle, open) -> {
          if (which.test(open)) {
            found.put(handle, open.file().number());
          }
        });
    return found;
  }

  // ---- which node writes

  /** A session of another node has started. */
  public void join(int node, int place) {
    places.put(node, place);
  }

  /** Index of the place for the calling node's data files; -1 for this node. */
  public int placeOf(Caller caller) {
    return places.getOrDefault(caller.node(), -1);
  }

  /** A scope in which a node is about to open a file for writing. */
  interface Writing extends AutoCloseable {
    @Override
    void close();
  }

  /** Keeps other nodes from writing the file until the result is closed; fails if one does. */
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

  /** A node that keeps what it writes need not have reported the open to this process. */
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
   * Prepares a change by a handle. An unknown handle is from an earlier process, or was open on a
   * node that had been away.
   */
  public void use(long number, long handle, Caller caller) throws FsException {
    if (!writes(handle) || handles.containsKey(handle)) {
      writers.check(number, caller.node());
      checkKeeper(number, caller);
    } else {
      nodes.find(number);
      keepFormer(number, handle, caller.unasked());
    }
  }

  /** A kernel repeats at once all requests that an earlier process did not answer. */
  private synchronized void keepFormer(long number, long handle, Caller opening)
      throws FsException {
    if (!handles.containsKey(handle)) {
      keep(number, handle, opening);
    }
  }
}
