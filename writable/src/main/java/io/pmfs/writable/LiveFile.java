package io.pmfs.writable;

import io.pmfs.writable.journal.Stat;
import java.time.Instant;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;

/**
 * A regular file that is open or was written to: its open descriptors, and what writes changed that
 * the tables do not have yet. Writers hold the lock exclusively, readers hold it shared.
 */
public final class LiveFile {
  public final long number;
  public final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();

  public int users; // GUARDED_BY(LiveFiles)

  /** Handles of this process that may write. */
  public final AtomicInteger writers = new AtomicInteger();

  // GUARDED_BY(lock)
  /** The open data file; -1 if there is none, or it was closed to open others. */
  public int file = -1;

  /** Instead of {@link #file}, if another node keeps the data. */
  @Nullable public RemoteFile remote;

  public int place;
  public long generation;
  public int source = -1;
  @Nullable public Stat sourceStat;
  public long countedBytes;
  public long uncountedBytes;
  public boolean isNameSynced;

  /** Whether it only grew since it was announced last, without gaps. */
  public boolean onlyGrew = true;

  /** Bytes; -1 if only the data file knows. Of meaning while the inode is being written. */
  public volatile long size = -1;

  public volatile long blocks;
  public volatile Instant modified = Instant.EPOCH;
  public volatile Instant changed = Instant.EPOCH;

  public LiveFile(long number) {
    this.number = number;
  }
}
