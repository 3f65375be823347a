package io.pmfs.writable.places;

import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.NodeData.Frozen;
import java.nio.ByteBuffer;
import java.time.Instant;

/**
 * A data file: the content of a file in one of its generations, in a place. The caller holds the
 * lock of the file, exclusively unless said otherwise.
 */
public interface DataFile {
  NodeData.Id id();

  DataPlace place();

  /** Whether this node keeps it. */
  boolean isHere();

  /** Whether it is there, as far as this node can say without asking another one. */
  boolean isThere();

  /** Opens it if it is there and was closed. */
  void open() throws FsException;

  /** Whether it can be read as it is; the caller may hold the lock shared. */
  boolean isReadable(boolean isWriting);

  /**
   * Reads into the buffer, at most to the end of the file; the caller may hold the lock shared.
   *
   * @return how many bytes
   */
  int read(ByteBuffer destination, long offset) throws FsException;

  /** The next data or hole at or behind an offset before the end, as lseek(2). */
  long seek(long offset, long size, int whence) throws FsException;

  /**
   * What a former process, or another node, wrote; it writes no more before it has asked again.
   *
   * @param empty what it is if it was not made yet
   */
  Frozen freeze(Frozen empty) throws FsException;

  /** Makes it and its name survive the machine. */
  void sync(Frozen empty) throws FsException;

  /** The next process does not take the file for one that was written. */
  void setTimes(Instant accessTime, Instant modificationTime) throws FsException;

  /** Fills another data file with its first bytes. */
  void fill(LocalData to, long size) throws FsException;

  /** Closes it; it can be opened again. */
  void close();
}
