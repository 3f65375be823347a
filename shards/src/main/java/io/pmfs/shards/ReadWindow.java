package io.pmfs.shards;

import io.pmfs.posix.FsException;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A file that is read sequentially in pieces of any size, with large requests to the underlying
 * file. Used by one thread.
 */
final class ReadWindow implements SourceFile {
  private final SourceFile file;
  private final ByteBuffer window;
  private final Runnable beforeRequest;
  private long start;

  /** The file's status after the window was filled; null before the first fill. */
  private @Nullable SourceStatus status;

  /**
   * Reads from another file.
   *
   * @param file stays open when this is closed
   * @param window a direct buffer of the request size
   * @param beforeRequest called before each request to the file
   */
  ReadWindow(SourceFile file, ByteBuffer window, Runnable beforeRequest) {
    this.file = file;
    this.beforeRequest = beforeRequest;
    this.window = window.clear().limit(0);
  }

  @Override
  public int read(long offset, ByteBuffer destination) throws FsException {
    int first = destination.position();
    while (destination.hasRemaining()) {
      long at = offset + destination.position() - first;
      if (at < start || at >= start + window.limit()) {
        window.clear();
        start = at;
        int count = 0;
        try {
          beforeRequest.run();
          count = file.read(at, window);
          beforeRequest.run();
          status = file.status();
        } finally {
          window.position(0).limit(count);
        }
        if (count == 0) {
          break;
        }
      }
      int from = (int) (at - start);
      int count = Math.min(destination.remaining(), window.limit() - from);
      destination.put(window.duplicate().position(from).limit(from + count));
    }
    return destination.position() - first;
  }

  @Override
  public long seekData(long offset) throws FsException {
    return file.seekData(offset);
  }

  @Override
  public long seekHole(long offset) throws FsException {
    return file.seekHole(offset);
  }

  /** The status at the last read; everything read so far is of the same version. */
  @Override
  public SourceStatus status() throws FsException {
    SourceStatus seen = status;
    return seen == null ? file.status() : seen;
  }

  @Override
  public void close() {}
}
