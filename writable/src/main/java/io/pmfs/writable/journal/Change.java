package io.pmfs.writable.journal;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A change that the source is to get: one row of the journal, and one record for each kind. It says
 * all that is needed then, as the mount goes on changing. Immutable.
 */
public sealed interface Change {
  Head head();

  /**
   * What every change has.
   *
   * @param inode what is changed, or loses or gets a name
   * @param uid whose change it is
   * @param madeMillis when the change was made
   */
  record Head(long sequence, long inode, int uid, int gid, long madeMillis) {}

  default long sequence() {
    return head().sequence();
  }

  default long inode() {
    return head().inode();
  }

  default int uid() {
    return head().uid();
  }

  default int gid() {
    return head().gid();
  }

  /** The names that it is about; the last one is what users know it by. */
  default List<At> names() {
    return List.of();
  }

  /** Another node that it is about; 0 for none. */
  default long other() {
    return 0;
  }

  /** What changes behind this one may have to wait for, as long as the source does not have it. */
  default Set<Dependency> leaves() {
    Set<Dependency> leaves = common();
    for (At name : names()) {
      leaves.add(new Dependency.Entries(name.directory()));
    }
    return leaves;
  }

  /** What this change waits for, if a change before it left it undone. */
  default Set<Dependency> needs() {
    Set<Dependency> needs = common();
    for (At name : names()) {
      needs.add(new Dependency.Directory(name.directory()));
    }
    return needs;
  }

  private Set<Dependency> common() {
    Set<Dependency> both = new HashSet<>();
    both.add(new Dependency.Node(inode()));
    if (other() != 0) {
      both.add(new Dependency.Node(other()));
    }
    for (At name : names()) {
      both.add(new Dependency.Name(name));
    }
    return both;
  }

  /** Whether it gives the source's file the times that the mount shows. */
  default boolean setsTimes() {
    return false;
  }

  // ---- kinds

  /**
   * An announced content: nothing of it changes from now on.
   *
   * @param name if the announcement gives the file its first name at the source
   * @param isLost whether nothing is left of the content, or the content before has that too
   * @param generation of the data file; 0 if the file is empty
   * @param size how many bytes of the data file were announced, or what a power cut left of them;
   *     the attributes have the first
   * @param extended the encoded extended attributes of a new file
   */
  record Content(
      Head head,
      @Nullable At name,
      boolean isLost,
      long generation,
      long size,
      Attributes attributes,
      @Nullable FileName extended)
      implements Change {

    public boolean isFirst() {
      return name != null && !isLost;
    }

    /** Whether a power cut took some of it. */
    public boolean isTorn() {
      return isLost || size < attributes.size();
    }

    @Override
    public List<At> names() {
      return name == null ? List.of() : List.of(name);
    }

    @Override
    public boolean setsTimes() {
      return true;
    }

    public Content with(Attributes next) {
      return new Content(head, name, isLost, generation, size, next, extended);
    }

    public Content withSize(long left) {
      return new Content(head, name, isLost, generation, left, attributes, extended);
    }

    /** An announcement of which nothing will come. */
    public Content lost() {
      return new Content(head, name, true, generation, size, attributes, extended);
    }

    /**
     * This content for a file that gets its first name by an earlier one, whose writer it keeps.
     */
    public Content after(Content earlier) {
      Head by =
          new Head(head.sequence(), head.inode(), earlier.uid(), earlier.gid(), head.madeMillis());
      return earlier.isFirst()
          ? new Content(by, earlier.name, isLost, generation, size, attributes, earlier.extended)
          : new Content(by, name, isLost, generation, size, attributes, extended);
    }

    @Override
    public void write(Encoder out) {
      At first = name;
      out = first == null ? out.flag(false) : out.flag(true).at(first);
      out = out.flag(isLost).number(generation).number(size).attributes(attributes);
      FileName more = extended;
      out = more == null ? out.flag(false) : out.flag(true).name(more);
    }

    @Override
    public <R> R match(Cases<R> cases) throws FsException {
      return cases.content(this);
    }
  }

  /** A change that is about one name. */
  sealed interface Named extends Change {
    At at();

    @Override
    default List<At> names() {
      return List.of(at());
    }
  }

  /** A new node that is no regular file, with its first name. */
  sealed interface Made extends Named {
    Attributes attributes();
  }

  record MakeDirectory(Head head, At at, Attributes attributes) implements Made {
    @Override
    public Set<Dependency> leaves() {
      Set<Dependency> leaves = Made.super.leaves();
      leaves.add(new Dependency.Directory(inode()));
      return leaves;
    }

    @Override
    public void write(Encoder out) {
      out.at(at).attributes(attributes);
    }

    @Override
    public <R> R match(Cases<R> cases) throws FsException {
      return cases.makeDirectory(this);
    }
  }

  record MakeSymbolicLink(Head head, At at, Attributes attributes, FileName target)
      implements Made {
    @Override
    public void write(Encoder out) {
      out.at(at).attributes(attributes).name(target);
    }

    @Override
    public <R> R match(Cases<R> cases) throws FsException {
      return cases.makeSymbolicLink(this);
    }
  }

  /** A named pipe, a socket or a device. */
  record MakeNode(Head head, At at, Attributes attributes) implements Made {
    @Override
    public void write(Encoder out) {
      out.at(at).attributes(attributes);
    }

    @Override
    public <R> R match(Cases<R> cases) throws FsException {
      return cases.makeNode(this);
    }
  }

  /** One more name of a node. */
  record Link(Head head, At at) implements Named {
    @Override
    public void write(Encoder out) {
      out.at(at);
    }

    @Override
    public <R> R match(Cases<R> cases) throws FsException {
      return cases.link(this);
    }
  }

  /** A name that goes, with or without the node. */
  sealed interface Removal extends Named {}

  /**
   * A name less of a node that is no directory.
   *
   * @param isLast whether it was the last one
   */
  record Unlink(Head head, At at, boolean isLast) implements Removal {
    @Override
    public void write(Encoder out) {
      out.at(at).flag(isLast);
    }

    @Override
    public <R> R match(Cases<R> cases) throws FsException {
      return cases.unlink(this);
    }
  }

  record RemoveDirectory(Head head, At at) implements Removal {
    @Override
    public Set<Dependency> needs() {
      Set<Dependency> needs = Removal.super.needs();
      needs.add(new Dependency.Entries(inode()));
      return needs;
    }

    @Override
    public void write(Encoder out) {
      out.at(at);
    }

    @Override
    public <R> R match(Cases<R> cases) throws FsException {
      return cases.removeDirectory(this);
    }
  }

  /**
   * Another name for a node.
   *
   * @param other what it replaces or is exchanged with; 0 for nothing
   * @param isExchange whether the other node gets the first name
   * @param isOfTree whether a directory gets another place
   */
  record Rename(Head head, At from, At to, long other, boolean isExchange, boolean isOfTree)
      implements Change {
    @Override
    public Set<Dependency> leaves() {
      Set<Dependency> leaves = Change.super.leaves();
      if (isOfTree) {
        leaves.add(new Dependency.Tree());
      }
      return leaves;
    }

    @Override
    public Set<Dependency> needs() {
      Set<Dependency> needs = Change.super.needs();
      needs.add(new Dependency.Parts(uid()));
      if (other != 0) {
        needs.add(new Dependency.Entries(other));
      }
      if (isOfTree) {
        needs.add(new Dependency.Tree());
      }
      return needs;
    }

    @Override
    public List<At> names() {
      return List.of(from, to);
    }

    @Override
    public void write(Encoder out) {
      out.at(from).at(to).number(other).flag(isExchange).flag(isOfTree);
    }

    @Override
    public <R> R match(Cases<R> cases) throws FsException {
      return cases.rename(this);
    }
  }

  /**
   * Other attributes.
   *
   * @param attributes all of them, as they were after the change
   * @param mask which of them it set
   */
  record SetAttributes(Head head, Attributes attributes, int mask) implements Change {
    public static final int MODE = 1;
    public static final int OWNER = 2;
    public static final int TIMES = 4;

    /** A name of a directory came and went that the source never heard of. */
    public static final int TOUCH = 8;

    /** Whether nothing is to be done but what is done about all directories. */
    public boolean isTouch() {
      return mask == TOUCH;
    }

    public boolean sets(int what) {
      return (mask & what) != 0;
    }

    @Override
    public boolean setsTimes() {
      return sets(TIMES);
    }

    /**
     * Attributes without what this change made of them.
     *
     * @param shown with it, and perhaps later ones
     * @param before without it
     */
    public Attributes takenBack(Attributes shown, Attributes before) {
      boolean mode = sets(MODE) && shown.mode() == attributes.mode();
      boolean owner =
          sets(OWNER) && shown.uid() == attributes.uid() && shown.gid() == attributes.gid();
      boolean times = sets(TIMES) && shown.modificationTime().equals(attributes.modificationTime());
      Attributes left = mode ? shown.withMode(before.mode()) : shown;
      left = owner ? left.withOwner(before.uid(), before.gid()) : left;
      return times ? left.withTimes(before.accessTime(), before.modificationTime()) : left;
    }

    @Override
    public void write(Encoder out) {
      out.attributes(attributes).number(mask);
    }

    @Override
    public <R> R match(Cases<R> cases) throws FsException {
      return cases.setAttributes(this);
    }
  }

  /**
   * Another value of an extended attribute.
   *
   * @param value null to remove it
   */
  record SetExtended(Head head, FileName name, @Nullable FileName value) implements Change {
    @Override
    public void write(Encoder out) {
      FileName next = value;
      out = next == null ? out.name(name).flag(false) : out.name(name).flag(true).name(next);
    }

    @Override
    public <R> R match(Cases<R> cases) throws FsException {
      return cases.setExtended(this);
    }
  }

  /** Something for each kind. */
  interface Cases<R> {
    R content(Content change) throws FsException;

    R makeDirectory(MakeDirectory change) throws FsException;

    R makeSymbolicLink(MakeSymbolicLink change) throws FsException;

    R makeNode(MakeNode change) throws FsException;

    R link(Link change) throws FsException;

    R unlink(Unlink change) throws FsException;

    R removeDirectory(RemoveDirectory change) throws FsException;

    R rename(Rename change) throws FsException;

    R setAttributes(SetAttributes change) throws FsException;

    R setExtended(SetExtended change) throws FsException;
  }

  <R> R match(Cases<R> cases) throws FsException;

  /** Writes what the kind has beside its head, for {@link ChangeRow}. */
  void write(Encoder out);
}
