package io.pmfs.writable;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * The data files that one node of a cluster keeps for a writable mount, as the mount's owner sees
 * them. Every request is idempotent. Thread-safe.
 */
public interface NodeData {
  /** Content up to this size is sent to the owner when a file is closed. */
  int SMALL_BYTES = 1 << 20;

  /**
   * The state of a frozen data file.
   *
   * @param blocks of 512 bytes
   * @param onlyGrew whether it only grew since its node last asked for permission to write
   * @param content the whole content, if at most {@link #SMALL_BYTES}; else null
   */
  record Frozen(
      long size, long blocks, Instant modified, boolean onlyGrew, @Nullable ByteBuffer content) {
    /** Rejects impossible values from another node with an IllegalArgumentException. */
    public Frozen {
      if (size < 0 || blocks < 0 || (content != null && content.remaining() != size)) {
        throw new IllegalArgumentException("malformed file content");
      }
    }
  }

  /**
   * A data file that its node stopped writing on its own.
   *
   * @param pauses how often it has stopped
   */
  record Paused(Id file, long pauses, Frozen frozen) {}

  record Id(long inode, long generation) {}

  /**
   * An unfinished copy at the source, created by the owner.
   *
   * @param directory its path below the source; empty for the source itself
   * @param inode its number at the source
   * @param uid who may write it
   */
  record Target(FileName directory, FileName name, long inode, int uid, int gid) {
    /** Rejects any other file from another node with an IllegalArgumentException. */
    public Target {
      if (!directory.isBelow() || !name.isEntry() || !TemporaryNames.contains(name)) {
        throw new IllegalArgumentException("not an unfinished copy below the source");
      }
    }
  }

  /**
   * Freezes a data file and returns its state. The file stays frozen until its node asks the owner
   * again ({@link OwnedFileSystem#resume}).
   *
   * @param sync whether to sync it first
   * @throws FsException with ENOENT if the node has no such file
   */
  Frozen freeze(Id file, boolean sync) throws FsException;

  /** Reads at most this many bytes, at most 1 MiB; fewer only at the end of the file. */
  byte[] read(Id file, long offset, int size) throws FsException;

  void setTimes(Id file, Instant accessTime, Instant modificationTime) throws FsException;

  /**
   * Copies a range to a file of the source and syncs it.
   *
   * @param end end of the range, not beyond the end of the data file
   */
  void copy(Id file, Target target, long from, long end) throws FsException;

  interface Nodes {
    /**
     * The data files of a node.
     *
     * @param node its id, which persists
     * @param name for messages
     * @throws FsException if other nodes cannot be reached at all
     */
    NodeData on(UUID node, String name) throws FsException;

    /** A node is there again: from now on, a request waits for it as for any other. */
    default void isBack(UUID node) {}
  }
}
