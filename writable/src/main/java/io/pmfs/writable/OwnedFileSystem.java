package io.pmfs.writable;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The owner of a writable mount, as the other nodes of its cluster see it. Those may keep the
 * content of new files themselves ({@link NodeData}).
 */
public interface OwnedFileSystem extends WritableFileSystem {
  /** Like {@link #create}; the calling node keeps the content of a new file. */
  Opened createHere(long directory, FileName name, int mode, int flags, Caller caller)
      throws FsException;

  /** Like {@link #open}; the calling node keeps the content of a file that is truncated to zero. */
  Opened openHere(long inode, int flags, Caller caller) throws FsException;

  /** Like {@link #attributes}, without asking the node that writes the file. */
  Node recorded(long inode) throws FsException;

  /**
   * A node asks to go on writing to a data file that it keeps.
   *
   * @param low the first byte that it is about to change
   * @param onlyGrew whether the file only grew since the node asked last
   * @param pauses how often the node has stopped writing
   * @return the first byte that it may change, at most {@code low}; -1 if the owner must do the
   *     write
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
   * Like {@link #flush}; the calling node reports what it has written.
   *
   * @param paused null if the node did not write
   */
  void flushHere(long inode, long handle, NodeData.@Nullable Paused paused, Caller caller)
      throws FsException;

  /**
   * Closes what a request has opened whose answer did not arrive.
   *
   * @param unique the number of the request
   */
  void closeUnanswered(long unique, Caller caller);

  /** The calling node's data files that are no longer needed. */
  List<NodeData.Id> unused(List<NodeData.Id> files, Caller caller) throws FsException;
}
