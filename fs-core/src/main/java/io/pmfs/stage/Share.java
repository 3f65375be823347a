package io.pmfs.stage;

import io.pmfs.metadata.Inode;

/**
 * Which files this node holds for all, where several nodes hold a dataset together. May change
 * while it is used; {@link Stager#shareChanged} is called then. Safe for use by many threads.
 */
public interface Share {
  /** A node by itself holds everything. */
  Share ALL =
      new Share() {
        @Override
        public boolean isOwn(Inode inode) {
          return true;
        }

        @Override
        public RemoteCopies remoteCopies() {
          return RemoteCopies.KEEP;
        }
      };

  /** Whether the file is one of those that this node holds. */
  boolean isOwn(Inode inode);

  /** What becomes of the others when they are read here. */
  RemoteCopies remoteCopies();
}
