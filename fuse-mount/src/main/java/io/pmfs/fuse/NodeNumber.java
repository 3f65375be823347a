package io.pmfs.fuse;

/**
 * The numbers that a read-only mount gives its files in the protocol: the inode number, and in the
 * highest byte the generation. Each generation is thus a file of its own to every kernel, without
 * attributes and pages of others, and each request names the generation that it is about.
 */
public final class NodeNumber {
  private static final int SHIFT = 56;

  private NodeNumber() {}

  static long of(long inode, byte generation) {
    return inode | (long) generation << SHIFT;
  }

  public static long inode(long node) {
    return node & (1L << SHIFT) - 1;
  }

  static byte generation(long node) {
    return (byte) (node >>> SHIFT);
  }
}
