package io.pmfs.shards;

import org.apache.commons.compress.archivers.tar.TarArchiveStructSparse;
import org.apache.commons.compress.archivers.tar.TarConstants;
import org.apache.commons.compress.archivers.tar.TarUtils;

/**
 * The map of a sparse member in GNU's old format: pairs of offset and size in its header, and in
 * blocks after it (GNU tar manual, "Old GNU Format").
 */
final class OldSparse {
  private static final int FIRST = 386;
  private static final int FIRST_COUNT = 4;
  private static final int FIRST_MORE = 482;
  private static final int REAL_SIZE = 483;
  private static final int NEXT_COUNT = 21;
  private static final int NEXT_MORE = 504;
  private static final int PAIR_BYTES =
      TarConstants.SPARSE_OFFSET_LEN + TarConstants.SPARSE_NUMBYTES_LEN;

  private final Extents.Builder pieces = new Extents.Builder();
  private final long size;
  private boolean continued;

  OldSparse(byte[] header) {
    size = TarUtils.parseOctalOrBinary(header, REAL_SIZE, TarConstants.REALSIZELEN_GNU);
    add(header, FIRST, FIRST_COUNT);
    continued = header[FIRST_MORE] != 0;
  }

  /** Whether another block of pairs follows. */
  boolean isContinued() {
    return continued;
  }

  void add(byte[] block) {
    add(block, 0, NEXT_COUNT);
    continued = block[NEXT_MORE] != 0;
  }

  /** Unused pairs begin with NUL. */
  private void add(byte[] block, int first, int count) {
    for (int at = first; at < first + count * PAIR_BYTES && block[at] != 0; at += PAIR_BYTES) {
      TarArchiveStructSparse piece = TarUtils.parseSparse(block, at);
      pieces.add(piece.getOffset(), piece.getNumbytes());
    }
  }

  /** The size of the file, holes included. */
  long size() {
    return size;
  }

  Extents.Builder pieces() {
    return pieces;
  }
}
