package io.pmfs.fuse.jnr;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.AccessRule;
import io.pmfs.fuse.Bridge;
import io.pmfs.fuse.protocol.AnsweredRequest;
import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.protocol.RequestListener;
import io.pmfs.fuse.system.NativeMemory;
import io.pmfs.fuse.system.Posix;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.Map;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ru.serce.jnrfuse.FuseFillDir;
import ru.serce.jnrfuse.FuseStubFS;
import ru.serce.jnrfuse.struct.FileStat;
import ru.serce.jnrfuse.struct.FuseContext;
import ru.serce.jnrfuse.struct.FuseFileInfo;
import ru.serce.jnrfuse.struct.Statvfs;
import ru.serce.jnrfuse.struct.Timespec;

/**
 * libfuse's operations. Each one translates paths to inodes and failures to negative errno. Every
 * request gets an answer, even if our code throws. libfuse answers ENOSYS for operations that are
 * not implemented here; the kernel answers EROFS for every change.
 */
final class JnrOperations extends FuseStubFS {
  private static final Logger log = LoggerFactory.getLogger(JnrOperations.class);

  /** Directories found without walking down from the root. */
  private static final int KNOWN_DIRECTORIES = 10_000;

  /** Positions in a listing start after . and .. . */
  private static final int DOTS = 2;

  private static final int BLOCK_BYTES = 4096;

  private final PmfsFileSystem fileSystem;
  private final boolean othersEnter;
  private final RequestLatencies latencies = new RequestLatencies();

  /**
   * Names do not change while mounted, so a path leads to the same directory for the whole session.
   */
  private final Cache<String, Long> directories =
      CacheBuilder.newBuilder().maximumSize(KNOWN_DIRECTORIES).build();

  /**
   * Operations of one session.
   *
   * @param othersEnter whether users other than the daemon's can enter the mount: with libfuse 2
   *     the kernel cannot apply access-control lists
   */
  JnrOperations(PmfsFileSystem fileSystem, boolean othersEnter) {
    this.fileSystem = fileSystem;
    this.othersEnter = othersEnter;
    if (othersEnter) {
      fileSystem.accessLists().follow();
    }
  }

  /** The inode with the mode that the kernel sees. */
  private Inode shown(long number) throws FsException {
    fileSystem.refresh(number);
    Inode inode = fileSystem.inode(number);
    return othersEnter ? fileSystem.accessLists().withLeastRights(inode) : inode;
  }

  RequestLatencies latencies() {
    return latencies;
  }

  /**
   * jnr-fuse calls this when the JVM ends and when mounting failed; {@link JnrBridge} unmounts in
   * its own order instead.
   */
  @Override
  public void umount() {}

  @Override
  public int getattr(String path, FileStat stat) {
    return answer(
        Opcode.GETATTR,
        path,
        () -> {
          int slash = path.lastIndexOf('/');
          try {
            if (slash == path.length() - 1) {
              fill(stat, shown(PmfsFileSystem.ROOT));
              return 0;
            }
            DirectoryEntry entry =
                fileSystem.findIfPresent(
                    directory(path.substring(0, slash)),
                    FileName.ofLatin1(path.substring(slash + 1)));
            if (entry == null) {
              return -Errno.ENOENT.number();
            }
            fill(stat, shown(entry.inode()));
            return 0;
          } catch (FsException e) {
            // libfuse makes the kernel cache each ENOENT, but an ENOENT from the source may be
            // temporary.
            throw e.errno() == Errno.ENOENT ? new FsException(Errno.ESTALE, path, e) : e;
          }
        });
  }

  @Override
  public int readlink(String path, Pointer buffer, long size) {
    return answer(
        Opcode.READLINK,
        path,
        () -> {
          byte[] target = fileSystem.readSymbolicLink(inode(path)).bytes();
          if (size > 0) {
            int count = (int) Math.min(target.length, size - 1);
            buffer.put(0, target, 0, count);
            buffer.putByte(count, (byte) 0);
          }
          return 0;
        });
  }

  /**
   * ENOSYS, once: the kernel then opens files without asking, and keeps their data in its page
   * cache. Files that other nodes describe must be opened here, which drops that data.
   */
  @Override
  public int open(String path, FuseFileInfo info) {
    if (!fileSystem.isSecondHand()) {
      return -Errno.ENOSYS.number();
    }
    return answer(
        Opcode.OPEN,
        path,
        () -> {
          fileSystem.open(inode(path));
          return 0;
        });
  }

  @Override
  public int read(String path, Pointer buffer, long size, long offset, FuseFileInfo info) {
    return answer(
        Opcode.READ,
        path,
        null,
        offset,
        size,
        () -> {
          int count = Math.toIntExact(size);
          var reply = new Reply(NativeMemory.view(buffer.address(), count));
          return fileSystem.read(inode(path), offset, count, reply);
        });
  }

  /** Collects the pieces of a read in libfuse's buffer. */
  private static final class Reply implements ReadSink {
    private final ByteBuffer buffer;

    Reply(ByteBuffer buffer) {
      this.buffer = buffer;
    }

    @Override
    public ByteBuffer buffer(int size) {
      return buffer.slice(buffer.position(), size);
    }

    @Override
    public void accept(ReadResult piece) throws IOException {
      int before = buffer.position();
      try {
        piece.copyTo(buffer);
      } catch (IOException e) {
        buffer.position(before);
        throw e;
      }
    }

    @Override
    public int received() {
      return buffer.position();
    }
  }

  @Override
  public int opendir(String path, FuseFileInfo info) {
    return 0;
  }

  @Override
  public int readdir(
      String path, Pointer buffer, FuseFillDir filler, long offset, FuseFileInfo info) {
    return answer(
        Opcode.READDIR,
        path,
        null,
        offset,
        -1,
        () -> {
          long directory = inode(path);
          Filler fill = new Filler(buffer, filler);
          if (offset < 1 && !fill.add(".", directory, BY_DIRECTORY, 1)) {
            return 0;
          }
          if (offset < DOTS && !fill.add("..", directory, BY_DIRECTORY, DOTS)) {
            return 0;
          }
          fileSystem.list(
              directory,
              Math.max(0, offset - DOTS),
              entry ->
                  fill.add(
                      entry.name().toLatin1(),
                      entry.inode(),
                      entry.type().number() << 12,
                      entry.position() + DOTS));
          return 0;
        });
  }

  private static final int BY_DIRECTORY = FileStat.S_IFDIR;

  /** Passes entries to libfuse until its buffer is full. */
  private static final class Filler {
    private final Pointer buffer;
    private final FuseFillDir filler;
    private final FileStat stat = new FileStat(Posix.RUNTIME);

    Filler(Pointer buffer, FuseFillDir filler) {
      this.buffer = buffer;
      this.filler = filler;
    }

    boolean add(String name, long inode, int type, long nextOffset) {
      stat.st_ino.set(inode);
      stat.st_mode.set(type);
      return filler.apply(buffer, name, stat, nextOffset) == 0;
    }
  }

  @Override
  public int statfs(String path, Statvfs result) {
    return answer(
        Opcode.STATFS,
        path,
        () -> {
          StoreStatistics statistics = fileSystem.statistics();
          result.f_bsize.set(statistics.blockSize());
          result.f_frsize.set(statistics.fragmentSize());
          result.f_blocks.set(statistics.blocks());
          result.f_bfree.set(statistics.blocksFree());
          result.f_bavail.set(statistics.blocksAvailable());
          result.f_files.set(statistics.files());
          result.f_ffree.set(statistics.filesFree());
          result.f_namemax.set(statistics.nameMaximum());
          return 0;
        });
  }

  @Override
  public int getxattr(String path, String name, Pointer value, long size) {
    return answer(
        Opcode.GETXATTR,
        path,
        name,
        -1,
        size,
        () -> {
          byte[] bytes =
              name.equals(Bridge.PROBE)
                  ? null
                  : AccessRule.attribute(fileSystem, inode(path), FileName.ofLatin1(name));
          return bytes == null ? -Errno.ENODATA.number() : give(bytes, value, size);
        });
  }

  @Override
  public int listxattr(String path, Pointer list, long size) {
    return answer(
        Opcode.LISTXATTR,
        path,
        null,
        -1,
        size,
        () -> {
          Map<FileName, byte[]> attributes = fileSystem.extendedAttributes(inode(path));
          return give(AccessRule.names(attributes, getContext().uid.get()), list, size);
        });
  }

  /** The protocol of getxattr(2): a size of zero asks how much there is. */
  private static int give(byte[] bytes, Pointer destination, long size) {
    if (size == 0) {
      return bytes.length;
    }
    if (size < bytes.length) {
      return -Errno.ERANGE.number();
    }
    destination.put(0, bytes, 0, bytes.length);
    return bytes.length;
  }

  private long inode(String path) throws FsException {
    int slash = path.lastIndexOf('/');
    if (slash == path.length() - 1) {
      return PmfsFileSystem.ROOT;
    }
    return entry(path, slash).inode();
  }

  private DirectoryEntry entry(String path, int slash) throws FsException {
    return fileSystem.find(
        directory(path.substring(0, slash)), FileName.ofLatin1(path.substring(slash + 1)));
  }

  private long directory(String path) throws FsException {
    if (path.isEmpty()) {
      return PmfsFileSystem.ROOT;
    }
    Long known = directories.getIfPresent(path);
    if (known != null) {
      return known;
    }
    // Walks down from the root in a loop, not up recursively: a path may have thousands of names.
    long directory = PmfsFileSystem.ROOT;
    for (String name : path.substring(1).split("/", -1)) {
      directory = fileSystem.find(directory, FileName.ofLatin1(name)).inode();
    }
    directories.put(path, directory);
    return directory;
  }

  private static void fill(FileStat stat, Inode inode) {
    Attributes attributes = inode.attributes();
    stat.st_ino.set(inode.number());
    stat.st_mode.set(attributes.mode());
    stat.st_nlink.set(attributes.linkCount());
    stat.st_uid.set(attributes.uid());
    stat.st_gid.set(attributes.gid());
    stat.st_rdev.set(attributes.device());
    stat.st_size.set(attributes.size());
    stat.st_blocks.set(attributes.blocks());
    stat.st_blksize.set(BLOCK_BYTES);
    set(stat.st_atim, attributes.accessTime());
    set(stat.st_mtim, attributes.modificationTime());
    set(stat.st_ctim, attributes.changeTime());
  }

  private static void set(Timespec field, Instant time) {
    field.tv_sec.set(time.getEpochSecond());
    field.tv_nsec.set(time.getNano());
  }

  /** An operation that answers with a count, zero, or a negative errno. */
  @FunctionalInterface
  private interface Operation {
    int run() throws FsException;
  }

  private int answer(Opcode operation, String path, Operation body) {
    return answer(operation, path, null, -1, -1, body);
  }

  /** Turns every failure into an errno, in this one place: the mount survives a bug. */
  private int answer(
      Opcode operation,
      String path,
      @Nullable String name,
      long offset,
      long size,
      Operation body) {
    long begin = latencies.begin();
    int result = -Errno.EIO.number();
    try {
      result = body.run();
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        log.debug("{} {}: {}", operation, path, e.getMessage());
      }
      result = -e.errno().number();
    } catch (Throwable e) {
      log.error("{} {}", operation, path, e);
    }
    long nanos = latencies.end(operation, begin);
    RequestListener receiver = latencies.listener();
    if (receiver != null && nanos >= receiver.leastNanos()) {
      FuseContext asker = getContext();
      receiver.answered(
          new AnsweredRequest(
              new AskedRequest(
                  operation.word(),
                  asker.uid.get(),
                  asker.gid.get(),
                  asker.pid.get(),
                  0,
                  FileName.ofLatin1(path.substring(1)),
                  name == null ? null : FileName.ofLatin1(name),
                  offset,
                  size,
                  begin),
              Math.max(0, -result),
              operation == Opcode.READ && result >= 0 ? result : -1,
              nanos));
    }
    return result;
  }
}
