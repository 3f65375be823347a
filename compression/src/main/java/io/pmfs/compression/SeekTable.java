package io.pmfs.compression;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * The positions of the frames of a file in the zstd seekable format. Immutable.
 *
 * <p>Such a file is a sequence of independent frames and, at the end, a skippable frame with this
 * table; see zstd's {@code contrib/seekable_format/zstd_seekable_compression_format.md}. The last
 * offset is the end of the last frame.
 */
public final class SeekTable {
  /** The most frames read or written; zstd's own library accepts 2^27. */
  public static final int MAX_FRAMES = 1 << 22;

  private static final int SKIPPABLE_MAGIC = 0x184d2a5e;
  private static final int SEEKABLE_MAGIC = 0x8f92eab1;
  private static final int HEADER_BYTES = 8;
  private static final int FOOTER_BYTES = 9;
  private static final int ENTRY_BYTES = 8;
  private static final int CHECKSUM_FLAG = 0x80;
  private static final int RESERVED_FLAGS = 0x7c;

  /** The recommended buffer size for {@link #load}. */
  public static final int READ_BYTES = 64 * 1024;

  private final long[] compressedOffsets;
  private final long[] contentOffsets;

  private SeekTable(int frameCount) {
    compressedOffsets = new long[frameCount + 1];
    contentOffsets = new long[frameCount + 1];
  }

  /** A file whose bytes can be read at any offset. */
  public interface Source<X extends Exception> {
    /** Fills the (direct) destination. */
    void read(long offset, ByteBuffer destination) throws X;
  }

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
   * Loads the table at the end of a file. Because the file may contain anything, this checks
   * everything except the content of the frames.
   *
   * @param memory a direct buffer for reading: {@link #READ_BYTES}, or at least a few hundred bytes
   * @throws CodecException if there is no table that describes a file of that size
   */
  public static <X extends Exception> SeekTable load(
      long fileSize, ByteBuffer memory, Source<X> file) throws X, CodecException {
    check(fileSize >= HEADER_BYTES + FOOTER_BYTES, "the file is too short");
    ByteBuffer buffer = memory.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    file.read(fileSize - FOOTER_BYTES, buffer.clear().limit(FOOTER_BYTES));
    buffer.flip();
    int count = buffer.getInt();
    int descriptor = buffer.get();
    check(buffer.getInt() == SEEKABLE_MAGIC, "the file does not end with one");
    check((descriptor & RESERVED_FLAGS) == 0, "it has unknown flags");
    check(count >= 0 && count <= MAX_FRAMES, "it has too many frames");
    int entryBytes = (descriptor & CHECKSUM_FLAG) == 0 ? ENTRY_BYTES : ENTRY_BYTES + Integer.BYTES;
    long tableBytes = HEADER_BYTES + (long) count * entryBytes + FOOTER_BYTES;
    check(tableBytes <= fileSize, "it is larger than the file");
    long start = fileSize - tableBytes;
    file.read(start, buffer.clear().limit(HEADER_BYTES));
    buffer.flip();
    check(buffer.getInt() == SKIPPABLE_MAGIC, "its header is missing");
    check(
        Integer.toUnsignedLong(buffer.getInt()) == tableBytes - HEADER_BYTES,
        "its header has another size");
    SeekTable table = new SeekTable(count);
    table.readEntries(start + HEADER_BYTES, entryBytes, buffer, file);
    check(table.compressedOffset(count) == start, "the frames do not add up to the file's size");
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
        check(compressedSize > 0, "it has a frame of 0 bytes");
        long contentSize = Integer.toUnsignedLong(entries.getInt(i * entryBytes + Integer.BYTES));
        set(first + i, compressedSize, contentSize);
      }
    }
  }

  /** The sum of 2^22 unsigned 32-bit sizes fits in a long. */
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

  public long compressedOffset(int frame) {
    return compressedOffsets[frame];
  }

  /** The size of a frame in the file; up to 2^32 - 1 in a foreign file. */
  public long compressedSize(int frame) {
    return compressedOffsets[frame + 1] - compressedOffsets[frame];
  }

  /** Where a frame's content begins in the content of the file. */
  public long contentOffset(int frame) {
    return contentOffsets[frame];
  }

  /** The size of a frame's content; up to 2^32 - 1 in a foreign file, and possibly 0. */
  public long contentSize(int frame) {
    return contentOffsets[frame + 1] - contentOffsets[frame];
  }

  public long contentSize() {
    return contentOffsets[frameCount()];
  }

  /** The frame that contains the byte at this offset, which must be within the content. */
  public int frameOf(long contentOffset) {
    if (contentOffset < 0 || contentOffset >= contentSize()) {
      throw new IndexOutOfBoundsException("offset " + contentOffset + " of " + contentSize());
    }
    // Finds the first frame that ends after the offset. A plain binary search may return a frame
    // without content.
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

  /** The size of the result of {@link #encode} for that many frames. */
  public static long encodedSize(int frameCount) {
    return HEADER_BYTES + (long) frameCount * ENTRY_BYTES + FOOTER_BYTES;
  }

  /**
   * Encodes the skippable frame at the end of the file. It has no checksums, because the frames
   * carry their own.
   */
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
