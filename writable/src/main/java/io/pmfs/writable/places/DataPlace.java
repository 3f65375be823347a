package io.pmfs.writable.places;

import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.journal.Inode;
import org.jspecify.annotations.Nullable;

/** A place for data files, with a persistent number in the tables. Thread-safe. */
public abstract class DataPlace {
  private final int number;
  private final String name;

  DataPlace(int number, String name) {
    this.number = number;
    this.name = name;
  }

  public int number() {
    return number;
  }

  public String name() {
    return name;
  }

  /** Whether another node keeps its data files. */
  public boolean isOfNode() {
    return false;
  }

  /** Whether a data file here is obsolete once the source has its content. */
  public boolean isElsewhere() {
    return isOfNode();
  }

  /** A data file, not open; it need not exist. */
  public abstract DataFile file(NodeData.Id id) throws FsException;

  /** The data file if another node keeps it; null if this node does. */
  public @Nullable RemoteData remote(NodeData.Id id) throws FsException {
    return null;
  }

  /**
   * How many bytes a file has at least that was last written in an earlier session of its node, so
   * that no program there has it open; else 0.
   */
  public long leastSize(Inode inode) throws FsException {
    return 0;
  }

  /** The size of a data file; 0 if it is gone here. Fails if another node has no answer. */
  public abstract long size(NodeData.Id id) throws FsException;

  /**
   * Copies a range of a data file to an open file of the source.
   *
   * @param isOver whether that file has other content, so that holes are written as zeros
   * @throws FsException EIO if the data end before {@code end}
   */
  public abstract void copy(
      NodeData.Id id, int to, long from, long end, boolean isOver, DataCopy.Before before)
      throws FsException;

  /** Removes a data file, which need not exist. */
  public abstract void remove(NodeData.Id id) throws FsException;

  /** Fails unless the directory exists that held the data files of an inode. */
  public void checkThere(long inode) throws FsException {}

  /** Whether it probably has room for this many more bytes. */
  public abstract boolean hasRoom(long bytes);

  long usedBytes() {
    return 0;
  }

  /** Counts the data files of earlier processes; removes unknown ones. */
  void count(long end, DataPlaces.Left left) throws FsException {}

  void close() {}
}
