package io.pmfs.tier;

import java.nio.ByteBuffer;

/** An open regular file of the backing store. Safe for use by many threads until closed. */
public interface SourceFile extends AutoCloseable {
  /**
   * Reads into the destination until it is full or the file ends.
   *
   * @param destination a direct buffer
   * @return bytes read; less than asked for only at the end of the file
   */
  int read(long offset, ByteBuffer destination) throws FsException;

  /**
   * The first byte of data at an offset or after it, as lseek(2) finds it by SEEK_DATA.
   *
   * @throws FsException ENXIO if there is none; any other reason if the file cannot tell
   */
  long seekData(long offset) throws FsException;

  /** The first hole at an offset or after it, the end of the file being one (SEEK_HOLE). */
  long seekHole(long offset) throws FsException;

  /** What the open file is now. */
  SourceStatus status() throws FsException;

  @Override
  void close();
}
