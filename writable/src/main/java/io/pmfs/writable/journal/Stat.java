package io.pmfs.writable.journal;

import io.pmfs.metadata.Attributes;
import java.time.Instant;

/**
 * A file's stat(2) at the source.
 *
 * @param device st_dev
 * @param inode st_ino
 * @param birth when it was created; the epoch if the file system does not say
 */
public record Stat(
    long device, long inode, Instant birth, Attributes attributes, Protection protection) {
  public boolean isSameFile(Stat other) {
    return device == other.device
        && inode == other.inode
        && birth.equals(other.birth)
        && attributes.type() == other.attributes.type();
  }

  /** Whether the file has not changed between the two. */
  public boolean isUnchanged(Stat other) {
    Attributes one = attributes;
    Attributes two = other.attributes;
    return isSameFile(other)
        && one.size() == two.size()
        && one.modificationTime().equals(two.modificationTime())
        && one.changeTime().equals(two.changeTime());
  }

  /**
   * Whether the content is the same, although mode, owner or names may differ. If only the change
   * time differs, the content may have changed and its time been set back.
   */
  public boolean hasSameContent(Stat other) {
    Attributes one = attributes;
    Attributes two = other.attributes;
    boolean isExplained =
        one.changeTime().equals(two.changeTime())
            || protection != other.protection
            || one.mode() != two.mode()
            || one.uid() != two.uid()
            || one.gid() != two.gid()
            || one.linkCount() != two.linkCount();
    return isSameFile(other)
        && one.size() == two.size()
        && one.modificationTime().equals(two.modificationTime())
        && isExplained;
  }
}
