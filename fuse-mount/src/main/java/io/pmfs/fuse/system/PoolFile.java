package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.pmfs.posix.Errno;
import io.pmfs.source.StoreStatistics;
import io.pmfs.tier.DaxVerdict;
import io.pmfs.tier.MappedMemory;
import io.pmfs.tier.PoolException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Objects;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A devdax character device or a file, mapped once and locked (flock(2)) against other processes.
 * Persistent memory is persisted by writing cache lines back.
 */
public final class PoolFile implements MappedMemory {
  private static final Logger log = LoggerFactory.getLogger(PoolFile.class);
  private static final LibC LIBC = LibC.INSTANCE;

  // sys/file.h, sys/mman.h; the same on every architecture.
  private static final int LOCK_EX = 2;
  private static final int LOCK_NB = 4;
  private static final int PROT_READ_WRITE = 3;
  private static final int MAP_SHARED = 1;
  private static final int MAP_SHARED_VALIDATE = 3;
  private static final int MAP_SYNC = 0x80000;
  private static final int MS_SYNC = 4;
  private static final int MADV_POPULATE_READ = 22;
  private static final int MADV_POPULATE_WRITE = 23;

  /** A pool's size is a multiple of it, also where the kernel's pages are larger. */
  private static final long PAGE_BYTES = 4096;

  /** The kernel refuses an address that is not at the beginning of one; 64 KiB on some AArch64. */
  private static final long KERNEL_PAGE_BYTES = LIBC.getpagesize();

  // struct statx, linux/stat.h.
  private static final int STATX_BLOCKS = 0x400;
  private static final int STATX_BLOCKS_OFFSET = 48;
  private static final int STATX_BLOCK_BYTES = 512;

  private static final String NO_ROOM =
      "there is no room for a pool of %d bytes; make it smaller or put it elsewhere";

  private static final int S_IFMT = 0170000;
  private static final int S_IFCHR = 0020000;

  /**
   * Buffers start at each GiB and are 2 GiB long, so every range of up to 1 GiB lies within one.
   */
  private static final long STRIDE = 1L << 30;

  /** How written data is made durable. */
  private enum Persistence {
    CACHE_LINES,
    PAGE_CACHE,
    NONE
  }

  private final int file;
  private final long address;
  private final long size;
  private final Persistence persistence;
  private final boolean device;
  private final DaxVerdict dax;
  private final ByteBuffer[] buffers;
  private volatile boolean checks = true;

  private PoolFile(
      int file, long address, long size, Persistence persistence, boolean device, DaxVerdict dax) {
    this.file = file;
    this.address = address;
    this.size = size;
    this.persistence = persistence;
    this.device = device;
    this.dax = dax;
    this.buffers = new ByteBuffer[Math.toIntExact((size + STRIDE - 1) / STRIDE)];
    for (int i = 0; i < buffers.length; i++) {
      long start = i * STRIDE;
      long length = Math.min(Math.min(2 * STRIDE, Integer.MAX_VALUE), size - start);
      buffers[i] = NativeMemory.view(address + start, (int) length);
    }
  }

  /**
   * Creates an empty file of that size for a pool, with room allocated for every byte.
   *
   * @throws PoolException if there is no room for it; nothing is left then
   */
  public static void create(Path path, long sizeBytes) throws IOException {
    Files.createFile(
        path, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    try {
      resize(path, sizeBytes);
    } catch (Throwable e) {
      Files.deleteIfExists(path);
      throw e;
    }
  }

  /** Sets the size of an empty file. */
  public static void resize(Path path, long sizeBytes) throws IOException {
    int file = openFile(path);
    try {
      boolean huge = Files.getFileStore(path).type().equals("hugetlbfs");
      long unit = huge ? pageBytes(file) : PAGE_BYTES;
      if (!huge) {
        checkRoom(file, sizeBytes);
      }
      check(LIBC.ftruncate(file, sizeBytes / unit * unit), "cannot be resized");
      fill(file, sizeBytes / unit * unit);
    } finally {
      LIBC.close(file);
    }
  }

  /** Checks for room first, so that a pool that does not fit does not fill up the file system. */
  private static void checkRoom(int file, long size) throws IOException {
    Pointer statx = Memory.allocateDirect(Posix.RUNTIME, Posix.STATX_SIZE);
    check(
        LIBC.statx(file, new byte[] {0}, Posix.AT_EMPTY_PATH, STATX_BLOCKS, statx),
        "its allocated size cannot be read");
    long taken = statx.getLongLong(STATX_BLOCKS_OFFSET) * STATX_BLOCK_BYTES;
    StoreStatistics disk = statistics(file);
    if ((size - taken) / disk.fragmentSize() > disk.blocksAvailable()) {
      throw new PoolException(NO_ROOM.formatted(size));
    }
  }

  /**
   * Allocates room for every byte of a file, because a store to a byte without room ends the
   * process. On DAX, allocates one huge page at a time, so that the kernel can map huge pages
   * (docs/decisions/0022).
   */
  private static void fill(int file, long size) throws PoolException {
    long step =
        Boolean.TRUE.equals(LinuxDaxFiles.isDirect(file)) ? LinuxDaxFiles.HUGE_PAGE_BYTES : size;
    for (long at = 0; at < size; at += step) {
      if (LIBC.fallocate(file, 0, at, Math.min(step, size - at)) != 0) {
        Errno errno = Posix.errno();
        throw new PoolException(
            switch (errno) {
              case ENOSPC -> NO_ROOM.formatted(size);
              case EOPNOTSUPP -> "its file system cannot allocate room; put it elsewhere";
              default -> "room for it cannot be allocated: " + errno;
            });
      }
    }
  }

  /**
   * Maps an existing device or file.
   *
   * @throws PoolException if it is in use, or cannot be a pool
   * @throws IOException if it cannot be opened or mapped
   */
  public static PoolFile open(Path path) throws IOException {
    int file = openFile(path);
    try {
      if (LIBC.flock(file, LOCK_EX | LOCK_NB) != 0) {
        throw new PoolException("is in use by another mount; unmount that, or name another pool");
      }
      return isDevice(path) ? mapDevice(file, path) : mapFile(file, path);
    } catch (Throwable e) {
      LIBC.close(file);
      throw e;
    }
  }

  private static int openFile(Path path) throws IOException {
    int file = LIBC.open(Posix.terminated(path.toString()), Posix.O_RDWR | Posix.O_CLOEXEC);
    check(file, "cannot be opened");
    return file;
  }

  private static boolean isDevice(Path path) throws IOException {
    return ((Integer) Files.getAttribute(path, "unix:mode") & S_IFMT) == S_IFCHR;
  }

  private static PoolFile mapDevice(int file, Path path) throws IOException {
    Path device = deviceDirectory(path);
    if (!Files.exists(device.resolve("size")) || !isDax(device)) {
      throw new PoolException(
          "is not a dax device; name one, such as /dev/dax0.0, a file, or a directory");
    }
    requireCacheLines();
    long size = Long.parseLong(Files.readString(device.resolve("size"), US_ASCII).trim());
    long address = map(file, size, MAP_SHARED);
    return new PoolFile(
        file,
        address,
        size,
        Persistence.CACHE_LINES,
        true,
        new DaxVerdict(true, "dax device: its memory is mapped, and read without copying"));
  }

  /** The sysfs directory of a character device. */
  static Path deviceDirectory(Path path) throws IOException {
    long number = (Long) Files.getAttribute(path, "unix:rdev");
    long major = (number >>> 8 & 0xfff) | (number >>> 32 & 0xfffff000L);
    long minor = (number & 0xff) | (number >>> 12 & 0xffffff00L);
    return Path.of("/sys/dev/char/" + major + ":" + minor);
  }

  private static boolean isDax(Path device) throws IOException {
    return device.resolve("subsystem").toRealPath().endsWith("dax");
  }

  private static PoolFile mapFile(int file, Path path) throws IOException {
    String type = Files.getFileStore(path).type();
    boolean huge = type.equals("hugetlbfs");
    long unit = huge ? pageBytes(file) : PAGE_BYTES;
    long size = Files.size(path) / unit * unit;
    if (size == 0) {
      throw new PoolException("has %d bytes, too few for a pool".formatted(Files.size(path)));
    }
    if (!huge) {
      checkRoom(file, size);
      long direct = LIBC.mmap(null, size, PROT_READ_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, file, 0);
      if (direct != -1) {
        try {
          requireCacheLines();
        } catch (PoolException e) {
          LIBC.munmap(direct, size);
          throw e;
        }
        return new PoolFile(
            file,
            direct,
            size,
            Persistence.CACHE_LINES,
            false,
            new DaxVerdict(true, type + " maps persistent memory directly"));
      }
    }
    long address = map(file, size, MAP_SHARED);
    boolean memory = huge || type.equals("tmpfs");
    return new PoolFile(
        file,
        address,
        size,
        memory ? Persistence.NONE : Persistence.PAGE_CACHE,
        false,
        new DaxVerdict(
            false,
            "emulated: a file on "
                + type
                + (memory
                    ? ", whose memory is not persistent"
                    : ", which is not mounted with dax on persistent memory")));
  }

  private static long pageBytes(int file) throws IOException {
    return statistics(file).blockSize();
  }

  private static StoreStatistics statistics(int file) throws IOException {
    Pointer result = Memory.allocateDirect(Posix.RUNTIME, Posix.STATVFS_SIZE);
    check(LIBC.fstatvfs(file, result), "the size of its file system cannot be read");
    return Posix.statistics(result);
  }

  private static long map(int file, long size, int flags) throws IOException {
    long address = LIBC.mmap(null, size, PROT_READ_WRITE, flags, file, 0);
    check(address, "cannot be mapped");
    return address;
  }

  private static void requireCacheLines() throws PoolException {
    String obstacle = CacheLines.obstacle();
    if (obstacle != null) {
      throw new PoolException(obstacle);
    }
  }

  private static void check(long result, String what) throws IOException {
    if (result == -1) {
      throw new IOException(what + ": " + Posix.errno());
    }
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public DaxVerdict dax() {
    return dax;
  }

  @Override
  public ByteBuffer slice(long offset, int count) {
    Objects.checkFromIndexSize(offset, count, size);
    int index = (int) (offset / STRIDE);
    // At the end of the pool, an empty range may start after the last buffer.
    ByteBuffer buffer = buffers[Math.min(index, buffers.length - 1)];
    long start = Math.min(index, buffers.length - 1) * STRIDE;
    return buffer.slice((int) (offset - start), count).order(ByteOrder.LITTLE_ENDIAN);
  }

  @Override
  public void fill() throws PoolException {
    if (!device) {
      fill(file, size);
    }
  }

  @Override
  public void check(long offset, long count, boolean write) throws IOException {
    Objects.checkFromIndexSize(offset, count, size);
    if (!checks || count == 0) {
      return;
    }
    long start = offset / KERNEL_PAGE_BYTES * KERNEL_PAGE_BYTES;
    int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    if (LIBC.madvise(address + start, offset + count - start, advice) == 0) {
      return;
    }
    Errno errno = Posix.errno();
    switch (errno) {
      case EINVAL -> {
        log.info("this kernel cannot check whether memory is readable (Linux 5.14 and later can)");
        checks = false;
      }
      case EINTR, EAGAIN -> {}
      default ->
          throw new IOException(
              "%d bytes at offset %d of the pool cannot be %s (%s): the memory is defective, or its"
                      .formatted(count, offset, write ? "written" : "read", errno)
                  + " file was truncated");
    }
  }

  boolean checks() {
    return checks;
  }

  @Override
  public void persist(long offset, long count) {
    Objects.checkFromIndexSize(offset, count, size);
    if (persistence == Persistence.CACHE_LINES && count > 0) {
      CacheLines.writeBack(address + offset, count);
    }
  }

  @Override
  public void sync(long offset, long count) throws IOException {
    persist(offset, count);
    if (persistence == Persistence.PAGE_CACHE) {
      long start = offset / KERNEL_PAGE_BYTES * KERNEL_PAGE_BYTES;
      check(LIBC.msync(address + start, offset + count - start, MS_SYNC), "cannot be written");
    }
  }

  @Override
  public void close() {
    if (LIBC.munmap(address, size) != 0) {
      log.warn("cannot unmap a pool: {}", Posix.errno());
    }
    LIBC.close(file);
  }
}
