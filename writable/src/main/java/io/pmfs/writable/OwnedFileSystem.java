package io.pmfs.writable;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The owner of a writable mount, as the other nodes of its cluster see it: they may keep the
 * content of new files themselves ({@link NodeData}).
 */
public interface OwnedFileSystem extends WritableFileSystem {
  /** Like {@link #create}; the content of a new file is kept by the node that asks. */
  Opened createHere(long directory, FileName name, int mode, int flags, Caller caller)
      throws FsException;

  /** Like {@link #open}; a file that is emptied is kept by the node that asks. */
  Opened openHere(long inode, int flags, Caller caller) throws FsException;

  /** Like {@link #attributes}, without what the node that writes a file knows of it. */
  Node recorded(long inode) throws FsException;

  /**
   * A node goes on writing to a data file that it keeps.
   *
   * @param low the first byte that it is about to change
   * @param onlyGrew whether the file only grew since the node asked last
   * @param pauses how often the node has stopped writing
   * @return the first byte that it may change, not behind {@code low}; -1 if the owner must write
   */
  long resume(
      long inode,
      long handle,
      long generation,
      long low,
      boolean onlyGrew,
      long pauses,
      Caller caller)
      throws FsException;

  /**
   * Like {@link #flush}; the owner need not ask what the node that asks has written.
   *
   * @param told null if the node did not write
   */
  void flushHere(long inode, long handle, NodeData.@Nullable Told told, Caller caller)
      throws FsException;

  /** Those of the asking node's data files that are of no use any more. */
  List<NodeData.Id> unused(List<NodeData.Id> files, Caller caller) throws FsException;
}
