package io.pmfs.fuse.system;

import io.pmfs.posix.Errno;
import io.pmfs.tier.DaxFiles;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Files on persistent memory, through Linux system calls. The JDK gives access to descriptors only
 * with {@code --add-opens}; without that, nothing is detected, allocated or mapped.
 */
public final class LinuxDaxFiles implements DaxFiles {
  private static final Logger log = LoggerFactory.getLogger(LinuxDaxFiles.class);

  private static final LibC LIBC = LibC.INSTANCE;
  private static final byte[] EMPTY_PATH = {0};

  // struct statx, linux/stat.h.
  private static final int STATX_ATTRIBUTES_MASK = 56;
  private static final long STATX_ATTR_DAX = 0x200000;

  static final long HUGE_PAGE_BYTES = 2 << 20;

  private static final int PROT_READ = 1;
  private static final int MAP_SHARED = 1;

  @Override
  public @Nullable Boolean isDirect(FileChannel file) {
    return isDirect(Posix.descriptor(file));
  }

  /** Whether an open file is direct; null also if the descriptor is negative. */
  static @Nullable Boolean isDirect(int descriptor) {
    Pointer statx = Memory.allocateDirect(Posix.RUNTIME, Posix.STATX_SIZE);
    if (descriptor < 0
        || LIBC.statx(descriptor, EMPTY_PATH, Posix.AT_EMPTY_PATH, 0, statx) != 0
        || (statx.getLongLong(STATX_ATTRIBUTES_MASK) & STATX_ATTR_DAX) == 0) {
      // Kernels before 5.8 do not report it.
      return null;
    }
    return (statx.getLongLong(Posix.STATX_ATTRIBUTES) & STATX_ATTR_DAX) != 0;
  }

  /**
   * Allocates one huge page after another and then frees the excess. ext4 aligns requests of that
   * size, but not requests of a file's size (docs/decisions/0022).
   */
  @Override
  public void allocate(FileChannel file, long sizeBytes) throws IOException {
    int descriptor = Posix.descriptor(file);
    if (descriptor < 0) {
      return;
    }
    Errno failure = null;
    long done = 0;
    while (done < sizeBytes && failure == null) {
      failure = allocate(descriptor, done, HUGE_PAGE_BYTES);
      done += failure == null ? HUGE_PAGE_BYTES : 0;
    }
    if (failure == Errno.ENOSPC) {
      failure = allocate(descriptor, done, sizeBytes - done);
    }
    if (failure == Errno.ENOSPC) {
      // The text of the JDK for a failed write.
      throw new IOException("No space left on device");
    }
    if (failure == Errno.EDQUOT) {
      throw new IOException("Disk quota exceeded");
    }
    if (failure != null) {
      log.debug("fallocate of {} bytes: {}", sizeBytes, failure);
    }
    file.truncate(sizeBytes);
  }

  private static @Nullable Errno allocate(int descriptor, long offset, long sizeBytes) {
    while (LIBC.fallocate(descriptor, 0, offset, sizeBytes) != 0) {
      Errno errno = Posix.errno();
      if (errno != Errno.EINTR) {
        return errno;
      }
    }
    return null;
  }

  @Override
  public @Nullable FileMapping map(FileChannel file, long sizeBytes) {
    int descriptor = Posix.descriptor(file);
    if (descriptor < 0) {
      return null;
    }
    long address = LIBC.mmap(null, sizeBytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (address == -1) {
      log.debug("mmap of {} bytes: {}", sizeBytes, Posix.errno());
      return null;
    }
    return new Mapping(address, sizeBytes);
  }

  private static final class Mapping implements FileMapping {
    private final long address;
    private final long size;
    private volatile boolean closed;

    Mapping(long address, long size) {
      this.address = address;
      this.size = size;
    }

    @Override
    public ByteBuffer range(long offset, int count) {
      if (closed) {
        throw new IllegalStateException("the file is no longer mapped");
      }
      if (offset < 0 || count < 0 || offset > size - count) {
        throw new IndexOutOfBoundsException(count + " bytes at offset " + offset + " of " + size);
      }
      return NativeMemory.view(address + offset, count);
    }

    @Override
    public synchronized void close() {
      if (!closed) {
        closed = true;
        LIBC.munmap(address, size);
      }
    }
  }
}
