package io.pmfs.metadata;

import org.jspecify.annotations.Nullable;

/**
 * That a tier holds a whole copy of a file.
 *
 * @param tier the tier's name
 * @param codec how the copy is stored; 0 is raw
 * @param version the content it is a copy of
 * @param storedSize bytes it takes in the tier
 * @param blockSize bytes of content that one checksum covers; the last block may be shorter
 * @param checksums of the content, block by block; none for an empty file
 * @param pinned whether it is never to be evicted to make room
 * @param extent where it is in a bundle; null if it is a file of its own
 */
public record CopyRecord(
    String tier,
    int codec,
    SourceVersion version,
    long storedSize,
    int blockSize,
    Checksums checksums,
    boolean pinned,
    @Nullable Extent extent) {
  /** The same copy, pinned or not. */
  public CopyRecord pinned(boolean pin) {
    return new CopyRecord(tier, codec, version, storedSize, blockSize, checksums, pin, extent);
  }

  /** The same copy, elsewhere in its tier. */
  public CopyRecord at(@Nullable Extent place) {
    return new CopyRecord(tier, codec, version, storedSize, blockSize, checksums, pinned, place);
  }
}
