package io.pmfs.source;

import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/** An open regular file of the backing store. Thread-safe until closed. */
public interface SourceFile extends AutoCloseable {
  /**
   * Reads into the destination until it is full or the file ends.
   *
   * @param destination a direct buffer
   * @return bytes read; fewer than requested only at the end of the file
   */
  int read(long offset, ByteBuffer destination) throws FsException;

  /**
   * How many threads should read the whole file at once. If more than one, each calls {@link
   * #choose} for the next block.
   */
  default int streams() {
    return 1;
  }

  /**
   * The next block to read, in units of 1 MiB; -1 if none is available now. Waits a fraction of a
   * second at most.
   *
   * @param missing some of the unread blocks, including the first; not empty
   */
  default int choose(BitSet missing) throws FsException {
    return missing.nextSetBit(0);
  }

  /**
   * The offset of the first data at or after an offset, as lseek(2) finds it with SEEK_DATA.
   *
   * @throws FsException ENXIO if there is none; any other error if unknown
   */
  long seekData(long offset) throws FsException;

  /**
   * The offset of the first hole at or after an offset; the end of the file counts as one
   * (SEEK_HOLE).
   */
  long seekHole(long offset) throws FsException;

  /**
   * Its file descriptor, to be passed to another process while this file is open; -1 if it has
   * none.
   */
  default int descriptor() {
    return -1;
  }

  /**
   * A lent file with the whole content of this one, valid after this one is closed; null if there
   * is none. Does not wait for a copy in progress.
   */
  default @Nullable LentFile lend() {
    return null;
  }

  /**
   * Fails if the file is known not to be of the version that was opened. A second-hand store
   * compares the file with the source once; any other store needs no proof.
   *
   * @throws FsException ESTALE if it is of another version
   */
  default void prove() throws FsException {}

  /**
   * Like {@link #prove}, for a version of which there is a copy here: requests no content.
   *
   * @throws FsException ESTALE if there is another version now
   */
  default void proveCopy() throws FsException {}

  /** The current status of the open file. */
  SourceStatus status() throws FsException;

  @Override
  void close();
}
