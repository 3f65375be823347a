package io.pmfs.compression;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Where each frame of a file in the zstd seekable format lies. Immutable.
 *
 * <p>Such a file is a row of independent frames and, last, a skippable frame with this table; see
 * zstd's {@code contrib/seekable_format/zstd_seekable_compression_format.md}. Offsets are given for
 * one frame more than there are: where the last one ends.
 */
public final class SeekTable {
  /** What we read and write; 2^27 are what the format's own library takes. */
  public static final int MAX_FRAMES = 1 << 22;

  private static final int SKIPPABLE_MAGIC = 0x184d2a5e;
  private static final int SEEKABLE_MAGIC = 0x8f92eab1;
  private static final int HEADER_BYTES = 8;
  private static final int FOOTER_BYTES = 9;
  private static final int ENTRY_BYTES = 8;
  private static final int CHECKSUM_FLAG = 0x80;
  private static final int RESERVED_FLAGS = 0x7c;

  /** What {@link #read} is best given to read with. */
  public static final int READ_BYTES = 64 * 1024;

  private final long[] compressedOffsets;
  private final long[] contentOffsets;

  private SeekTable(int frameCount) {
    compressedOffsets = new long[frameCount + 1];
    contentOffsets = new long[frameCount + 1];
  }

  /** A file whose bytes can be had at any offset. */
  public interface Source<X extends Exception> {
    /** Fills the (direct) destination. */
    void read(long offset, ByteBuffer destination) throws X;
  }

  /** The table of frames of these sizes. */
  public static SeekTable of(int[] compressedSizes, int[] contentSizes) {
    if (compressedSizes.length != contentSizes.length || compressedSizes.length > MAX_FRAMES) {
      throw new IllegalArgumentException(compressedSizes.length + " frames");
    }
    SeekTable table = new SeekTable(compressedSizes.length);
    for (int frame = 0; frame < compressedSizes.length; frame++) {
      table.set(frame, compressedSizes[frame], contentSizes[frame]);
    }
    return table;
  }

  /**
   * Reads the table at the end of a file, which may say anything: all of it is checked but what the
   * frames themselves hold.
   *
   * @param memory direct, to read with: {@link #READ_BYTES}, at least a few hundred bytes
   * @throws CodecException if there is no table that describes a file of that size
   */
  public static <X extends Exception> SeekTable read(
      long fileSize, ByteBuffer memory, Source<X> file) throws X, CodecException {
    check(fileSize >= HEADER_BYTES + FOOTER_BYTES, "the file is too short");
    ByteBuffer buffer = memory.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    file.read(fileSize - FOOTER_BYTES, buffer.clear().limit(FOOTER_BYTES));
    buffer.flip();
    int count = buffer.getInt();
    int descriptor = buffer.get();
    check(buffer.getInt() == SEEKABLE_MAGIC, "it does not end in one");
    check((descriptor & RESERVED_FLAGS) == 0, "it has flags that have no meaning");
    check(count >= 0 && count <= MAX_FRAMES, "it has too many frames");
    int entryBytes = (descriptor & CHECKSUM_FLAG) == 0 ? ENTRY_BYTES : ENTRY_BYTES + Integer.BYTES;
    long tableBytes = HEADER_BYTES + (long) count * entryBytes + FOOTER_BYTES;
    check(tableBytes <= fileSize, "it is larger than the file");
    long start = fileSize - tableBytes;
    file.read(start, buffer.clear().limit(HEADER_BYTES));
    buffer.flip();
    check(buffer.getInt() == SKIPPABLE_MAGIC, "it does not begin as one");
    check(
        Integer.toUnsignedLong(buffer.getInt()) == tableBytes - HEADER_BYTES,
        "it disagrees about its size");
    SeekTable table = new SeekTable(count);
    table.readEntries(start + HEADER_BYTES, entryBytes, buffer, file);
    check(table.compressedOffset(count) == start, "the frames' sizes do not add up");
    return table;
  }

  private <X extends Exception> void readEntries(
      long offset, int entryBytes, ByteBuffer entries, Source<X> file) throws X, CodecException {
    int atOnce = entries.capacity() / entryBytes;
    for (int first = 0; first < frameCount(); first += atOnce) {
      int count = Math.min(atOnce, frameCount() - first);
      entries.clear().limit(count * entryBytes);
      file.read(offset + (long) first * entryBytes, entries);
      for (int i = 0; i < count; i++) {
        long compressedSize = Integer.toUnsignedLong(entries.getInt(i * entryBytes));
        check(compressedSize > 0, "it has a frame without bytes");
        long contentSize = Integer.toUnsignedLong(entries.getInt(i * entryBytes + Integer.BYTES));
        set(first + i, compressedSize, contentSize);
      }
    }
  }

  /** Sums of 2^22 numbers of 32 bits: they do not overflow. */
  private void set(int frame, long compressedSize, long contentSize) {
    compressedOffsets[frame + 1] = compressedOffsets[frame] + compressedSize;
    contentOffsets[frame + 1] = contentOffsets[frame] + contentSize;
  }

  private static void check(boolean holds, String problem) throws CodecException {
    if (!holds) {
      throw new CodecException("no seek table: " + problem, null);
    }
  }

  public int frameCount() {
    return contentOffsets.length - 1;
  }

  /** Where a frame begins in the file. */
  public long compressedOffset(int frame) {
    return compressedOffsets[frame];
  }

  /** Bytes of a frame in the file; up to 2^32 - 1 in a foreign one. */
  public long compressedSize(int frame) {
    return compressedOffsets[frame + 1] - compressedOffsets[frame];
  }

  /** Where a frame's content begins in the whole content. */
  public long contentOffset(int frame) {
    return contentOffsets[frame];
  }

  /** Bytes of a frame's content; up to 2^32 - 1 in a foreign file, and 0 is possible. */
  public long contentSize(int frame) {
    return contentOffsets[frame + 1] - contentOffsets[frame];
  }

  /** Bytes of the whole content. */
  public long contentSize() {
    return contentOffsets[frameCount()];
  }

  /** The frame that holds the byte at that offset of the content, which must lie within it. */
  public int frameOf(long contentOffset) {
    if (contentOffset < 0 || contentOffset >= contentSize()) {
      throw new IndexOutOfBoundsException("offset " + contentOffset + " of " + contentSize());
    }
    // The first that ends behind it: among frames without content a plain search may hit any.
    int low = 0;
    int high = frameCount() - 1;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (contentOffsets[middle + 1] > contentOffset) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  /** Bytes that {@link #encode} gives for so many frames. */
  public static long encodedSize(int frameCount) {
    return HEADER_BYTES + (long) frameCount * ENTRY_BYTES + FOOTER_BYTES;
  }

  /** The skippable frame that ends the file. Frames carry their checksums, so it has none. */
  public ByteBuffer encode() {
    int size = Math.toIntExact(encodedSize(frameCount()));
    ByteBuffer out = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
    out.putInt(SKIPPABLE_MAGIC).putInt(size - HEADER_BYTES);
    for (int frame = 0; frame < frameCount(); frame++) {
      out.putInt((int) compressedSize(frame)).putInt((int) contentSize(frame));
    }
    return out.putInt(frameCount()).put((byte) 0).putInt(SEEKABLE_MAGIC).flip();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof SeekTable table
        && Arrays.equals(compressedOffsets, table.compressedOffsets)
        && Arrays.equals(contentOffsets, table.contentOffsets);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(compressedOffsets) + Arrays.hashCode(contentOffsets);
  }

  @Override
  public String toString() {
    return frameCount() + " frames with " + contentSize() + " bytes of content";
  }
}
