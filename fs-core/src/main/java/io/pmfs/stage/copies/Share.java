package io.pmfs.stage.copies;

import io.pmfs.metadata.Inode;

/**
 * Which files this node holds, where several nodes hold a dataset together. May change while in
 * use; {@code Stager.shareChanged} is called then. Safe for use by many threads.
 */
public interface Share {
  /** A single node holds everything. */
  Share ALL = inode -> true;

  /** Whether this node holds the file. */
  boolean isOwn(Inode inode);

  /** How files of other nodes are treated when they are read here. */
  default RemoteCopies remoteCopies() {
    return RemoteCopies.KEEP;
  }
}
