package io.pmfs.metadata;

import java.time.Instant;
import java.time.temporal.ChronoUnit;

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

  /**
   * Whether later attributes of the same name show that no program changed or replaced the file:
   * type, size, modification time and change time are the same. A source without change times shows
   * less: {@link #showChanges}.
   */
  public boolean areUntouched(Attributes later) {
    return type() == later.type()
        && version().equals(later.version())
        && changeTime.equals(later.changeTime());
  }

  /**
   * Whether the change time is certainly one that no program can set. Sources without change times
   * show the modification time in their place, and old protocols full seconds.
   */
  public boolean showChanges() {
    Instant second = changeTime.truncatedTo(ChronoUnit.SECONDS);
    return !changeTime.equals(second) && !changeTime.equals(modificationTime);
  }

  /** Whether mode and owners, which determine access, are the same. */
  public boolean giveSameAccess(Attributes other) {
    return mode == other.mode && uid == other.uid && gid == other.gid;
  }

  /** The version of the content that these attributes describe. */
  public SourceVersion version() {
    return new SourceVersion(size, modificationTime);
  }

  public Attributes withMode(int mode) {
    return new Attributes(
        mode, linkCount, uid, gid, device, size, blocks, accessTime, modificationTime, changeTime);
  }

  public Attributes withLinkCount(int linkCount) {
    return new Attributes(
        mode, linkCount, uid, gid, device, size, blocks, accessTime, modificationTime, changeTime);
  }

  public Attributes withOwner(int uid, int gid) {
    return new Attributes(
        mode, linkCount, uid, gid, device, size, blocks, accessTime, modificationTime, changeTime);
  }

  public Attributes withSize(long size, long blocks) {
    return new Attributes(
        mode, linkCount, uid, gid, device, size, blocks, accessTime, modificationTime, changeTime);
  }

  public Attributes withTimes(Instant accessTime, Instant modificationTime) {
    return new Attributes(
        mode, linkCount, uid, gid, device, size, blocks, accessTime, modificationTime, changeTime);
  }

  public Attributes withChangeTime(Instant changeTime) {
    return new Attributes(
        mode, linkCount, uid, gid, device, size, blocks, accessTime, modificationTime, changeTime);
  }
}
