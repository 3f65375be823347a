package io.pmfs.metadata;

import java.time.Instant;

/**
 * What stat(2) says of a file, without its place.
 *
 * @param mode type and permission bits, as st_mode
 * @param linkCount hard links, as st_nlink
 * @param device major and minor of a device file as st_rdev encodes them, else 0
 * @param size bytes
 * @param blocks 512-byte units allocated, as st_blocks
 */
public record Attributes(
    int mode,
    int linkCount,
    int uid,
    int gid,
    long device,
    long size,
    long blocks,
    Instant accessTime,
    Instant modificationTime,
    Instant changeTime) {

  public FileType type() {
    return FileType.ofMode(mode);
  }

  /** Which version of the content these attributes describe. */
  public SourceVersion version() {
    return new SourceVersion(size, modificationTime);
  }
}
