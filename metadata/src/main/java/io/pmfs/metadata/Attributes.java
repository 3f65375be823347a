package io.pmfs.metadata;

import java.time.Instant;

/**
 * What stat(2) reports for a file, without its identity.
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

  /** The version of the content that these attributes describe. */
  public SourceVersion version() {
    return new SourceVersion(size, modificationTime);
  }
}
