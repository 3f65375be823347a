package io.pmfs.writable.places;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import java.nio.ByteBuffer;

/** Copies the data of open files. Thread-safe. */
public final class DataCopy {
  /** Called with a number of bytes before they are written; may wait. */
  public interface Before {
    void writing(int bytes) throws FsException;
  }

  public interface Target {
    void write(ByteBuffer bytes, long offset) throws FsException;
  }

  private DataCopy() {}

  static void requireAll(long there, long end) throws FsException {
    if (there < end) {
      throw new FsException(Errno.EIO, "%d of %d bytes are left of the data".formatted(there, end));
    }
  }

  /** Copies data between two offsets; skips holes. */
  public static void copy(OutputCalls calls, int from, int to, long offset, long end, Before before)
      throws FsException {
    copy(calls, from, (bytes, at) -> calls.write(to, bytes, at), offset, end, before);
  }

  /** Copies data to a target that need not be a file; skips holes. */
  public static void copy(
      OutputCalls calls, int from, Target to, long offset, long end, Before before)
      throws FsException {
    ByteBuffer buffer = CopyBuffers.take();
    try {
      long at = offset;
      while (at < end) {
        long data = next(calls, from, at, end, OutputCalls.SEEK_DATA);
        long hole = next(calls, from, data, end, OutputCalls.SEEK_HOLE);
        at = copyRange(calls, from, to, data, hole, buffer, before);
      }
    } finally {
      CopyBuffers.give(buffer);
    }
  }

  /** Copies data to the beginning of a file, replacing its other content. */
  public static void copyOver(OutputCalls calls, int from, int to, long end, Before before)
      throws FsException {
    long at = 0;
    while (at < end) {
      long data = next(calls, from, at, end, OutputCalls.SEEK_DATA);
      clear(calls, to, at, data - at);
      long hole = next(calls, from, data, end, OutputCalls.SEEK_HOLE);
      copy(calls, from, to, data, hole, before);
      at = hole;
    }
  }

  /** Punches a hole, or writes zeros where the file system does not support that. */
  private static void clear(OutputCalls calls, int file, long offset, long length)
      throws FsException {
    if (length == 0) {
      return;
    }
    try {
      int mode = OutputCalls.FALLOC_PUNCH_HOLE | OutputCalls.FALLOC_KEEP_SIZE;
      calls.allocate(file, mode, offset, length);
      return;
    } catch (FsException e) {
      if (e.errno() != Errno.EOPNOTSUPP) {
        throw e;
      }
    }
    ByteBuffer buffer = CopyBuffers.take();
    try {
      buffer.clear();
      while (buffer.hasRemaining()) {
        buffer.put((byte) 0);
      }
      for (long at = offset; at < offset + length; at += buffer.limit()) {
        buffer.clear().limit((int) Math.min(buffer.capacity(), offset + length - at));
        calls.write(file, buffer, at);
      }
    } finally {
      CopyBuffers.give(buffer);
    }
  }

  private static long copyRange(
      OutputCalls calls,
      int from,
      Target to,
      long data,
      long hole,
      ByteBuffer buffer,
      Before before)
      throws FsException {
    long at = data;
    while (at < hole) {
      buffer.clear().limit((int) Math.min(buffer.capacity(), hole - at));
      int count = calls.read(from, buffer, at);
      if (count == 0) {
        return hole;
      }
      buffer.flip();
      before.writing(count);
      to.write(buffer, at);
      at += count;
    }
    return at;
  }

  /** The next data or hole; a file system that cannot tell reports no holes. */
  private static long next(OutputCalls calls, int file, long offset, long end, int whence) {
    if (offset >= end) {
      return end;
    }
    try {
      return Math.min(end, calls.seek(file, offset, whence));
    } catch (FsException e) {
      boolean isEnd = e.errno() == Errno.ENXIO || whence == OutputCalls.SEEK_HOLE;
      return isEnd ? end : offset;
    }
  }
}
