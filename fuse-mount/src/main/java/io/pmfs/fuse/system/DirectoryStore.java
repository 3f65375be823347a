package io.pmfs.fuse.system;

import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.LentFile;
import io.pmfs.source.SourceAccess;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import io.pmfs.source.StoreStatistics;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;

/**
 * A directory tree on any mounted file system as the source of a dataset, through direct system
 * calls. The JDK's file API supports only names that are text, reports no errno and no link counts
 * with inode numbers, and reads only the user's extended attributes.
 *
 * <p>The root is held open, so the source stays the same when its path is renamed or mounted over.
 * Users who can write to the source may replace any directory in it at any time: each call opens
 * its path {@link Beneath} the root, and inspects the opened file.
 */
public final class DirectoryStore implements BackingStore {
  private static final int POSIX_FADV_SEQUENTIAL = 2;
  private static final int LINK_BYTES = 4096;

  private static final LibC LIBC = LibC.INSTANCE;
  private static final byte[] EMPTY_PATH = {0};

  private final Beneath beneath;
  private final String path;
  private final int root;
  private final long rootDevice;
  private final String identity;
  private final boolean servedByProgram;

  private final Listings listings = new Listings();

  /** The directories being listed; the last of concurrent listings of the same one. */
  private final Map<FileName, Listed> listed = new ConcurrentHashMap<>();

  /**
   * Opens the root.
   *
   * @param path a directory, absolute and without symbolic links
   * @throws FsException if it cannot be opened or is not a directory
   */
  public DirectoryStore(Path path) throws FsException {
    this(path, Beneath.HERE);
  }

  DirectoryStore(Path path, Beneath beneath) throws FsException {
    this.beneath = beneath;
    this.path = path.toString();
    this.root = beneath.open(path, Posix.O_PATH | Posix.O_DIRECTORY);
    try {
      int wanted = Posix.STATX_BASIC_STATS | Posix.STATX_BTIME;
      Pointer status = statx(root, FileName.of(this.path), wanted);
      this.rootDevice = Posix.device(status);
      this.identity = Posix.identity(status);
      this.servedByProgram = PassedFile.isServedByProgram(root, FileName.of(this.path));
    } catch (FsException e) {
      LIBC.close(root);
      throw e;
    }
  }

  /**
   * Identifies this directory independently of its current path, device and content. Different
   * texts mean different directories.
   */
  public String identity() {
    return identity;
  }

  /** The descriptor of this directory, closed by this object. */
  public int descriptor() {
    return root;
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    Pointer listedNow = statxWhereListed(path);
    return status(listedNow != null ? listedNow : at(path, file -> statx(file, path)));
  }

  /**
   * Looks up a name in a directory that is being listed, without opening and closing the file: an
   * import does this for each name. Null if the directory is not being listed.
   */
  private @Nullable Pointer statxWhereListed(FileName path) throws FsException {
    if (listed.isEmpty()) {
      return null;
    }
    byte[] bytes = path.bytes();
    int slash = bytes.length - 1;
    while (slash >= 0 && bytes[slash] != '/') {
      slash--;
    }
    FileName name = FileName.of(Arrays.copyOfRange(bytes, slash + 1, bytes.length));
    Listed directory = listed.get(FileName.of(Arrays.copyOf(bytes, Math.max(0, slash))));
    if (directory == null || name.isDots() || name.size() == 0 || !directory.enter()) {
      return null;
    }
    try {
      return statx(directory.file, Posix.terminated(name), path, Posix.STATX_BASIC_STATS);
    } finally {
      directory.leave();
    }
  }

  /** A directory being listed, open until the listing and all users have left. */
  private static final class Listed {
    private final int file;
    private int users = 1; // GUARDED_BY(this)

    Listed(int file) {
      this.file = file;
    }

    synchronized boolean enter() {
      if (users == 0) {
        return false;
      }
      users++;
      return true;
    }

    synchronized void leave() {
      if (--users == 0) {
        LIBC.close(file);
      }
    }
  }

  /** A call on a file opened with O_PATH, without access to its content. */
  private interface Call<T> {
    T on(int file) throws FsException;
  }

  private <T> T at(FileName path, Call<T> call) throws FsException {
    int file = beneath.open(root, path, Posix.O_PATH);
    try {
      return call.on(file);
    } finally {
      LIBC.close(file);
    }
  }

  private SourceStatus status(Pointer statx) {
    long device = Posix.device(statx);
    return new SourceStatus(
        new FileIdentity(device == rootDevice ? 0 : device, Posix.inode(statx)),
        Posix.attributes(statx));
  }

  private static Pointer statx(int file, FileName name) throws FsException {
    return statx(file, name, Posix.STATX_BASIC_STATS);
  }

  private static Pointer statx(int file, FileName name, int wanted) throws FsException {
    return statx(file, EMPTY_PATH, name, wanted);
  }

  /**
   * The attributes of a name in an open directory, or of the open file itself if the name is empty.
   */
  private static Pointer statx(int file, byte[] name, FileName what, int wanted)
      throws FsException {
    Pointer result = Memory.allocateDirect(Posix.RUNTIME, Posix.STATX_SIZE);
    int flags = Posix.AT_SYMLINK_NOFOLLOW | (name.length == 1 ? Posix.AT_EMPTY_PATH : 0);
    if (Posix.retried(() -> LIBC.statx(file, name, flags, wanted, result)) != 0) {
      throw Posix.failure(what);
    }
    UnmappedGroups.translate(result, file, name);
    return result;
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    Listed open = new Listed(beneath.open(root, directory, Posix.O_DIRECTORY));
    try {
      listed.put(directory, open);
      listings.list(open.file, directory, new Batches(batches));
    } finally {
      listed.remove(directory, open);
      open.leave();
    }
  }

  /** Passes on the names of each system call together. */
  private static final class Batches implements Listings.Visitor {
    private final NameConsumer consumer;
    private List<FileName> names = new ArrayList<>();

    Batches(NameConsumer consumer) {
      this.consumer = consumer;
    }

    @Override
    public void visit(FileName name, long inode, int type) {
      names.add(name);
    }

    @Override
    public boolean continues() {
      List<FileName> batch = names;
      names = new ArrayList<>();
      return consumer.accept(batch);
    }
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws FsException {
    byte[] target = new byte[LINK_BYTES];
    long size =
        at(
            path,
            file -> {
              long read =
                  Posix.retried(() -> LIBC.readlinkat(file, EMPTY_PATH, target, target.length));
              if (read < 0) {
                // readlinkat(2) reports ENOENT for an empty path of a file that is not a link.
                throw Posix.errno() == Errno.ENOENT
                    ? new FsException(Errno.EINVAL, path.toString())
                    : Posix.failure(path);
              }
              return read;
            });
    return FileName.of(Arrays.copyOf(target, Math.toIntExact(size)));
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    // Without O_NONBLOCK, opening a path that became a FIFO would block.
    int file = beneath.open(root, path, Posix.O_NONBLOCK);
    // Many threads read blocks of a file. The kernel would take this for random access and send
    // small requests to a network file system: see docs/decisions/0020. Failure is harmless.
    LIBC.posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
    return new OpenFile(path, file);
  }

  /**
   * Not if a program serves the files (FUSE): they may have no page cache, where what the kernel
   * reads is found when it is copied.
   */
  @Override
  public boolean lends() {
    return !servedByProgram;
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    return at(path, file -> ExtendedAttributes.of(file, path));
  }

  @Override
  public SourceAccess access(FileName path) throws FsException {
    return at(path, file -> ExtendedAttributes.access(file, status(statx(file, path)), path));
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    Pointer result = Memory.allocateDirect(Posix.RUNTIME, Posix.STATVFS_SIZE);
    if (Posix.retried(() -> LIBC.fstatvfs(root, result)) != 0) {
      throw new FsException(Posix.errno(), path);
    }
    return Posix.statistics(result);
  }

  @Override
  public void close() {
    LIBC.close(root);
  }

  private final class OpenFile implements SourceFile {
    private final FileName name;
    private final int file;

    OpenFile(FileName name, int file) {
      this.name = name;
      this.file = file;
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      return PassedFile.read(file, name, offset, destination);
    }

    @Override
    public int descriptor() {
      return file;
    }

    /** The file itself. */
    @Override
    public @Nullable LentFile lend() {
      return servedByProgram ? null : PassedFile.duplicate(file);
    }

    @Override
    public long seekData(long offset) throws FsException {
      return seek(offset, Posix.SEEK_DATA);
    }

    @Override
    public long seekHole(long offset) throws FsException {
      return seek(offset, Posix.SEEK_HOLE);
    }

    /** Moves the file offset, which is not used otherwise. */
    private long seek(long offset, int whence) throws FsException {
      long found = Posix.retried(() -> LIBC.lseek(file, offset, whence));
      if (found < 0) {
        throw Posix.failure(name);
      }
      return found;
    }

    @Override
    public SourceStatus status() throws FsException {
      return DirectoryStore.this.status(statx(file, name));
    }

    @Override
    public void close() {
      LIBC.close(file);
    }

    @Override
    public @Nullable String toString() {
      return name.toString();
    }
  }
}
