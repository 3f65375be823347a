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

  /** Data with holes. */
  public interface Source {
    /**
     * The next data or hole at or after an offset, as lseek(2); anything behind the end if none.
     */
    long seek(long offset, int whence) throws FsException;

    /**
     * Reads at most so many bytes, and none only at the end.
     *
     * @return for {@link CopyBuffers#give}
     */
    ByteBuffer read(long offset, int wanted) throws FsException;
  }

  public interface Reading {
    int read(ByteBuffer destination) throws FsException;
  }

  interface Target {
    void write(ByteBuffer bytes, long offset) throws FsException;
  }

  private DataCopy() {}

  /** Copies data between two offsets; skips holes. Fails with EIO if they end before. */
  public static void copy(OutputCalls calls, int from, int to, long offset, long end, Before before)
      throws FsException {
    copy(file(calls, from), (bytes, at) -> calls.write(to, bytes, at), offset, end, before);
  }

  /** The same with data that need not be in files. */
  static void copy(Source from, Target to, long offset, long end, Before before)
      throws FsException {
    long at = offset;
    while (at < end) {
      long data = nextData(from, at, end);
      long hole = next(from, data, end, OutputCalls.SEEK_HOLE);
      copyRange(from, to, data, hole, before);
      at = hole;
    }
  }

  /** The data of an open file. */
  static Source file(OutputCalls calls, int file) {
    return new Source() {
      @Override
      public long seek(long offset, int whence) throws FsException {
        return calls.seek(file, offset, whence);
      }

      @Override
      public ByteBuffer read(long offset, int wanted) throws FsException {
        return DataCopy.read(buffer -> calls.read(file, buffer, offset), wanted);
      }
    };
  }

  /** Reads as a {@link Source} does. */
  public static ByteBuffer read(Reading from, int wanted) throws FsException {
    ByteBuffer buffer = CopyBuffers.take();
    try {
      buffer.limit(Math.min(wanted, buffer.capacity()));
      int count = from.read(buffer);
      return buffer.position(0).limit(count);
    } catch (FsException e) {
      CopyBuffers.give(buffer);
      throw e;
    }
  }

  /** Copies data to the beginning of a file, replacing its other content. */
  public static void copyOver(OutputCalls calls, int from, int to, long end, Before before)
      throws FsException {
    Source source = file(calls, from);
    long at = 0;
    while (at < end) {
      long data = nextData(source, at, end);
      clear(calls, to, at, data - at);
      long hole = next(source, data, end, OutputCalls.SEEK_HOLE);
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

  private static void copyRange(Source from, Target to, long data, long hole, Before before)
      throws FsException {
    long at = data;
    while (at < hole) {
      ByteBuffer bytes = from.read(at, (int) Math.min(CopyBuffers.BYTES, hole - at));
      try {
        int count = bytes.remaining();
        if (count == 0) {
          throw new FsException(Errno.EIO, "the data end before " + hole);
        }
        before.writing(count);
        to.write(bytes, at);
        at += count;
      } finally {
        CopyBuffers.give(bytes);
      }
    }
  }

  /** The next data, or the end if only a hole is left; data that end before are no hole. */
  private static long nextData(Source from, long offset, long end) throws FsException {
    long data = next(from, offset, end, OutputCalls.SEEK_DATA);
    if (data == end) {
      copyRange(from, (bytes, at) -> {}, end - 1, end, bytes -> {});
    }
    return data;
  }

  /** The next data or hole; a file system that cannot tell reports no holes. */
  private static long next(Source from, long offset, long end, int whence) throws FsException {
    if (offset >= end) {
      return end;
    }
    try {
      return Math.min(end, from.seek(offset, whence));
    } catch (FsException e) {
      if (e.errno() == Errno.EINTR) {
        throw e;
      }
      boolean isEnd = e.errno() == Errno.ENXIO || whence == OutputCalls.SEEK_HOLE;
      return isEnd ? end : offset;
    }
  }
}
