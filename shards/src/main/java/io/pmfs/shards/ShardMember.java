package io.pmfs.shards;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import java.time.Instant;

/**
 * A file in a shard.
 *
 * @param mode type and permission bits, as st_mode; without a type for a hard link whose file is
 *     not found yet
 * @param device major and minor of a device file as st_rdev encodes them, else 0
 * @param size bytes of content, holes included
 * @param shard number of the shard
 * @param position offset of the header in the shard, unique in the shard; negative for a directory
 *     that no shard lists
 * @param data offset of the content in the shard
 * @param linked whether the file may have several names
 * @param target of a symbolic link, or the path that a hard link names; else empty
 * @param extents of a sparse file; else the whole file
 */
record ShardMember(
    int mode,
    int uid,
    int gid,
    long device,
    long size,
    Instant modificationTime,
    int shard,
    long position,
    long data,
    boolean linked,
    FileName target,
    Extents extents) {
  static final FileName NO_TARGET = FileName.of("");

  private static final int TYPE_BITS = 0170000;
  private static final int STAT_BLOCK_BYTES = 512;

  boolean isHardLink() {
    return (mode & TYPE_BITS) == 0;
  }

  boolean isDirectory() {
    return !isHardLink() && FileType.ofMode(mode) == FileType.DIRECTORY;
  }

  boolean isRegular() {
    return !isHardLink() && FileType.ofMode(mode) == FileType.REGULAR;
  }

  /** The file marked as having several names. */
  ShardMember withLinks() {
    return with(shard, true);
  }

  /** The file in a shard with another number. */
  ShardMember inShard(int number) {
    return with(number, linked);
  }

  private ShardMember with(int shard, boolean linked) {
    return new ShardMember(
        mode,
        uid,
        gid,
        device,
        size,
        modificationTime,
        shard,
        position,
        data,
        linked,
        target,
        extents);
  }

  Attributes attributes(int linkCount) {
    long stored = isRegular() ? extents.dataBytes() : 0;
    return new Attributes(
        mode,
        linkCount,
        uid,
        gid,
        device,
        size,
        (stored + STAT_BLOCK_BYTES - 1) / STAT_BLOCK_BYTES,
        modificationTime,
        modificationTime,
        modificationTime);
  }
}
