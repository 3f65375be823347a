package io.pmfs.shards;

import io.pmfs.posix.FsException;

/**
 * The map of a sparse member in GNU's pax format 1.0, which precedes the data: decimal numbers, one
 * per line, preceded by their count (GNU tar manual, "Storing Sparse Files").
 */
final class SparseMap {
  private static final int MAX_DIGITS = 18;
  private static final int CHUNK_BYTES = 4096;

  private final HeaderReader in;
  private final long limit;
  private byte[] chunk = new byte[0];
  private long chunkStart;
  private long at;

  /**
   * Starts before the first number.
   *
   * @param limit the end of the member
   */
  SparseMap(HeaderReader in, long start, long limit) {
    this.in = in;
    this.at = start;
    this.chunkStart = start;
    this.limit = limit;
  }

  Extents.Builder parse() throws FsException {
    Extents.Builder pieces = new Extents.Builder();
    long count = number();
    for (long i = 0; i < count; i++) {
      pieces.add(number(), number());
    }
    return pieces;
  }

  /** The first byte after the last number. */
  long end() {
    return at;
  }

  private long number() throws FsException {
    long number = 0;
    for (int digits = 0; digits <= MAX_DIGITS; digits++) {
      byte b = next();
      if (b == '\n' && digits > 0) {
        return number;
      }
      if (b < '0' || b > '9') {
        break;
      }
      number = 10 * number + b - '0';
    }
    throw new IllegalArgumentException("the map of a sparse member is damaged");
  }

  private byte next() throws FsException {
    if (at - chunkStart == chunk.length) {
      chunkStart = at;
      chunk = in.read(at, (int) Math.min(CHUNK_BYTES, limit - at));
      if (chunk.length == 0) {
        throw new IllegalArgumentException("the map of a sparse member has no end");
      }
    }
    return chunk[(int) (at++ - chunkStart)];
  }
}
