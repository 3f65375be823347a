package io.pmfs.writable;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * The data files that one node of a cluster keeps of a writable mount, as the mount's owner sees
 * them. All requests may be repeated. Safe for use by many threads.
 */
public interface NodeData {
  /** Content up to this size goes to the owner when a file is closed. */
  int SMALL_BYTES = 1 << 20;

  /**
   * A data file as it is now.
   *
   * @param blocks of 512 bytes
   * @param onlyGrew whether it only grew since its node last asked to write to it
   * @param content all of it, if it is at most {@link #SMALL_BYTES}; else null
   */
  record Frozen(
      long size, long blocks, Instant modified, boolean onlyGrew, @Nullable ByteBuffer content) {
    /** Throws IllegalArgumentException for what no file is: any member can send this. */
    public Frozen {
      if (size < 0 || blocks < 0 || (content != null && content.remaining() != size)) {
        throw new IllegalArgumentException("not the content of a file");
      }
    }
  }

  /**
   * A data file to which its node has stopped writing without being asked.
   *
   * @param pauses how often it has stopped
   */
  record Told(Id file, long pauses, Frozen frozen) {}

  /** A data file. */
  record Id(long inode, long generation) {}

  /**
   * An unfinished copy at the source, which the owner has made.
   *
   * @param directory its path below the source; empty for the source itself
   * @param inode its number at the source
   * @param uid who may write it
   */
  record Target(FileName directory, FileName name, long inode, int uid, int gid) {
    /** Throws IllegalArgumentException for any other file: any member can send this. */
    public Target {
      if (!directory.isBelow() || !name.isEntry() || !TemporaryNames.contains(name)) {
        throw new IllegalArgumentException("not an unfinished copy below the source");
      }
    }
  }

  /**
   * Tells what a data file is now. It stays so until its node has asked the owner again ({@link
   * OwnedFileSystem#resume}).
   *
   * @param sync whether it is to survive a power cut first
   * @throws FsException with ENOENT if the node has no such file
   */
  Frozen freeze(Id file, boolean sync) throws FsException;

  /** At most so many bytes, fewer at the end of the file only; at most 1 MiB. */
  byte[] read(Id file, long offset, int size) throws FsException;

  void setTimes(Id file, Instant accessTime, Instant modificationTime) throws FsException;

  /**
   * Copies a range to a file of the source, where it survives the node.
   *
   * @param end where the range ends: not behind the end of the data file
   */
  void copy(Id file, Target target, long from, long end) throws FsException;

  /** The nodes of a cluster. */
  interface Nodes {
    /**
     * The data files of a node.
     *
     * @param node its id, which persists
     * @param name for messages
     * @throws FsException if no node can be asked
     */
    NodeData on(UUID node, String name) throws FsException;
  }
}
