package io.pmfs.tier;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import org.jspecify.annotations.Nullable;

/**
 * What the system does for files on persistent memory, and the JDK has no call for. Safe for use by
 * many threads.
 */
public interface DaxFiles {
  /** Where none of it can be had: it knows nothing, allocates nothing and maps nothing. */
  DaxFiles NONE =
      new DaxFiles() {
        @Override
        public @Nullable Boolean isDirect(FileChannel file) {
          return null;
        }

        @Override
        public void allocate(FileChannel file, long sizeBytes) {}

        @Override
        public @Nullable FileMapping map(FileChannel file, long sizeBytes) {
          return null;
        }
      };

  /**
   * Whether reading, writing and mapping a file goes to the memory that holds it, past the page
   * cache (DAX); null if that is not known.
   */
  @Nullable Boolean isDirect(FileChannel file);

  /**
   * Makes an empty file that large and gives it its room at once, in pieces that the kernel can map
   * whole where the file system has such; nothing happens where there is no such call.
   *
   * @throws IOException if there is no room
   */
  void allocate(FileChannel file, long sizeBytes) throws IOException;

  /** Maps the beginning of a file for reading, of any size; null if it cannot be. */
  @Nullable FileMapping map(FileChannel file, long sizeBytes);

  /**
   * A mapped file. Whoever touches memory of it behind the end that the file has by then ends with
   * SIGBUS: it is for system calls, which say EFAULT instead.
   */
  interface FileMapping extends AutoCloseable {
    /** A range of it, direct; not to be used after {@link #close}. */
    ByteBuffer range(long offset, int size);

    @Override
    void close();
  }
}
