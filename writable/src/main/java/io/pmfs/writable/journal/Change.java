package io.pmfs.writable.journal;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A change to make at the source: one row of the journal, one record for each kind. It is
 * self-contained, because the mount goes on changing. Immutable.
 */
public sealed interface Change {
  Head head();

  /**
   * The fields of every change.
   *
   * @param inode the node that is changed, or gets or loses a name
   * @param uid of the user who made the change
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

  /** The names that it concerns; the last one is shown to users. */
  default List<At> names() {
    return List.of();
  }

  /** Another node that it concerns; 0 for none. */
  default long other() {
    return 0;
  }

  /** What later changes may depend on, while the source lacks this change. */
  default Set<Dependency> leaves() {
    Set<Dependency> leaves = common();
    for (At name : names()) {
      leaves.add(new Dependency.Entries(name.directory()));
    }
    return leaves;
  }

  /** What this change depends on, if an earlier change left it undone. */
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

  /** Whether it sets the times of the source's file. */
  default boolean setsTimes() {
    return false;
  }

  // ---- kinds

  /**
   * An announced content, which no longer changes.
   *
   * @param name the file's first name at the source; null if it has one already
   * @param isLost whether nothing is left of the content that the previous content lacks
   * @param generation of the data file; 0 if the file is empty
   * @param size how many bytes of the data file were announced, or are left after a power failure;
   *     the attributes have the former
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

    /** Whether a power failure took some of it. */
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

    /** This content, lost completely. */
    public Content lost() {
      return new Content(head, name, true, generation, size, attributes, extended);
    }

    /** This content for a file that an earlier content names first; keeps that one's writer. */
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
  }

  sealed interface Named extends Change {
    At at();

    @Override
    default List<At> names() {
      return List.of(at());
    }

    @Override
    default void write(Encoder out) {
      out.at(at());
    }
  }

  /** A new node other than a regular file, with its first name. */
  sealed interface Made extends Named {
    Attributes attributes();

    @Override
    default void write(Encoder out) {
      out.at(at()).attributes(attributes());
    }
  }

  record MakeDirectory(Head head, At at, Attributes attributes) implements Made {
    @Override
    public Set<Dependency> leaves() {
      Set<Dependency> leaves = Made.super.leaves();
      leaves.add(new Dependency.Directory(inode()));
      return leaves;
    }
  }

  record MakeSymbolicLink(Head head, At at, Attributes attributes, FileName target)
      implements Made {
    @Override
    public void write(Encoder out) {
      out.at(at).attributes(attributes).name(target);
    }
  }

  record MakeNode(Head head, At at, Attributes attributes) implements Made {}

  /** A further name of a node. */
  record Link(Head head, At at) implements Named {}

  /** The removal of a name, and of the node with its last one. */
  sealed interface Removal extends Named {
    /** The removal of a node's name, by the user of another change and in its place. */
    static Removal of(Inode node, At at, Head by) {
      Head head = new Head(by.sequence(), node.number(), by.uid(), by.gid(), by.madeMillis());
      return node.isDirectory()
          ? new RemoveDirectory(head, at)
          : new Unlink(head, at, node.isRemoved());
    }
  }

  /**
   * The removal of a name of a node other than a directory.
   *
   * @param isLast whether it was the last name
   */
  record Unlink(Head head, At at, boolean isLast) implements Removal {
    @Override
    public void write(Encoder out) {
      out.at(at).flag(isLast);
    }
  }

  record RemoveDirectory(Head head, At at) implements Removal {
    @Override
    public Set<Dependency> needs() {
      Set<Dependency> needs = Removal.super.needs();
      needs.add(new Dependency.Entries(inode()));
      return needs;
    }
  }

  /**
   * A rename.
   *
   * @param other the node that is replaced or exchanged; 0 for none
   * @param isExchange whether the other node gets the old name
   * @param isOfTree whether a directory gets another parent
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
  }

  /**
   * New attributes.
   *
   * @param attributes all of them, as they were after the change
   * @param mask which of them it set
   */
  record SetAttributes(Head head, Attributes attributes, int mask) implements Change {
    public static final int MODE = 1;
    public static final int OWNER = 2;
    public static final int TIMES = 4;

    /** A name that the source never had came and went in a directory. */
    public static final int TOUCH = 8;

    /** Whether only the times of the directory are set. */
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
     * Undoes this change in attributes.
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
  }

  /**
   * A new value of an extended attribute.
   *
   * @param value null to remove it
   */
  record SetExtended(Head head, FileName name, @Nullable FileName value) implements Change {
    @Override
    public void write(Encoder out) {
      FileName next = value;
      out = next == null ? out.name(name).flag(false) : out.name(name).flag(true).name(next);
    }
  }

  /** Writes the fields of the kind, without the head, for {@link ChangeRow}. */
  void write(Encoder out);
}
