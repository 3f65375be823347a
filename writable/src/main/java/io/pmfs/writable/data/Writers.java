package io.pmfs.writable.data;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Which node of a cluster has a file open for writing: one at a time. Safe for use by many threads.
 */
final class Writers {
  /** How long after close(2) a kernel may tell of the last close of a file. */
  static final long CLOSING_NANOS = 1_000_000_000;

  private record Writer(int node, int handles) {}

  private final Map<Long, Writer> files = new HashMap<>(); // GUARDED_BY(this)

  /** A node has one more handle that writes. */
  synchronized void begin(long inode, int node) throws FsException {
    check(inode, node);
    Writer writer = files.get(inode);
    files.put(inode, new Writer(node, writer == null ? 1 : writer.handles() + 1));
  }

  /** Fails with EBUSY if another node writes the file. */
  synchronized void check(long inode, int node) throws FsException {
    Writer writer = files.get(inode);
    if (writer != null && writer.node() != node) {
      throw new FsException(Errno.EBUSY, "inode " + inode + ": another node writes it");
    }
  }

  /**
   * The same, after the other node had a moment: its kernel tells of the last close of a file some
   * time after close(2).
   */
  synchronized void await(long inode, int node) throws FsException {
    long end = System.nanoTime() + CLOSING_NANOS;
    while (true) {
      Writer writer = files.get(inode);
      long left = end - System.nanoTime();
      if (writer == null || writer.node() == node || left <= 0) {
        check(inode, node);
        return;
      }
      try {
        wait(left / 1_000_000 + 1);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        end = System.nanoTime();
      }
    }
  }

  /** A node has one handle less. */
  synchronized void end(long inode, int node) {
    files.computeIfPresent(
        inode,
        (number, writer) -> {
          if (writer.node() != node) {
            return writer;
          }
          return less(writer);
        });
    notifyAll();
  }

  private static @Nullable Writer less(Writer writer) {
    return writer.handles() == 1 ? null : new Writer(writer.node(), writer.handles() - 1);
  }
}
