package io.pmfs.writable.places;

import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.NodeData.Frozen;
import java.nio.ByteBuffer;
import java.time.Instant;

/**
 * A data file: one generation of a file's content, in a place. The caller holds the file's lock,
 * exclusively unless stated otherwise.
 */
public interface DataFile extends DataCopy.Source {
  NodeData.Id id();

  DataPlace place();

  /** Whether this node keeps it. */
  boolean isHere();

  /** Whether it exists, as far as this node can tell without asking another one. */
  boolean isThere();

  /** Opens it if it exists and is closed. */
  void open() throws FsException;

  /** Whether it can be read without further preparation; the caller may hold the lock shared. */
  boolean isReadable(boolean isWriting);

  /**
   * Reads until the buffer is full or the file ends; the caller may hold the lock shared.
   *
   * @return how many bytes
   */
  int read(ByteBuffer destination, long offset) throws FsException;

  @Override
  default ByteBuffer read(long offset, int wanted) throws FsException {
    return DataCopy.read(buffer -> read(buffer, offset), wanted);
  }

  /**
   * The state that an earlier process or another node wrote; that node must ask before it writes
   * again.
   *
   * @param empty the state if the file was not created yet
   */
  Frozen freeze(Frozen empty) throws FsException;

  /** Whether it may have been synced, by this process or an earlier one. */
  boolean mayBeSynced();

  /** Syncs it and its name. */
  void sync(Frozen empty) throws FsException;

  /** Sets its times, so that the next process does not take it for a written file. */
  void setTimes(Instant accessTime, Instant modificationTime) throws FsException;

  /** Closes it; it can be reopened. */
  void close();
}
