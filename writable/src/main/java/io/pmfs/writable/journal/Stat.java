package io.pmfs.writable.journal;

import io.pmfs.metadata.Attributes;
import java.time.Instant;

/**
 * A file's stat(2) at the source.
 *
 * @param device st_dev as the kernel gives it; in the tables and for files of the source 0 for the
 *     file system of the source's root, else the number that io.pmfs.writable.tree.FileSystems
 *     gives
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

  /** Whether the content may be the same, if this program may have changed names or attributes. */
  public boolean hasSameSizeAndTime(Stat other) {
    return attributes.size() == other.attributes.size()
        && attributes.modificationTime().equals(other.attributes.modificationTime());
  }

  public Stat withDevice(long number) {
    return new Stat(number, inode, birth, attributes, protection);
  }

  /** This state with the size and times of an earlier one. */
  public Stat withContentOf(Stat earlier) {
    Attributes old = earlier.attributes;
    Attributes next =
        attributes
            .withSize(old.size(), old.blocks())
            .withTimes(old.accessTime(), old.modificationTime())
            .withChangeTime(old.changeTime());
    return new Stat(device, inode, birth, next, protection);
  }
}
