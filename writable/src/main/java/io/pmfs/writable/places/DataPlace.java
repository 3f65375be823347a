package io.pmfs.writable.places;

import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import org.jspecify.annotations.Nullable;

/**
 * A place for data files. The tables know it by a number, which persists. Safe for use by many
 * threads.
 */
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

  /** Its name, for messages. */
  public String name() {
    return name;
  }

  /** Whether another node keeps its data files. */
  public boolean isOfNode() {
    return false;
  }

  /** Whether a data file here is no use once the source has its content. */
  public boolean isElsewhere() {
    return isOfNode();
  }

  /** A data file, which need not be there, and is not open. */
  public abstract DataFile file(NodeData.Id id) throws FsException;

  /** The data file that another node keeps here; null if this node does. */
  public @Nullable RemoteData remote(NodeData.Id id) throws FsException {
    return null;
  }

  /** The size of a data file; 0 if it is gone here. Another node may not have its disk yet. */
  public abstract long size(NodeData.Id id) throws FsException;

  /**
   * Copies a range of a data file to an open file of the source.
   *
   * @param isOver whether that file has other content, of which nothing is to be left in holes
   * @throws FsException EIO if the data end before {@code end}
   */
  public abstract void copy(
      NodeData.Id id, int to, long from, long end, boolean isOver, DataCopy.Before before)
      throws FsException;

  /** Removes a data file, which need not be there. */
  public abstract void remove(NodeData.Id id) throws FsException;

  /** Makes sure that the directory is there in which the data files of an inode were. */
  public void checkThere(long inode) throws FsException {}

  /** Whether it seems to take so many more bytes. */
  public abstract boolean hasRoom(long bytes);

  /** The room that its data files take, in bytes. */
  long usedBytes() {
    return 0;
  }

  /** Counts the data files of former processes; removes those that are not known. */
  void count(long end, DataPlaces.Left left) throws FsException {}

  void close() {}
}
