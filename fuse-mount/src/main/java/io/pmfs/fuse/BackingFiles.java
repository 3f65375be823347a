package io.pmfs.fuse;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.concurrent.ConcurrentHashMap;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The files that the kernel reads without us, by inode. A copy is registered when its file is first
 * opened and stays registered, for the next open, until it goes or others push it out; what is open
 * stays readable whatever happens to the registration.
 *
 * <p>The kernel wants all opens of an inode to agree: as long as one is open through us, so is the
 * next, and the other way round.
 */
final class BackingFiles {
  private static final Logger log = LoggerFactory.getLogger(BackingFiles.class);

  /** Stands for: read through us. The kernel's ids start at 1. */
  static final int NONE = 0;

  // _IOW(229, 1, struct fuse_backing_map) and _IOW(229, 2, uint32_t) of linux/fuse.h.
  private static final long BACKING_OPEN = 0x4010e501L;
  private static final long BACKING_CLOSE = 0x4004e502L;
  private static final int BACKING_MAP_SIZE = 16;

  private static final int REGISTERED = 4096;
  private static final LibC LIBC = LibC.INSTANCE;

  private final PmfsFileSystem fileSystem;
  private final int device;
  private final ConcurrentHashMap<Long, OpenInode> open = new ConcurrentHashMap<>();
  private final Cache<Long, Integer> registered =
      CacheBuilder.newBuilder()
          .maximumSize(REGISTERED)
          .<Long, Integer>removalListener(removal -> unregister(removal.getValue()))
          .build();
  private volatile @Nullable String unavailable;

  BackingFiles(PmfsFileSystem fileSystem, int device) {
    this.fileSystem = fileSystem;
    this.device = device;
    fileSystem.onCopyGone(registered::invalidate);
  }

  private record OpenInode(int backing, int count) {}

  /** Why the kernel reads nothing without us; null as far as is known it does. */
  @Nullable String unavailable() {
    return unavailable;
  }

  void setUnavailable(String why) {
    if (unavailable == null) {
      unavailable = why;
      log.warn("no passthrough: {}; files are read through the daemon and the page cache", why);
    }
  }

  /** Opens a file: the id of its backing file, or {@link #NONE} to read it through us. */
  int open(long inode) throws FsException {
    OpenInode before = open.get(inode);
    int candidate = before == null ? backing(inode) : NONE;
    return open.compute(
            inode,
            (number, now) ->
                now == null
                    ? new OpenInode(candidate, 1)
                    : new OpenInode(now.backing, now.count + 1))
        .backing;
  }

  /** Closes what was opened once. */
  void release(long inode) {
    open.computeIfPresent(
        inode, (number, now) -> now.count == 1 ? null : new OpenInode(now.backing, now.count - 1));
  }

  private int backing(long inode) throws FsException {
    Integer known = registered.getIfPresent(inode);
    if (known != null) {
      return known;
    }
    Path file = fileSystem.copyFile(inode);
    if (file == null || unavailable != null) {
      return NONE;
    }
    int id = register(file);
    if (id != NONE) {
      registered.put(inode, id);
    }
    return id;
  }

  private int register(Path path) {
    int file = LIBC.openat(Posix.AT_FDCWD, Posix.terminated(path.toString()), Posix.O_CLOEXEC);
    if (file < 0) {
      return NONE;
    }
    try {
      ByteBuffer map = ByteBuffer.allocateDirect(BACKING_MAP_SIZE).order(ByteOrder.nativeOrder());
      map.putInt(0, file);
      int id = LIBC.ioctl(device, BACKING_OPEN, Pointer.wrap(Posix.RUNTIME, map).address());
      if (id <= 0) {
        refused(Posix.errno());
        return NONE;
      }
      return id;
    } finally {
      LIBC.close(file);
    }
  }

  private void refused(Errno errno) {
    setUnavailable(
        switch (errno) {
          case EPERM -> "the daemon lacks CAP_SYS_ADMIN";
          case ELOOP -> "the tier lies on a stacked file system";
          default -> "the kernel refuses a backing file with " + errno;
        });
  }

  private void unregister(int id) {
    ByteBuffer number = ByteBuffer.allocateDirect(Integer.BYTES).order(ByteOrder.nativeOrder());
    number.putInt(0, id);
    LIBC.ioctl(device, BACKING_CLOSE, Pointer.wrap(Posix.RUNTIME, number).address());
  }

  /** Before the device is closed. */
  void close() {
    registered.invalidateAll();
  }
}
