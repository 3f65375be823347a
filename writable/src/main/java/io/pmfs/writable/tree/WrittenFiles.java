package io.pmfs.writable.tree;

import io.pmfs.metadata.Attributes;
import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;

/**
 * What the tree needs of the contents of files. Do not call while holding the state's lock unless a
 * method says so. Thread-safe.
 */
public interface WrittenFiles {
  /** The present attributes of a file that is being written. */
  Attributes attributes(Inode inode) throws FsException;

  /**
   * Announces the present content of a file, if that is new.
   *
   * @return whether it was
   */
  boolean announce(long number, Caller caller) throws FsException;

  interface Action {
    void run() throws FsException;
  }

  /** Runs an action while nothing else uses the content of a file. */
  void alone(long number, Action action) throws FsException;

  /** Drops the content of a file, unless it is announced. The caller holds the state's lock. */
  void drop(State.Update update, Inode inode) throws FsException;
}
