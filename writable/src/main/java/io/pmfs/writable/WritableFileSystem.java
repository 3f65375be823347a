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
 * inode numbers, 1 for the root, which persist and are never reused. The kernel checks permissions
 * (`default_permissions`); this interface acts for the given user without checking. Thread-safe.
 *
 * <p>Each change carries the number of its request ({@link Caller#unique}). If an earlier process
 * recorded a change under that number, its result is returned and the change is not repeated.
 */
public interface WritableFileSystem extends AutoCloseable {
  long ROOT = Inode.ROOT;

  /**
   * The process that asks for a change.
   *
   * @param unique the request's number without the resend flag; 0 if the change has none
   * @param node the node of the cluster on which the process runs; 0 for this one
   */
  record Caller(long unique, int uid, int gid, int pid, int node) {
    private static final int NODE_SHIFT = 48;

    public Caller(long unique, int uid, int gid, int pid) {
      this(unique, uid, gid, pid, 0);
    }

    /** The same process seen as one of another node; kernels number their requests alike. */
    public Caller on(int other) {
      return new Caller(
          unique == 0 ? 0 : unique | (long) other << NODE_SHIFT, uid, gid, NO_PROCESS, other);
    }

    /** The same process, for a change that no request asked for. */
    public Caller unasked() {
      return new Caller(0, uid, gid, pid, node);
    }

    public Change.Head head(long sequence, long inode, long millis) {
      return new Change.Head(sequence, inode, uid, gid, millis);
    }

    public static boolean isHere(long unique) {
      return unique >>> NODE_SHIFT == 0;
    }
  }

  /** Stands for a process that cannot be inspected. */
  int NO_PROCESS = -1;

  /** A file, directory or other node, with its stat(2) attributes. */
  record Node(long inode, Attributes attributes) {}

  /** A directory entry. {@code position} is where a listing continues after it. */
  record Entry(FileName name, long inode, FileType type, long position) {}

  /** Receives entries; returns false, without taking the entry, when it has no room. */
  interface EntryConsumer {
    boolean accept(Entry entry);
  }

  /** Finds a name; null if there is none. */
  @Nullable Node lookup(long directory, FileName name) throws FsException;

  Node attributes(long inode) throws FsException;

  /**
   * Passes the entries after a position, 0 for the first, without . and ... A reader that continues
   * at positions gets each entry once, even while names are created and removed.
   */
  void list(long directory, long position, EntryConsumer entries) throws FsException;

  /** The parent of a directory; the root's parent is the root. */
  long parent(long directory) throws FsException;

  FileName readSymbolicLink(long inode) throws FsException;

  Map<FileName, byte[]> extendedAttributes(long inode) throws FsException;

  StoreStatistics statistics() throws FsException;

  // ---- changes of names

  /** The mode has only permission bits, with the umask applied. */
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
   * @throws FsException ESTALE if the kernel has to look up the name and check the caller's rights
   */
  Opened create(long directory, FileName name, int mode, int flags, Caller caller)
      throws FsException;

  /** Creates and opens a file without a name (O_TMPFILE), which {@link #link} can give one. */
  Opened createUnnamed(long directory, int mode, int flags, Caller caller) throws FsException;

  /**
   * An open file.
   *
   * @param handle for {@link #read} and the others; valid while the file is open, also in the next
   *     process of the mount
   * @param isOnlyWritten whether the call created the file and the handle cannot read
   * @param generation of the content, if the calling node keeps it ({@link NodeData}); else 0
   * @param source where nodes other than the owner can read the content; null if only the owner can
   */
  record Opened(
      Node node, long handle, boolean isOnlyWritten, long generation, @Nullable AtSource source) {}

  /**
   * A file at the source.
   *
   * @param directory its path below the source; empty for the source itself
   * @param inode its number at the source
   */
  record AtSource(FileName directory, FileName name, long inode) {
    /** Rejects a path that leads outside the source with an IllegalArgumentException. */
    public AtSource {
      if (!directory.isBelow() || !name.isEntry()) {
        throw new IllegalArgumentException("not a file below the source");
      }
    }
  }

  /** Opens a regular file; O_TRUNC truncates it. */
  Opened open(long inode, int flags, Caller caller) throws FsException;

  /** Passes at most {@code size} bytes from an offset; fewer only at the end of the file. */
  void read(long inode, long handle, long offset, int size, ReadSink sink) throws FsException;

  /**
   * Writes all of the buffer.
   *
   * @param append whether the descriptor has O_APPEND now: then the offset is ignored
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

  /** A close(2) of one of the descriptors; throws an unreported error of the source. */
  void flush(long inode, long handle, Caller caller) throws FsException;

  /** Returns once data, size and name would survive a power failure of this node. */
  void fsync(long inode, long handle, boolean dataOnly, Caller caller) throws FsException;

  void fsyncDirectory(long inode, Caller caller) throws FsException;

  /** The last close of a handle. Never fails, because the kernel ignores errors here. */
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

  /** The next data or hole at or after an offset: whence as in lseek(2), SEEK_DATA or SEEK_HOLE. */
  long seek(long inode, long handle, long offset, int whence) throws FsException;

  // ---- attributes

  /** One extended attribute, or null; EOPNOTSUPP if the mount does not support its name space. */
  byte @Nullable [] extendedAttribute(long inode, FileName name) throws FsException;

  /**
   * The attributes that {@link #setAttributes} changes; null leaves one as it is. {@code handle} is
   * the writable handle that changes the size, else 0.
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

  /** The kernel has forgotten an inode: the data of an unlinked and closed file can be removed. */
  void forget(long inode, long lookups);

  /** The kernel's session has ended: every open file counts as closed. */
  void endSession() throws FsException;

  // ---- the way to the source

  /** Why the mount is read-only now and nothing is written to the source; else null. */
  @Nullable String stateFailure();

  /** Says that the source does not answer, and since when; null if it does. */
  @Nullable String sourceFailure();

  DrainStatus drainStatus();

  /**
   * Acknowledges conflicts and permanently refused changes: those up to now are no longer reported
   * or counted.
   *
   * @return what was reported until now
   */
  DrainStatus acknowledge() throws FsException;

  /**
   * Retries changes that the source refuses, including those set aside.
   *
   * @param path of the mount, without a leading slash; includes everything below it; empty for all
   * @return the paths of the changes
   */
  List<String> retry(FileName path) throws FsException;

  /**
   * Discards refused changes and those that depend on them; the mount then shows what the source
   * has.
   *
   * @param path as for {@link #retry}
   * @return the paths of the changes
   * @throws FsException EBUSY while a program uses one of the files, or while related changes are
   *     being made
   */
  List<String> drop(FileName path) throws FsException;

  /** At most this many paths of changes not at the source yet, the oldest first. */
  List<String> waiting(int most);

  /**
   * Brings everything closed before this call to the source, and waits.
   *
   * @return whether nothing is left; false after a timeout or if changes were refused
   */
  boolean drain(long timeoutMillis) throws InterruptedException;

  @Override
  void close();
}
