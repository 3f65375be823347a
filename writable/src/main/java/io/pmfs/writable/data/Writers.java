package io.pmfs.writable.data;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.util.HashMap;
import java.util.Map;

/** The node of a cluster that has a file open for writing: at most one at a time. Thread-safe. */
final class Writers {
  /** Limit of the time between close(2) and the kernel's request for the last close. */
  static final long CLOSING_NANOS = 1_000_000_000;

  private record Writer(int node, int handles) {}

  private final Map<Long, Writer> files = new HashMap<>(); // GUARDED_BY(this)

  /** Counts a writable handle of a node; fails with EBUSY if another node writes the file. */
  synchronized void begin(long inode, int node) throws FsException {
    check(inode, node);
    Writer writer = files.get(inode);
    files.put(inode, new Writer(node, writer == null ? 1 : writer.handles() + 1));
  }

  synchronized boolean has(long inode) {
    return files.containsKey(inode);
  }

  /** Fails with EBUSY if another node writes the file. */
  synchronized void check(long inode, int node) throws FsException {
    Writer writer = files.get(inode);
    if (writer != null && writer.node() != node) {
      throw new FsException(Errno.EBUSY, "inode " + inode + ": another node writes it");
    }
  }

  /**
   * Like {@link #check}, but first gives the other node a moment: its kernel reports the last close
   * some time after close(2).
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

  /** A node has closed a writable handle. */
  synchronized void end(long inode, int node) {
    files.computeIfPresent(
        inode,
        (number, writer) -> {
          if (writer.node() != node) {
            return writer;
          }
          return writer.handles() == 1 ? null : new Writer(writer.node(), writer.handles() - 1);
        });
    notifyAll();
  }
}
