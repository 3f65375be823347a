package io.pmfs.writable;

import java.time.Instant;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * A data file that this node keeps for the owner of the mount. Writers hold the lock exclusively,
 * readers hold it shared; nobody asks the owner while holding it.
 */
public final class KeptFile {
  final NodeData.Id id;
  final int place;
  final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();

  // GUARDED_BY(lock)
  int users;
  int file = -1;
  long countedBytes;

  /** Whether this node may write without asking. */
  boolean isWriting;

  /** The first byte that it may change. */
  long floor;

  /** Grows whenever the owner has learned what the file is. */
  long freezes;

  /** Whether it only grew since this node asked the owner last. */
  boolean onlyGrew;

  boolean isNameSynced;
  Instant modified = Instant.EPOCH;
  volatile long size;

  /** Whether it is of no use any more: the owner has the content, or nobody needs it. */
  volatile boolean isGone;

  KeptFile(NodeData.Id id, int place) {
    this.id = id;
    this.place = place;
  }

  /** The number of its inode and its generation. */
  public NodeData.Id id() {
    return id;
  }
}
