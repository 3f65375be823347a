package io.pmfs.fuse.system;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;

/**
 * Reads open directories by getdents64(2). Thread-safe.
 *
 * <p>Keeps one buffer for each concurrent listing, because only the garbage collector would free
 * them.
 */
final class Listings {
  private static final int BYTES = 64 * 1024;

  private final Queue<Pointer> buffers = new ConcurrentLinkedQueue<>();

  interface Visitor {
    /**
     * Called for each name except "." and "..".
     *
     * @param type as in struct linux_dirent64; 0 if the file system does not tell
     */
    void visit(FileName name, long inode, int type);

    /** Called after each system call; returns whether to continue. */
    default boolean continues() {
      return true;
    }
  }

  /** Lists a directory from its file's position on; the path is for messages. */
  void list(int directory, FileName path, Visitor visitor) throws FsException {
    Pointer kept = buffers.poll();
    Pointer buffer = kept == null ? Memory.allocateDirect(Posix.RUNTIME, BYTES) : kept;
    try {
      while (true) {
        long count =
            Posix.retried(
                () -> LibC.INSTANCE.syscall(Posix.SYS_GETDENTS64, directory, buffer, BYTES));
        if (count < 0) {
          throw Posix.failure(path);
        }
        if (count == 0) {
          return;
        }
        parse(buffer, count, visitor);
        if (!visitor.continues()) {
          return;
        }
      }
    } finally {
      buffers.add(buffer);
    }
  }

  /** Struct linux_dirent64: inode 8, offset 8, record length 2, type 1, name up to a NUL. */
  private static void parse(Pointer buffer, long count, Visitor visitor) {
    for (long at = 0; at < count; at += buffer.getShort(at + 16) & 0xffff) {
      int size = buffer.indexOf(at + 19, (byte) 0);
      byte[] name = new byte[size];
      buffer.get(at + 19, name, 0, size);
      FileName found = FileName.of(name);
      if (!found.isDots()) {
        visitor.visit(found, buffer.getLongLong(at), buffer.getByte(at + 18));
      }
    }
  }
}
