package io.pmfs.writable;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.writable.WritableFileSystem.Caller;
import org.jspecify.annotations.Nullable;

/**
 * A change that the source is to get: one row of the journal. It says all that is needed then, as
 * the mount goes on changing. Immutable.
 *
 * @param inode what is changed, or loses or gets a name
 * @param directory where the name is; 0 if the change has no name
 * @param toDirectory of a rename; else 0
 * @param other what a rename replaces or is exchanged with; 0 for nothing
 * @param flags of a rename; {@link #FIRST} or {@link #LOST} of an announcement; {@link #LAST} of a
 *     removal; a mask of a change of attributes
 * @param generation of an announced data file; 0 if the file is empty
 * @param size how many bytes of the data file were announced, or what a power cut left of them; the
 *     attributes have the first
 * @param attributes as they were after the change; null if it does not change any
 * @param extendedName of a change of an extended attribute
 * @param value its value, null to remove it; or the target of a symbolic link
 * @param madeMillis when the change was made
 */
record Change(
    long sequence,
    Kind kind,
    long inode,
    long directory,
    FileName name,
    long toDirectory,
    FileName toName,
    long other,
    int flags,
    long generation,
    long size,
    @Nullable Attributes attributes,
    FileName extendedName,
    @Nullable FileName value,
    int uid,
    int gid,
    long madeMillis) {

  /** The announcement gives the file its first name at the source. */
  static final int FIRST = 1;

  /** Nothing of the announced content is left, or the content before has that too. */
  static final int LOST = 2;

  /** The removal takes the last name of a file. */
  static final int LAST = 1;

  static final int MODE = 1;
  static final int OWNER = 2;
  static final int TIMES = 4;

  /** Kinds of changes; their numbers are part of the format. */
  enum Kind {
    CONTENT(0),
    MKDIR(1),
    SYMLINK(2),
    MKNOD(3),
    LINK(4),
    UNLINK(5),
    RMDIR(6),
    RENAME(7),
    ATTRIBUTES(8),
    EXTENDED(9);

    private final int number;

    Kind(int number) {
      this.number = number;
    }
  }

  private static final Kind[] KINDS = Kind.values();

  /** A change without names. */
  static Change of(long sequence, Kind kind, long inode, Caller caller, long millis) {
    return new Change(
        sequence,
        kind,
        inode,
        0,
        Inode.NO_NAME,
        0,
        Inode.NO_NAME,
        0,
        0,
        0,
        0,
        null,
        Inode.NO_NAME,
        null,
        caller.uid(),
        caller.gid(),
        millis);
  }

  Change at(long where, FileName as) {
    Edit edit = new Edit();
    edit.directory = where;
    edit.name = as;
    return edit.done();
  }

  Change to(long where, FileName as, long replaced, int renameFlags) {
    Edit edit = new Edit();
    edit.toDirectory = where;
    edit.toName = as;
    edit.other = replaced;
    edit.flags = renameFlags;
    return edit.done();
  }

  Change with(Attributes next, int nextFlags) {
    Edit edit = new Edit();
    edit.attributes = next;
    edit.flags = nextFlags;
    return edit.done();
  }

  Change withData(long dataGeneration, long dataSize) {
    Edit edit = new Edit();
    edit.generation = dataGeneration;
    edit.size = dataSize;
    return edit.done();
  }

  Change withValue(FileName attribute, @Nullable FileName next) {
    Edit edit = new Edit();
    edit.extendedName = attribute;
    edit.value = next;
    return edit.done();
  }

  Change by(int writerUid, int writerGid) {
    Edit edit = new Edit();
    edit.uid = writerUid;
    edit.gid = writerGid;
    return edit.done();
  }

  /** An announcement of which nothing will come. */
  Change lost() {
    Edit edit = new Edit();
    edit.flags = LOST;
    return edit.done();
  }

  boolean isLost() {
    return kind == Kind.CONTENT && flags == LOST;
  }

  /** Whether a power cut took some of an announced content. */
  boolean isTorn() {
    return kind == Kind.CONTENT && (isLost() || size < wanted().size());
  }

  /**
   * Attributes without what this change made of them.
   *
   * @param shown with it, and perhaps later ones
   * @param before without it
   */
  Attributes takenBack(Attributes shown, Attributes before) {
    Attributes wanted = wanted();
    boolean mode = (flags & MODE) != 0 && shown.mode() == wanted.mode();
    boolean owner =
        (flags & OWNER) != 0 && shown.uid() == wanted.uid() && shown.gid() == wanted.gid();
    boolean times = setsTimes() && shown.modificationTime().equals(wanted.modificationTime());
    return new Attributes(
        mode ? before.mode() : shown.mode(),
        shown.linkCount(),
        owner ? before.uid() : shown.uid(),
        owner ? before.gid() : shown.gid(),
        shown.device(),
        shown.size(),
        shown.blocks(),
        times ? before.accessTime() : shown.accessTime(),
        times ? before.modificationTime() : shown.modificationTime(),
        shown.changeTime());
  }

  boolean setsTimes() {
    return kind == Kind.ATTRIBUTES && (flags & TIMES) != 0;
  }

  boolean isFirst() {
    return kind == Kind.CONTENT && flags == FIRST;
  }

  Attributes wanted() {
    Attributes wanted = attributes;
    if (wanted == null) {
      throw new IllegalStateException(kind + " without attributes");
    }
    return wanted;
  }

  byte[] encode() {
    Encoder out =
        new Encoder()
            .number(kind.number)
            .number(inode)
            .number(directory)
            .name(name)
            .number(toDirectory)
            .name(toName)
            .number(other)
            .number(flags)
            .number(generation)
            .number(size)
            .name(extendedName)
            .number(Integer.toUnsignedLong(uid))
            .number(Integer.toUnsignedLong(gid))
            .number(madeMillis);
    Attributes wanted = attributes;
    out = wanted == null ? out.number(0) : out.number(1).attributes(wanted);
    FileName bytes = value;
    return (bytes == null ? out.number(0) : out.number(1).name(bytes)).toBytes();
  }

  static Change decode(long sequence, byte[] stored) {
    Decoder in = new Decoder(stored);
    Kind kind = KINDS[in.small()];
    long inode = in.number();
    long directory = in.number();
    FileName name = in.name();
    long toDirectory = in.number();
    FileName toName = in.name();
    long other = in.number();
    int flags = in.small();
    long generation = in.number();
    long size = in.number();
    FileName extendedName = in.name();
    int uid = in.small();
    int gid = in.small();
    long millis = in.number();
    Attributes attributes = in.number() == 0 ? null : in.attributes();
    FileName value = in.number() == 0 ? null : in.name();
    return new Change(
        sequence,
        kind,
        inode,
        directory,
        name,
        toDirectory,
        toName,
        other,
        flags,
        generation,
        size,
        attributes,
        extendedName,
        value,
        uid,
        gid,
        millis);
  }

  /** A copy being made: what is not set stays as it is. */
  private final class Edit {
    long sequence = Change.this.sequence;
    Kind kind = Change.this.kind;
    long inode = Change.this.inode;
    long directory = Change.this.directory;
    FileName name = Change.this.name;
    long toDirectory = Change.this.toDirectory;
    FileName toName = Change.this.toName;
    long other = Change.this.other;
    int flags = Change.this.flags;
    long generation = Change.this.generation;
    long size = Change.this.size;
    @Nullable Attributes attributes = Change.this.attributes;
    FileName extendedName = Change.this.extendedName;
    @Nullable FileName value = Change.this.value;
    int uid = Change.this.uid;
    int gid = Change.this.gid;
    long madeMillis = Change.this.madeMillis;

    Change done() {
      return new Change(
          sequence,
          kind,
          inode,
          directory,
          name,
          toDirectory,
          toName,
          other,
          flags,
          generation,
          size,
          attributes,
          extendedName,
          value,
          uid,
          gid,
          madeMillis);
    }
  }
}
