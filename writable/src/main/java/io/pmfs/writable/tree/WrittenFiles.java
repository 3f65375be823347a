package io.pmfs.writable.tree;

import io.pmfs.metadata.Attributes;
import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;

/**
 * What the tree needs of the contents of files. Nobody calls these methods while holding the
 * state's lock unless a method says so. Safe for use by many threads.
 */
public interface WrittenFiles {
  /** The attributes of a file that is being written, as they are now. */
  Attributes attributes(Inode inode) throws FsException;

  /**
   * Tells the journal of the content of a file as it is now, if that is new.
   *
   * @return whether it was
   */
  boolean announce(long number, Caller caller) throws FsException;

  /** Something done with a file. */
  interface Action {
    void run() throws FsException;
  }

  /** Runs while nothing else uses the content of a file. */
  void alone(long number, Action action) throws FsException;

  /**
   * The content of a file is needed no more, unless the journal promised it. The caller holds the
   * state's lock.
   */
  void drop(State.Update update, Inode inode) throws FsException;
}
