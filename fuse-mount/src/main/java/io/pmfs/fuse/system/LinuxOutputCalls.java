package io.pmfs.fuse.system;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.posix.OpenFileLimit;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.Protection;
import io.pmfs.writable.journal.Stat;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import jnr.ffi.Memory;
import jnr.ffi.Platform;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;

/**
 * System calls on a writable source and on local data files. No symbolic link below an open
 * directory is followed.
 */
public final class LinuxOutputCalls implements OutputCalls {
  private static final LibC LIBC = LibC.INSTANCE;
  private static final FileLibC FILES = FileLibC.INSTANCE;

  private static final long SYS_MKNODAT =
      switch (Platform.getNativePlatform().getCPU()) {
        case X86_64 -> 259;
        case AARCH64 -> 33;
        default -> -1;
      };

  /** Of struct statfs. */
  private static final int FSID = 56;

  private static final int AT_REMOVEDIR = 0x200;
  private static final long FICLONE = 0x40049409L;

  /** Ioctl that fills a struct fsxattr, and a bit of its flags (linux/fs.h). */
  private static final long FS_IOC_FSGETXATTR = 0x801c581fL;

  private static final int FSXATTR_SIZE = 28;
  private static final int FSXATTR_PROJECT = 12;
  private static final int FS_XFLAG_PROJINHERIT = 0x200;

  private static final int LINK_BYTES = 4096;
  private static final byte[] EMPTY = {0};
  private static final FileName NO_NAME = FileName.of("");
  private static final int NO_FILE = -1;

  /** What errors of open files are about. */
  private static final FileName MODE = FileName.of("mode");

  private static final FileName OWNER = FileName.of("owner");
  private static final FileName TIMES = FileName.of("times");
  private static final FileName EXTENDED = FileName.of("extended attributes");

  private static final ThreadLocal<Pointer> STATX =
      ThreadLocal.withInitial(() -> Memory.allocateDirect(Posix.RUNTIME, Posix.STATX_SIZE));

  private final FileUsers users = new FileUsers();
  private final Listings listings = new Listings();

  public LinuxOutputCalls() {
    rehearse();
  }

  /** Makes each call of {@link FileUsers} once, on no directory, to load what it needs. */
  private void rehearse() {
    FileUsers.rehearse();
    FileName name = FileName.of("name");
    for (Rehearsal call :
        List.<Rehearsal>of(
            () -> open(NO_FILE, name, O_RDONLY, 0),
            () -> openDirectory(NO_FILE, name),
            () -> Beneath.walk(NO_FILE, name),
            () -> status(NO_FILE, name),
            () -> readSymbolicLink(NO_FILE, name),
            () -> mkdir(NO_FILE, name, 0),
            () -> mknod(NO_FILE, name, 0, 0),
            () -> symlink(name, NO_FILE, name),
            () -> link(NO_FILE, name, NO_FILE, name),
            () -> unlink(NO_FILE, name),
            () -> rmdir(NO_FILE, name),
            () -> rename(NO_FILE, name, NO_FILE, name, 0),
            () -> openNode(NO_FILE, name),
            () -> chmod(NO_FILE, 0),
            () -> chown(NO_FILE, 0, 0),
            () -> setTimes(NO_FILE, Instant.EPOCH, Instant.EPOCH),
            () -> setExtendedAttribute(NO_FILE, name, EMPTY),
            () -> removeExtendedAttribute(NO_FILE, name))) {
      try {
        call.make();
        throw new IllegalStateException("a call without a file succeeded");
      } catch (FsException expected) {
        // EBADF or ENOENT: there is no such directory.
      }
    }
  }

  /** A call that fails. */
  private interface Rehearsal {
    void make() throws FsException;
  }

  // ---- directories

  @Override
  public int openRoot(Path path) throws FsException {
    FileName what = FileName.of(path.toString());
    byte[] name = Posix.terminated(what);
    int flags = Posix.O_DIRECTORY | Posix.O_CLOEXEC;
    int file = (int) Posix.retried(() -> LIBC.openat(Posix.AT_FDCWD, name, flags));
    if (file < 0 && Posix.errno() == Errno.EACCES) {
      // Names in it may be accessible even if it cannot be listed.
      int searched = flags | Posix.O_PATH;
      file = (int) Posix.retried(() -> LIBC.openat(Posix.AT_FDCWD, name, searched));
    }
    if (file < 0) {
      throw Posix.failure(what);
    }
    return file;
  }

  @Override
  public int openDirectory(int base, FileName path) throws FsException {
    try {
      return openOrEnter(base, path);
    } catch (FsException e) {
      throw e.errno() == Errno.ELOOP ? new FsException(Errno.ENOTDIR, path.toString(), e) : e;
    }
  }

  private static int openOrEnter(int base, FileName path) throws FsException {
    try {
      return Beneath.HERE.open(base, path, Posix.O_DIRECTORY);
    } catch (FsException e) {
      if (e.errno() != Errno.EACCES) {
        throw e;
      }
      return Beneath.HERE.open(base, path, Posix.O_DIRECTORY | Posix.O_PATH);
    }
  }

  @Override
  public void list(int directory, Names names) throws FsException {
    int file = Beneath.HERE.open(directory, NO_NAME, Posix.O_DIRECTORY);
    try {
      listings.list(
          file,
          FileName.of("a directory"),
          (name, inode, type) -> names.accept(name, inode, type(type)));
    } finally {
      LIBC.close(file);
    }
  }

  private static @Nullable FileType type(int number) {
    return number == 0 ? null : FileType.ofNumber(number);
  }

  // ---- files

  /** Requires a single name: in a path, the system would follow symbolic links and "..". */
  private static byte[] entry(FileName name) throws FsException {
    if (!name.isEntry()) {
      throw new FsException(Errno.EINVAL, name + ": not a name");
    }
    return Posix.terminated(name);
  }

  @Override
  public int openNode(int directory, FileName name) throws FsException {
    byte[] entry = entry(name);
    int flags = Posix.O_PATH | Posix.O_NOFOLLOW | Posix.O_CLOEXEC;
    int file = (int) retried(() -> LIBC.openat(directory, entry, flags));
    if (file < 0) {
      throw Posix.failure(name);
    }
    return file;
  }

  @Override
  public int open(int directory, FileName name, int flags, int mode) throws FsException {
    int all = flags | Posix.O_NOFOLLOW | Posix.O_NONBLOCK | Posix.O_CLOEXEC;
    byte[] entry = entry(name);
    Posix.SystemCall call = () -> FILES.openat(directory, entry, all, mode);
    boolean isNew = (flags & O_EXCL) != 0;
    int file = (int) (isNew ? retriedUnlessMade(call) : retried(call));
    if (file < 0) {
      throw Posix.failure(name);
    }
    try {
      if ((flags & O_EXCL) == 0 && status(file, NO_NAME).attributes().type() != FileType.REGULAR) {
        throw new FsException(Errno.EINVAL, name + " is not a regular file");
      }
      return file;
    } catch (FsException e) {
      LIBC.close(file);
      throw e;
    }
  }

  @Override
  public void close(int file) {
    LIBC.close(file);
  }

  @Override
  public Stat status(int directory, FileName name) throws FsException {
    Pointer result = STATX.get();
    byte[] path = name.size() == 0 ? EMPTY : entry(name);
    int flags = Posix.AT_SYMLINK_NOFOLLOW | (name.size() == 0 ? Posix.AT_EMPTY_PATH : 0);
    int wanted = Posix.STATX_BASIC_STATS | Posix.STATX_BTIME;
    if (retried(() -> LIBC.statx(directory, path, flags, wanted, result)) != 0) {
      throw Posix.failure(name);
    }
    boolean hasBirth = (result.getInt(0) & Posix.STATX_BTIME) != 0;
    Instant birth =
        hasBirth
            ? Instant.ofEpochSecond(result.getLongLong(80), result.getInt(88) & 0xffffffffL)
            : Instant.EPOCH;
    Attributes attributes = Posix.attributes(result);
    return new Stat(
        Posix.device(result), Posix.inode(result), birth, attributes, protection(result));
  }

  @Override
  public FileSystem fileSystem(int file) throws FsException {
    Pointer statfs = Memory.allocateDirect(Posix.RUNTIME, Posix.STATVFS_SIZE);
    check(() -> LIBC.fstatfs(file, statfs), "statfs");
    long device = status(file, NO_NAME).device();
    return MountedNames.of(
        statfs.getLongLong(0), statfs.getLongLong(FSID), device, MountedNames.mountinfo());
  }

  private static Protection protection(Pointer statx) {
    long there = statx.getLongLong(Posix.STATX_ATTRIBUTES);
    if ((there & Posix.STATX_ATTR_IMMUTABLE) != 0) {
      return Protection.IMMUTABLE;
    }
    return (there & Posix.STATX_ATTR_APPEND) == 0 ? Protection.NONE : Protection.APPEND_ONLY;
  }

  @Override
  public FileName readSymbolicLink(int directory, FileName name) throws FsException {
    byte[] target = new byte[LINK_BYTES];
    byte[] entry = entry(name);
    long size = retried(() -> LIBC.readlinkat(directory, entry, target, target.length));
    if (size < 0) {
      throw Posix.failure(name);
    }
    return FileName.of(Arrays.copyOf(target, Math.toIntExact(size)));
  }

  @Override
  public int read(int file, ByteBuffer destination, long offset) throws FsException {
    // The address is that of the buffer's position.
    long address = Pointer.wrap(Posix.RUNTIME, destination).address();
    int first = destination.position();
    int size = destination.remaining();
    int done = 0;
    while (done < size) {
      int from = done;
      long count =
          Posix.retried(() -> LIBC.pread(file, address + from, size - from, offset + from));
      if (count < 0) {
        throw new FsException(Posix.errno(), "read");
      }
      if (count == 0) {
        break;
      }
      done += Math.toIntExact(count);
    }
    destination.position(first + done);
    return done;
  }

  @Override
  public void write(int file, ByteBuffer source, long offset) throws FsException {
    ByteBuffer direct = source.isDirect() ? source : copy(source);
    long address = Pointer.wrap(Posix.RUNTIME, direct).address();
    int size = direct.remaining();
    int done = 0;
    while (done < size) {
      int from = done;
      long count =
          Posix.retried(() -> FILES.pwrite(file, address + from, size - from, offset + from));
      if (count < 0) {
        throw new FsException(Posix.errno(), "write");
      }
      done += Math.toIntExact(count);
    }
    source.position(source.limit());
  }

  private static ByteBuffer copy(ByteBuffer source) {
    return ByteBuffer.allocateDirect(source.remaining()).put(source.duplicate()).flip();
  }

  @Override
  public void truncate(int file, long size) throws FsException {
    check(() -> LIBC.ftruncate(file, size), "truncate");
  }

  @Override
  public void sync(int file, boolean dataOnly) throws FsException {
    if (Posix.retried(() -> dataOnly ? FILES.fdatasync(file) : FILES.fsync(file)) != 0) {
      Errno errno = Posix.errno();
      // The directory cannot be opened for reading, or the file system lacks the call.
      if (errno != Errno.EBADF && errno != Errno.EINVAL) {
        throw new FsException(errno, "fsync");
      }
    }
  }

  @Override
  public void beginWriteBack(int file) {
    PassedFile.beginWriteBack(file);
  }

  @Override
  public void allocate(int file, int mode, long offset, long length) throws FsException {
    check(() -> LIBC.fallocate(file, mode, offset, length), "fallocate");
  }

  @Override
  public long seek(int file, long offset, int whence) throws FsException {
    long found = Posix.retried(() -> LIBC.lseek(file, offset, whence));
    if (found < 0) {
      throw new FsException(Posix.errno(), "lseek");
    }
    return found;
  }

  @Override
  public void cloneFile(int from, int to) throws FsException {
    check(() -> LIBC.ioctl(to, FICLONE, from), "FICLONE");
  }

  @Override
  public long project(int directory) {
    Pointer attributes = Memory.allocateDirect(Posix.RUNTIME, FSXATTR_SIZE);
    if (Posix.retried(() -> LIBC.ioctl(directory, FS_IOC_FSGETXATTR, attributes.address())) != 0
        || (attributes.getInt(0) & FS_XFLAG_PROJINHERIT) == 0) {
      return 0;
    }
    return Integer.toUnsignedLong(attributes.getInt(FSXATTR_PROJECT));
  }

  private static void check(Posix.SystemCall call, String what) throws FsException {
    if (Posix.retried(call) != 0) {
      throw new FsException(Posix.errno(), what);
    }
  }

  /** Retries an interrupted call that may be made twice. */
  private static long retried(Posix.SystemCall call) {
    return Posix.retried(() -> FileUsers.call(call));
  }

  private static void set(Posix.SystemCall call, FileName name) throws FsException {
    if (retried(call) != 0) {
      throw Posix.failure(name);
    }
  }

  private static long retriedUnlessMade(Posix.SystemCall call) {
    return Posix.retriedUnlessMade(() -> FileUsers.call(call));
  }

  /**
   * Changes a name; EINTR if it may have been changed: the committer then checks before it
   * continues.
   */
  private static void make(Posix.SystemCall call, FileName name) throws FsException {
    if (retriedUnlessMade(call) != 0) {
      throw Posix.failure(name);
    }
  }

  // ---- names

  @Override
  public void mkdir(int directory, FileName name, int mode) throws FsException {
    byte[] entry = entry(name);
    make(() -> FILES.mkdirat(directory, entry, mode), name);
  }

  @Override
  public void mknod(int directory, FileName name, int mode, long device) throws FsException {
    byte[] entry = entry(name);
    make(() -> FILES.syscall(SYS_MKNODAT, directory, entry, mode, device), name);
  }

  @Override
  public void symlink(FileName target, int directory, FileName name) throws FsException {
    byte[] content = Posix.terminated(target);
    byte[] entry = entry(name);
    make(() -> FILES.symlinkat(content, directory, entry), name);
  }

  @Override
  public void link(int directory, FileName name, int toDirectory, FileName toName)
      throws FsException {
    byte[] from = entry(name);
    byte[] to = entry(toName);
    make(() -> FILES.linkat(directory, from, toDirectory, to, 0), toName);
  }

  @Override
  public void unlink(int directory, FileName name) throws FsException {
    byte[] entry = entry(name);
    make(() -> FILES.unlinkat(directory, entry, 0), name);
  }

  @Override
  public void rmdir(int directory, FileName name) throws FsException {
    byte[] entry = entry(name);
    make(() -> FILES.unlinkat(directory, entry, AT_REMOVEDIR), name);
  }

  @Override
  public void rename(int directory, FileName name, int toDirectory, FileName toName, int flags)
      throws FsException {
    byte[] from = entry(name);
    byte[] to = entry(toName);
    Posix.SystemCall call = () -> FILES.renameat2(directory, from, toDirectory, to, flags);
    if ((flags & RENAME_EXCHANGE) == 0) {
      make(call, toName);
    } else if (Posix.retriedUnlessInterrupted(() -> FileUsers.call(call)) != 0) {
      throw Posix.failure(toName);
    }
  }

  // ---- attributes

  /** A path for the kernel to an open file itself, which may be a symbolic link. */
  private static byte[] viaProc(int file) {
    return Posix.terminated(FileName.of("/proc/self/fd/" + file));
  }

  @Override
  public void chmod(int file, int mode) throws FsException {
    byte[] path = viaProc(file);
    set(() -> FILES.chmod(path, mode), MODE);
  }

  @Override
  public void chown(int file, int uid, int gid) throws FsException {
    set(() -> FILES.fchownat(file, EMPTY, uid, gid, Posix.AT_EMPTY_PATH), OWNER);
  }

  @Override
  public void setTimes(int file, Instant accessTime, Instant modificationTime) throws FsException {
    Pointer times = Memory.allocateDirect(Posix.RUNTIME, 32);
    times.putLongLong(0, accessTime.getEpochSecond());
    times.putLongLong(8, accessTime.getNano());
    times.putLongLong(16, modificationTime.getEpochSecond());
    times.putLongLong(24, modificationTime.getNano());
    byte[] path = viaProc(file);
    set(() -> FILES.utimensat(Posix.AT_FDCWD, path, times, 0), TIMES);
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(int file) throws FsException {
    return ExtendedAttributes.of(file, EXTENDED);
  }

  @Override
  public Map<FileName, byte[]> extendedAttributesToCopy(int file) throws FsException {
    return ExtendedAttributes.toCopy(file, EXTENDED);
  }

  @Override
  public void setExtendedAttribute(int file, FileName attribute, byte[] value) throws FsException {
    byte[] path = viaProc(file);
    byte[] key = Posix.terminated(attribute);
    byte[] content = Arrays.copyOf(value, value.length + 1);
    set(() -> FILES.setxattr(path, key, content, value.length, 0), attribute);
  }

  @Override
  public void removeExtendedAttribute(int file, FileName attribute) throws FsException {
    byte[] path = viaProc(file);
    byte[] key = Posix.terminated(attribute);
    make(() -> FILES.removexattr(path, key), attribute);
  }

  @Override
  public StoreStatistics statistics(int directory) throws FsException {
    Pointer result = Memory.allocateDirect(Posix.RUNTIME, Posix.STATVFS_SIZE);
    check(() -> LIBC.fstatvfs(directory, result), "statvfs");
    return Posix.statistics(result);
  }

  @Override
  public int mostDataFiles() {
    return OpenFileLimit.ofProcess();
  }

  // ---- users

  @Override
  public boolean isInGroup(int pid, int uid, int gid, int group) {
    return users.isInGroup(pid, uid, gid, group);
  }

  @Override
  public void lowerPriority() {
    Priority.lower();
  }

  @Override
  public OutputCalls.Acting actAs(int uid, int gid) {
    return users.as(uid, gid);
  }
}
