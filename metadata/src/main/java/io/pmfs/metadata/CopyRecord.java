package io.pmfs.metadata;

import org.jspecify.annotations.Nullable;

/**
 * Records that a tier holds a whole copy of a file.
 *
 * @param tier the tier's name
 * @param codec how the copy is stored; 0 is raw
 * @param version the version of the content that was copied
 * @param storedSize bytes that the copy takes in the tier
 * @param blockSize bytes of content that one checksum covers; the last block may be shorter
 * @param checksums of the content, block by block; none for an empty file
 * @param pinned whether the copy must never be evicted to make room
 * @param extent the copy's place in a bundle; null if the copy is a file of its own
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

  /** The same copy at another place in its tier. */
  public CopyRecord at(@Nullable Extent place) {
    return new CopyRecord(tier, codec, version, storedSize, blockSize, checksums, pinned, place);
  }
}
