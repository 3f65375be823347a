package io.pmfs.stage.copies;

import io.pmfs.metadata.Inode;

/**
 * Which files this node holds, if several nodes hold a dataset together. May change while in use;
 * {@code Stager.shareChanged} is called then. Thread-safe.
 */
public interface Share {
  Share ALL = inode -> true;

  /** Whether this node holds the file. */
  boolean isOwn(Inode inode);

  /** How files of other nodes are treated when read here. */
  default RemoteCopies remoteCopies() {
    return RemoteCopies.KEEP;
  }
}
