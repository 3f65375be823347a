package io.pmfs.packing;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import java.time.Instant;

/**
 * A file as a shard has it.
 *
 * @param mode type and permission bits, as st_mode; without a type for a hard link whose file was
 *     not looked for yet
 * @param device major and minor of a device file as st_rdev encodes them, else 0
 * @param size bytes of content, holes included
 * @param shard number of the shard
 * @param position where in the shard its header is, which no other member shares; less than 0 for a
 *     directory that no shard has but that a member lies in
 * @param data where in the shard its content is
 * @param linked whether there may be several names of it
 * @param target of a symbolic link, or the path a hard link names; else empty
 * @param extents of a sparse file, else all of it
 */
record Member(
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

  /** The same file by a name that is one of several. */
  Member withLinks() {
    return with(shard, true);
  }

  /** The same where the shard has another number. */
  Member inShard(int number) {
    return with(number, linked);
  }

  private Member with(int shard, boolean linked) {
    return new Member(
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
