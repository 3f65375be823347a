package io.pmfs.source;

import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/** An open regular file of the backing store. Safe for use by many threads until closed. */
public interface SourceFile extends AutoCloseable {
  /**
   * Reads into the destination until it is full or the file ends.
   *
   * @param destination a direct buffer
   * @return bytes read; fewer than requested only at the end of the file
   */
  int read(long offset, ByteBuffer destination) throws FsException;

  /**
   * How many threads should read a whole file of this kind at the same time. With more than one,
   * each asks {@link #choose} what to read.
   */
  default int streams() {
    return 1;
  }

  /**
   * The block to read next, of blocks of 1 MiB; -1 if none can be had now. Waits a fraction of a
   * second at most.
   *
   * @param missing some of the blocks that nobody has read yet, the first among them; not empty
   */
  default int choose(BitSet missing) throws FsException {
    return missing.nextSetBit(0);
  }

  /**
   * The offset of the first data at or after an offset, as lseek(2) finds it with SEEK_DATA.
   *
   * @throws FsException ENXIO if there is none; any other error if the file cannot tell
   */
  long seekData(long offset) throws FsException;

  /**
   * The offset of the first hole at or after an offset; the end of the file counts as one
   * (SEEK_HOLE).
   */
  long seekHole(long offset) throws FsException;

  /**
   * The number by which the operating system knows the open file, so that it can be passed to
   * another process while this file is open; -1 if it is no file of the operating system.
   */
  default int descriptor() {
    return -1;
  }

  /**
   * A file on loan with the whole content of this one, which outlives this; null if there is none
   * now. Does not wait for a copy that is being made.
   */
  default @Nullable LentFile lend() {
    return null;
  }

  /**
   * Fails if the file is known not to be of the version as which it was opened. A store that takes
   * the word of others looks at the file now, unless it has done so; any other has no doubt.
   *
   * @throws FsException ESTALE if it is of another version
   */
  default void prove() throws FsException {}

  /**
   * The same where a copy of the version is here already: asks nobody for content.
   *
   * @throws FsException ESTALE if there is another version now
   */
  default void proveCopy() throws FsException {}

  /** The current status of the open file. */
  SourceStatus status() throws FsException;

  @Override
  void close();
}
