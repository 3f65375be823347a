package io.pmfs.writable;

import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A file system that can be changed, as the kernel's requests see it. Files and directories have
 * inode numbers, 1 for the root, which persist and are never reused. The kernel checks rights
 * (`default_permissions`); this interface does what it is told, for the user it is told. Safe for
 * use by many threads.
 *
 * <p>Each change takes the number of its request ({@link Caller#unique}). A change that a former
 * process had recorded under that number is not repeated: its result is returned again.
 */
public interface WritableFileSystem extends AutoCloseable {
  /** Names of the root's inode. */
  long ROOT = Inode.ROOT;

  /**
   * On whose behalf a change is made.
   *
   * @param unique the request's number without the mark of a request that was sent again; 0 if the
   *     change has none
   * @param node on which node of a cluster its process is; 0 for this one
   */
  record Caller(long unique, int uid, int gid, int pid, int node) {
    private static final int NODE_SHIFT = 48;

    /** A process of this node. */
    public Caller(long unique, int uid, int gid, int pid) {
      this(unique, uid, gid, pid, 0);
    }

    /** The same process of another node, whose kernel numbers requests as this node's does. */
    public Caller on(int other) {
      return new Caller(
          unique == 0 ? 0 : unique | (long) other << NODE_SHIFT, uid, gid, NO_PROCESS, other);
    }

    /** The same process, with a change that no request asked for. */
    public Caller unasked() {
      return new Caller(0, uid, gid, pid, node);
    }

    /** What a change says of who made it. */
    public Change.Head head(long sequence, long inode, long millis) {
      return new Change.Head(sequence, inode, uid, gid, millis);
    }

    /** Whether a request with this number came from this node. */
    public static boolean isHere(long unique) {
      return unique >>> NODE_SHIFT == 0;
    }
  }

  /** Instead of a process that cannot be looked at. */
  int NO_PROCESS = -1;

  /** A file, directory or other node, and what stat(2) says of it. */
  record Node(long inode, Attributes attributes) {}

  /** An entry of a directory. {@code position} is where a listing continues behind it. */
  record Entry(FileName name, long inode, FileType type, long position) {}

  /** Receives entries until it has no room: then it returns false, and the entry is not taken. */
  interface EntryConsumer {
    boolean accept(Entry entry);
  }

  /** Finds a name; null if there is none. */
  @Nullable Node lookup(long directory, FileName name) throws FsException;

  Node attributes(long inode) throws FsException;

  /**
   * Passes entries behind a position, 0 for the first, without . and ..; each entry once for a
   * reader that continues at positions, whatever is created and removed meanwhile.
   */
  void list(long directory, long position, EntryConsumer entries) throws FsException;

  /** The directory that holds a directory; the root's is the root. */
  default long parent(long directory) throws FsException {
    return directory;
  }

  FileName readSymbolicLink(long inode) throws FsException;

  Map<FileName, byte[]> extendedAttributes(long inode) throws FsException;

  StoreStatistics statistics() throws FsException;

  // ---- changes of names

  /** The mode has permission bits only, with the umask applied. */
  Node mkdir(long directory, FileName name, int mode, Caller caller) throws FsException;

  /** A FIFO, socket, device or empty regular file, by the type bits of the mode. */
  Node mknod(long directory, FileName name, int mode, long device, Caller caller)
      throws FsException;

  Node symlink(long directory, FileName name, FileName target, Caller caller) throws FsException;

  Node link(long inode, long directory, FileName name, Caller caller) throws FsException;

  void unlink(long directory, FileName name, Caller caller) throws FsException;

  void rmdir(long directory, FileName name, Caller caller) throws FsException;

  /** Flags as in renameat2(2): RENAME_NOREPLACE, RENAME_EXCHANGE; others fail with EINVAL. */
  void rename(
      long directory, FileName name, long newDirectory, FileName newName, int flags, Caller caller)
      throws FsException;

  // ---- open files

  /**
   * Creates and opens a file; without O_EXCL an existing one is opened.
   *
   * @param flags as in open(2)
   */
  Opened create(long directory, FileName name, int mode, int flags, Caller caller)
      throws FsException;

  /** Creates and opens a file without a name (O_TMPFILE), which {@link #link} can give one. */
  Opened createUnnamed(long directory, int mode, int flags, Caller caller) throws FsException;

  /**
   * An open file.
   *
   * @param handle for {@link #read} and the others; persists while the file is open, also for the
   *     next process of the mount
   * @param isOnlyWritten whether the call made the file, and the handle cannot read
   * @param generation of the content, if the node that asked keeps it ({@link NodeData}); else 0
   * @param source where another node than the owner can read the content; null if only the owner
   *     can
   */
  record Opened(
      Node node, long handle, boolean isOnlyWritten, long generation, @Nullable AtSource source) {
    /** With content that the asking node does not keep. */
    public Opened(Node node, long handle, boolean isOnlyWritten) {
      this(node, handle, isOnlyWritten, 0, null);
    }
  }

  /**
   * A file at the source.
   *
   * @param directory its path below the source; empty for the source itself
   * @param inode its number at the source
   */
  record AtSource(FileName directory, FileName name, long inode) {
    /** Throws IllegalArgumentException for a path that leads outside the source. */
    public AtSource {
      if (!directory.isBelow() || !name.isEntry()) {
        throw new IllegalArgumentException("not a file below the source");
      }
    }
  }

  /** Opens a regular file, and empties it if the flags have O_TRUNC. */
  Opened open(long inode, int flags, Caller caller) throws FsException;

  /** Passes at most {@code size} bytes from an offset, fewer only at the end of the file. */
  void read(long inode, long handle, long offset, int size, ReadSink sink) throws FsException;

  /**
   * Writes all of the buffer.
   *
   * @param append whether the descriptor has O_APPEND at present: at the end of the file then,
   *     whatever the offset says
   * @param clearSetId drop set-user-id and set-group-id bits, as a write by an ordinary user does
   * @return how many bytes were written
   */
  int write(
      long inode,
      long handle,
      long offset,
      ByteBuffer bytes,
      boolean append,
      boolean clearSetId,
      Caller caller)
      throws FsException;

  /** A close(2) of one of the descriptors: reports an error of the source that was not told yet. */
  void flush(long inode, long handle, Caller caller) throws FsException;

  /** Returns when data, size and name survive a power cut of this node. */
  void fsync(long inode, long handle, boolean dataOnly, Caller caller) throws FsException;

  void fsyncDirectory(long inode, Caller caller) throws FsException;

  /** The last close of a handle. Never fails, because the kernel takes no error from it. */
  void release(long inode, long handle);

  /** Mode as in fallocate(2): KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE; others fail with EOPNOTSUPP. */
  void allocate(long inode, long handle, int mode, long offset, long length, Caller caller)
      throws FsException;

  /** Like copy_file_range(2). */
  long copyRange(
      long inode,
      long handle,
      long offset,
      long toInode,
      long toHandle,
      long toOffset,
      long length,
      Caller caller)
      throws FsException;

  /**
   * The next data or hole at or behind an offset: whence as in lseek(2), SEEK_DATA or SEEK_HOLE.
   */
  long seek(long inode, long handle, long offset, int whence) throws FsException;

  // ---- attributes

  /**
   * One extended attribute, or null; EOPNOTSUPP if its name is in none of the name spaces that a
   * mount has.
   */
  default byte @Nullable [] extendedAttribute(long inode, FileName name) throws FsException {
    return extendedAttributes(inode).get(name);
  }

  /**
   * What {@link #setAttributes} changes; null stays as it is. Times are those of the call unless
   * given; a change of size by a handle that was opened for writing has that handle, else 0.
   */
  record NewAttributes(
      @Nullable Integer mode,
      @Nullable Integer uid,
      @Nullable Integer gid,
      @Nullable Long size,
      @Nullable Instant accessTime,
      @Nullable Instant modificationTime,
      long handle,
      boolean clearSetId) {}

  Node setAttributes(long inode, NewAttributes attributes, Caller caller) throws FsException;

  /** Flags as in setxattr(2): XATTR_CREATE, XATTR_REPLACE. */
  void setExtendedAttribute(long inode, FileName name, byte[] value, int flags, Caller caller)
      throws FsException;

  void removeExtendedAttribute(long inode, FileName name, Caller caller) throws FsException;

  /** The kernel has forgotten an inode: data of a file without names and opens can go. */
  void forget(long inode, long lookups);

  /**
   * The session of the kernel has ended, so nothing is open any more: what was written counts as
   * closed.
   */
  void endSession() throws FsException;

  // ---- the way to the source

  /** Why nothing can be changed at the moment, and steps at the source are not made; else null. */
  default @Nullable String stateFailure() {
    return null;
  }

  /** That the source does not answer, and since when; null if it does. */
  default @Nullable String sourceFailure() {
    return null;
  }

  /** How far the source is behind. */
  DrainStatus drainStatus();

  /**
   * The user knows of the conflicts and of the changes that the source refused for good: those
   * until now are no longer told or counted.
   *
   * @return what was told until now
   */
  DrainStatus acknowledge() throws FsException;

  /**
   * Tries changes that the source refuses once more, also those that were set aside.
   *
   * @param path of the mount, without a leading slash: it and what is below; empty for all
   * @return the paths of the changes
   */
  default List<String> retry(FileName path) throws FsException {
    return List.of();
  }

  /**
   * Gives up changes that the source refuses, and those that wait for them: the mount shows what
   * the source has.
   *
   * @param path as for {@link #retry}
   * @return the paths of the changes
   * @throws FsException EBUSY while a program uses one of the files, or changes are on their way
   */
  default List<String> drop(FileName path) throws FsException {
    return List.of();
  }

  /** Paths of what is not at the source yet, the longest waiting first, at most so many. */
  default List<String> waiting(int most) {
    return List.of();
  }

  /**
   * Starts to bring everything that was closed before this call to the source, and waits.
   *
   * @return whether nothing is left; false after the time is over or if changes were refused
   */
  boolean drain(long timeoutMillis) throws InterruptedException;

  @Override
  void close();
}
