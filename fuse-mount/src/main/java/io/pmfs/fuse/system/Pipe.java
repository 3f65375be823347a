package io.pmfs.fuse.system;

import io.pmfs.memory.ReadResult;
import io.pmfs.posix.Errno;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jnr.ffi.Pointer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A pipe that assembles an answer from a header and the pages of a file, by reference (splice(2)):
 * the bytes are not copied to the daemon's memory. Belongs to one worker.
 *
 * <p>INVARIANT: empty between answers.
 */
public final class Pipe implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Pipe.class);

  private static final LibC LIBC = LibC.INSTANCE;
  private static final int POSIX_FADV_DONTNEED = 4;
  private static final int F_SETPIPE_SZ = 1031; // fcntl(2)
  private static final int SPLICE_F_NONBLOCK = 2;

  /**
   * Room for a request of 1 MiB with its header, if permitted; else the size permitted to every
   * user for this many workers (/proc/sys/fs/pipe-user-pages-soft).
   */
  private static final int[] SIZES = {2 << 20, 512 << 10};

  /**
   * The header uses the slot of a page, and a range that starts within a page uses an extra slot;
   * pages have up to 64 KiB.
   */
  private static final int LOST_BYTES = 128 << 10;

  private static final int CLOSED = -1;

  /**
   * Whether this system and the file systems of tiers support splice: determined once for all
   * workers.
   */
  private static volatile boolean usable = true;

  private final int[] ends = {CLOSED, CLOSED};
  private final ByteBuffer offset = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
  private final Pointer offsetPointer = Pointer.wrap(Posix.RUNTIME, offset);
  private final ByteBuffer vector = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());
  private final long vectorAddress = Pointer.wrap(Posix.RUNTIME, vector).address();
  private int capacity;

  /** The end from which an answer is read. */
  public int output() {
    return ends[0];
  }

  /**
   * Fills the pipe with an answer. *
   *
   * @param header address of its header
   * @return false, with nothing in the pipe, if this system or the file's file system cannot splice
   *     or the answer does not fit
   * @throws IOException if the file could not be read; nothing is in the pipe then
   */
  public boolean fill(long header, int headerSize, ReadResult.FileRange range) throws IOException {
    if (!usable || !(isOpen() || open()) || range.size() > capacity) {
      return false;
    }
    int file = Posix.descriptor(range.file());
    if (file < 0) {
      log.warn(
          "no access to descriptors (--add-opens java.base/sun.nio.ch): copies are not spliced");
      usable = false;
      return false;
    }
    boolean filled = false;
    try {
      filled = LIBC.write(ends[1], header, headerSize) == headerSize && splice(file, range);
      return filled;
    } finally {
      if (!filled) {
        close();
      }
    }
  }

  /**
   * Fills the pipe with an answer from mapped memory. The pipe then holds the pages, even if the
   * file is deleted or truncated.
   *
   * @param memory its address
   * @return false also if the memory cannot be read: its file was truncated, or the memory is
   *     defective
   */
  public boolean fill(long header, int headerSize, long memory, int size) {
    if (!usable || !(isOpen() || open()) || size > capacity) {
      return false;
    }
    boolean filled = false;
    try {
      filled = LIBC.write(ends[1], header, headerSize) == headerSize && vmsplice(memory, size);
      return filled;
    } finally {
      if (!filled) {
        close();
      }
    }
  }

  private boolean vmsplice(long memory, int size) {
    int done = 0;
    while (done < size) {
      vector.putLong(0, memory + done).putLong(Long.BYTES, size - done);
      long count = LIBC.vmsplice(ends[1], vectorAddress, 1, SPLICE_F_NONBLOCK);
      if (count >= 0) {
        done += (int) count;
        continue;
      }
      Errno errno = Posix.errno();
      switch (errno) {
        case EINTR -> {}
        default -> {
          // EFAULT: the memory cannot be read. EAGAIN: the pipe has fewer slots than it has pages.
          log.debug("vmsplice: {}", errno);
          return false;
        }
      }
    }
    return true;
  }

  private boolean splice(int file, ReadResult.FileRange range) throws IOException {
    offset.putLong(0, range.position());
    int left = range.size();
    while (left > 0) {
      long count = LIBC.splice(file, offsetPointer, ends[1], null, left, 0);
      if (count == 0) {
        throw new EOFException("the file ends at " + offset.getLong(0));
      }
      if (count < 0) {
        Errno errno = Posix.errno();
        switch (errno) {
          case EINTR -> count = 0;
          case EINVAL, ENOSYS -> {
            log.info("the tier's file system cannot splice: its files are read into memory first");
            usable = false;
            return false;
          }
          default -> throw new IOException(errno.toString());
        }
      }
      left -= (int) count;
    }
    return true;
  }

  /**
   * Drops the pages of an answer from the page cache, because the mount caches the same bytes:
   * otherwise only half as many files would fit into memory.
   */
  public static void dropPages(ReadResult.FileRange range) {
    int file = Posix.descriptor(range.file());
    if (file >= 0) {
      LIBC.posix_fadvise(file, range.position(), range.size(), POSIX_FADV_DONTNEED);
    }
  }

  private boolean isOpen() {
    return ends[0] != CLOSED;
  }

  private boolean open() {
    if (LIBC.pipe2(ends, Posix.O_CLOEXEC) != 0) {
      log.warn("cannot create a pipe for answers: {}; they are copied", Posix.errno());
      usable = false;
      return false;
    }
    for (int size : SIZES) {
      int given = LIBC.fcntl(ends[1], F_SETPIPE_SZ, size);
      if (given > 0) {
        capacity = given - LOST_BYTES;
        return true;
      }
    }
    close();
    usable = false;
    return false;
  }

  /** Closes the pipe and drops its content; the next answer opens another. */
  @Override
  public void close() {
    for (int i = 0; i < ends.length; i++) {
      if (ends[i] != CLOSED) {
        LIBC.close(ends[i]);
        ends[i] = CLOSED;
      }
    }
  }
}
