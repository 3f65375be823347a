package io.pmfs.tier;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import org.jspecify.annotations.Nullable;

/** System calls for files on persistent memory that the JDK does not offer. Thread-safe. */
public interface DaxFiles {
  /** For systems without these calls: reports unknown, allocates nothing and maps nothing. */
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
   * Whether reading, writing and mapping a file go directly to the memory that holds it, bypassing
   * the page cache (DAX); null if unknown.
   */
  @Nullable Boolean isDirect(FileChannel file);

  /**
   * Extends an empty file to this size and allocates its room at once, in huge pages if the file
   * system has them; does nothing if the system lacks the call.
   *
   * @throws IOException if there is no room
   */
  void allocate(FileChannel file, long sizeBytes) throws IOException;

  /** Maps the start of a file of any size for reading; null if that fails. */
  @Nullable FileMapping map(FileChannel file, long sizeBytes);

  /**
   * A mapped file. Touching its memory beyond the file's current end kills the process with SIGBUS:
   * pass it only to system calls, which return EFAULT instead.
   */
  interface FileMapping extends AutoCloseable {
    /** A direct buffer of a range; must not be used after {@link #close}. */
    ByteBuffer range(long offset, int size);

    @Override
    void close();
  }
}
