package io.pmfs.writable.journal;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * What the mount knows of a file, directory or other node. Immutable.
 *
 * @param attributes as the mount shows them, unless the source has changed since
 * @param flags see the constants
 * @param parent the directory of one of its names in the mount; 0 if it has none
 * @param name that name
 * @param homeParent the directory of one of its names at the source now; 0 if it is not there
 * @param homeName that name
 * @param change sequence number of its last change, including changes of its entries
 * @param contentChange sequence number of the last announcement of its content
 * @param generation number of its data file; 0 if its data are at the source
 * @param announcedSize how many bytes of that data file are announced
 * @param drainedSize how many first bytes of that data file the source has; -1 if the source has
 *     other content
 * @param seen its state at the source when last read or written; null if it is not there
 * @param target of a symbolic link
 */
public record Inode(
    long number,
    Attributes attributes,
    int flags,
    long parent,
    FileName name,
    long homeParent,
    FileName homeName,
    long change,
    long contentChange,
    long generation,
    long announcedSize,
    long drainedSize,
    @Nullable Stat seen,
    @Nullable FileName target) {

  public static final long ROOT = 1;

  public static final FileName NO_NAME = FileName.of(new byte[0]);

  /** The journal or the source has it. */
  public static final int ANNOUNCED = 1;

  /** Its data file may have been written since it was last announced. */
  public static final int WRITING = 2;

  /** It has a row in {@link Tables#XATTRS}. */
  public static final int XATTRS = 4;

  /** It never had a name and may get one (O_TMPFILE). */
  public static final int UNNAMED = 8;

  /** The kernel has forgotten it, and it has no name. */
  public static final int FORGOTTEN = 16;

  /** It is in a conflict file: its name at the source differs from that in the mount. */
  public static final int ASIDE = 32;

  /** It has several names at the source: {@link Tables#HOMES} has all of them. */
  public static final int HOMES = 64;

  /**
   * A directory that another program made in the place of this mount's: root does nothing in it for
   * a user whom the source refuses.
   */
  public static final int FOREIGN = 128;

  public FileType type() {
    return attributes.type();
  }

  public boolean isDirectory() {
    return type() == FileType.DIRECTORY;
  }

  public boolean isRegular() {
    return type() == FileType.REGULAR;
  }

  /**
   * Whether a file under its name at the source may be shown as this node: it is the same, or has
   * the rights that the kernel checks.
   */
  public boolean mayBe(Stat there) {
    Stat known = seen;
    return known == null
        || known.isSameFile(there)
        || attributes.giveSameAccess(there.attributes());
  }

  public boolean is(int flag) {
    return (flags & flag) != 0;
  }

  public boolean hasHome() {
    return homeParent != 0;
  }

  public boolean isRemoved() {
    return attributes.linkCount() == 0;
  }

  public Inode with(Attributes next) {
    Edit edit = new Edit();
    edit.attributes = next;
    return edit.done();
  }

  public Inode withFlag(int flag, boolean isSet) {
    Edit edit = new Edit();
    edit.flags = isSet ? flags | flag : flags & ~flag;
    return edit.done();
  }

  public Inode withPlace(long directory, FileName as) {
    Edit edit = new Edit();
    edit.parent = directory;
    edit.name = as;
    return edit.done();
  }

  public Inode withHome(long directory, FileName as) {
    Edit edit = new Edit();
    edit.homeParent = directory;
    edit.homeName = as;
    return edit.done();
  }

  public Inode withChange(long sequence) {
    Edit edit = new Edit();
    edit.change = sequence;
    return edit.done();
  }

  public Inode withContent(long sequence, long announced) {
    Edit edit = new Edit();
    edit.change = sequence;
    edit.contentChange = sequence;
    edit.announcedSize = announced;
    return edit.done();
  }

  public Inode withData(long nextGeneration, long announced, long drained) {
    Edit edit = new Edit();
    edit.generation = nextGeneration;
    edit.announcedSize = announced;
    edit.drainedSize = drained;
    return edit.done();
  }

  public Inode withSeen(@Nullable Stat next) {
    Edit edit = new Edit();
    edit.seen = next;
    return edit.done();
  }

  public Inode withTarget(FileName next) {
    Edit edit = new Edit();
    edit.target = next;
    return edit.done();
  }

  /** With another link count, changed now. */
  public Inode withLinks(int count, Instant now) {
    return with(attributes.withLinkCount(Math.max(0, count)).withChangeTime(now));
  }

  /** With other modification and change times. */
  public Inode withTimes(Instant modified, Instant changed) {
    return with(attributes.withTimes(attributes.accessTime(), modified).withChangeTime(changed));
  }

  public Inode withSize(long size, long blocks) {
    return with(attributes.withSize(size, blocks));
  }

  /** A node that is new to the journal and the source. */
  public static Inode fresh(long number, Attributes attributes, long parent, FileName name) {
    return new Inode(number, attributes, 0, parent, name, 0, NO_NAME, 0, 0, 0, 0, -1, null, null);
  }

  /** A node found at the source. */
  public static Inode found(long number, Stat stat, long parent, FileName name) {
    return new Inode(
        number,
        stat.attributes(),
        ANNOUNCED,
        parent,
        name,
        parent,
        name,
        0,
        0,
        0,
        0,
        -1,
        stat,
        null);
  }

  /** With the protection that the source gives it. */
  public Protection protection() {
    return seen == null ? Protection.NONE : seen.protection();
  }

  public byte[] encode() {
    Encoder out =
        new Encoder()
            .attributes(attributes)
            .number(flags | protection().bits())
            .number(parent)
            .name(name)
            .number(homeParent)
            .name(homeName)
            .number(change)
            .number(contentChange)
            .number(generation)
            .number(announcedSize)
            .number(drainedSize + 1)
            .stat(seen);
    FileName link = target;
    return (link == null ? out.number(0) : out.number(1).name(link)).toBytes();
  }

  public static Inode decode(long number, byte[] value) {
    Decoder in = new Decoder(value);
    Attributes attributes = in.attributes();
    int bits = in.small();
    return new Inode(
        number,
        attributes,
        bits & ~Protection.BITS,
        in.number(),
        in.name(),
        in.number(),
        in.name(),
        in.number(),
        in.number(),
        in.number(),
        in.number(),
        in.number() - 1,
        in.stat(Protection.of(bits)),
        in.number() == 0 ? null : in.name());
  }

  /** A builder for a modified copy: fields that are not set keep their values. */
  private final class Edit {
    long number = Inode.this.number;
    Attributes attributes = Inode.this.attributes;
    int flags = Inode.this.flags;
    long parent = Inode.this.parent;
    FileName name = Inode.this.name;
    long homeParent = Inode.this.homeParent;
    FileName homeName = Inode.this.homeName;
    long change = Inode.this.change;
    long contentChange = Inode.this.contentChange;
    long generation = Inode.this.generation;
    long announcedSize = Inode.this.announcedSize;
    long drainedSize = Inode.this.drainedSize;
    @Nullable Stat seen = Inode.this.seen;
    @Nullable FileName target = Inode.this.target;

    Inode done() {
      return new Inode(
          number,
          attributes,
          flags,
          parent,
          name,
          homeParent,
          homeName,
          change,
          contentChange,
          generation,
          announcedSize,
          drainedSize,
          seen,
          target);
    }
  }
}
