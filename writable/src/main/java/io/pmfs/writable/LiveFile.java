package io.pmfs.writable;

import java.time.Instant;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;

/**
 * A regular file that is open or was written to: its open descriptors, and what writes changed that
 * the tables do not have yet. Writers hold the lock exclusively, readers hold it shared.
 */
final class LiveFile {
  final long number;
  final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();

  int users; // GUARDED_BY(LiveFiles)

  /** Handles of this process that may write. */
  final AtomicInteger writers = new AtomicInteger();

  // GUARDED_BY(lock)
  /** The open data file; -1 if there is none, or it was closed to open others. */
  int file = -1;

  /** Instead of {@link #file}, if another node keeps the data. */
  @Nullable RemoteFile remote;

  int place;
  long generation;
  int source = -1;
  @Nullable Stat sourceStat;
  long countedBytes;
  long uncountedBytes;
  boolean isNameSynced;

  /** Whether it only grew since it was announced last, without gaps. */
  boolean onlyGrew = true;

  /** Bytes; -1 if only the data file knows. Of meaning while the inode is being written. */
  volatile long size = -1;

  volatile long blocks;
  volatile Instant modified = Instant.EPOCH;
  volatile Instant changed = Instant.EPOCH;

  LiveFile(long number) {
    this.number = number;
  }
}
