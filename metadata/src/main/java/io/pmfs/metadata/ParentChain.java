package io.pmfs.metadata;

import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/** The names of an inode and its parents, up to the root, joined to its path. */
final class ParentChain {
  private static final int MAX_DEPTH = 100_000;

  private ParentChain() {}

  /** The path below the root; null if the inode or one of its parents is gone. */
  static @Nullable FileName path(RocksNamespace namespace, long number) {
    Deque<FileName> names = new ArrayDeque<>();
    for (long at = number; at != Namespace.ROOT; ) {
      Inode inode = namespace.inode(at);
      if (inode == null) {
        return null;
      }
      if (names.size() == MAX_DEPTH) {
        throw namespace.database().damaged("the chain of parents of inode " + number);
      }
      names.push(inode.name());
      at = inode.parent();
    }
    if (namespace.inode(Namespace.ROOT) == null) {
      return null;
    }
    return join(names);
  }

  private static FileName join(Deque<FileName> names) {
    int size = Math.max(0, names.size() - 1);
    for (FileName name : names) {
      size = Math.addExact(size, name.size());
    }
    byte[] path = new byte[size];
    int at = 0;
    for (FileName name : names) {
      if (at > 0) {
        path[at++] = '/';
      }
      System.arraycopy(name.raw(), 0, path, at, name.size());
      at += name.size();
    }
    return FileName.wrap(path);
  }
}
