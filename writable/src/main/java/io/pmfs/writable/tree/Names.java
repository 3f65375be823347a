package io.pmfs.writable.tree;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.NameRow;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.time.Instant;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Changes of names. Each reads the source first if needed, and then updates names, nodes and
 * journal together. Thread-safe.
 */
@SuppressWarnings("try")
public final class Names {
  private static final int TYPE_BITS = 0170000;
  private static final int DIRECTORY = 0040000;
  private static final int REGULAR = 0100000;
  private static final int SYMBOLIC_LINK = 0120000;
  private static final int SET_GROUP_ID = 02000;
  private static final int PERMISSIONS = 07777;
  private static final int MAX_LINKS = 65_000;
  private static final int LINK_PERMISSIONS = 0777;
  private static final int TARGET_MAX = 4095;
  private static final int BLOCK_SECTORS = 8;
  private static final int DIRECTORY_BYTES = 4096;

  private final State state;
  private final Nodes nodes;
  private final SourceTree tree;
  private final WrittenFiles written;

  public Names(State state, Nodes nodes, SourceTree tree, WrittenFiles written) {
    this.state = state;
    this.nodes = nodes;
    this.tree = tree;
    this.written = written;
  }

  // ---- lookup before a change

  /**
   * A name as found.
   *
   * @param inode null if the name is free
   * @param row the row in the tables; null if there is none
   */
  public record Found(@Nullable Inode inode, @Nullable NameRow row) {
    public long change() {
      return row == null ? 0 : row.change();
    }
  }

  /** Looks up a name at the source before the state's lock is taken. */
  @Nullable
  public Inode before(long directory, FileName name) throws FsException {
    return nodes.lookup(directory, name);
  }

  /**
   * The name now; null if it must be looked up again. The caller holds the state's lock.
   *
   * @param before what {@link #before} found
   */
  @Nullable
  public Found now(
      Inode directory, FileName name, @Nullable Inode before, @Nullable Listing listing)
      throws FsException {
    NameRow row = state.name(directory.number(), name);
    if (row != null) {
      return new Found(row.isRemoved() ? null : state.inode(row.inode()), row);
    }
    boolean isCurrent =
        listing == null ? !directory.hasHome() : tree.isKept(directory.number(), listing);
    if (!isCurrent) {
      return null;
    }
    Listing.Child child = listing == null ? null : listing.find(name);
    if (child == null) {
      return new Found(null, null);
    }
    // A change of this mount may have reached the source since.
    Long last = tree.nodeOf(new At(directory.number(), name));
    return before == null || (last != null && last != before.number())
        ? null
        : new Found(state.inode(before.number()), null);
  }

  public Inode living(long directory) throws FsException {
    Inode inode = state.inode(directory);
    if (inode.isRemoved()) {
      throw new FsException(Errno.ENOENT, "directory " + directory + " was removed");
    }
    return inode;
  }

  /**
   * Checks that the source can have a further name of a node in a directory: in the same file
   * system and under the same project quota.
   *
   * @param from the directory of its present name
   * @throws FsException EXDEV
   */
  void checkReachable(Inode inode, Inode from, Inode to, FileName name) throws FsException {
    if (device(inode.isDirectory() ? from : inode) != device(to)) {
      throw new FsException(Errno.EXDEV, name + ": in another file system of the source");
    }
    if (from.number() != to.number()) {
      long project = tree.project(nearest(to).number());
      Inode counted = nearest(inode.isDirectory() ? inode : from);
      if (project != 0 && project != tree.project(counted.number())) {
        throw new FsException(Errno.EXDEV, name + ": under the quota of another project");
      }
    }
  }

  /** A node, or its nearest ancestor at the source. */
  private Inode nearest(Inode inode) throws FsException {
    Inode at = inode;
    while (at.number() != WritableFileSystem.ROOT && !at.hasHome() && at.parent() != 0) {
      Inode above = state.find(at.parent());
      if (above == null) {
        break; // The directory of the file's known name was removed.
      }
      at = above;
    }
    return at;
  }

  /** The device at the source of a node, now or in the future; 0 for that of the root. */
  private long device(Inode inode) throws FsException {
    Inode at = nearest(inode);
    Stat seen = at.seen();
    return seen == null || at.number() == WritableFileSystem.ROOT ? 0 : seen.device();
  }

  /** A change that needs a free name. */
  public interface Making<T> {
    T make(State.Update update, Inode directory, Found found) throws FsException;
  }

  public <T> T makeName(long number, FileName name, Making<T> making) throws FsException {
    Nodes.checkNewName(name);
    tree.checkLength(name);
    Inode before = null;
    while (true) {
      Inode directory = nodes.directory(number);
      Listing listing = nodes.listing(directory);
      try (State.Held held = state.hold()) {
        Inode parent = living(number);
        parent.protection().requireGrowing(name.toString());
        Found found = now(parent, name, before, listing);
        if (found != null) {
          if (found.inode() != null) {
            throw new FsException(Errno.EEXIST, name.toString());
          }
          State.Update update = state.update();
          update.add();
          T made = making.make(update, parent, found);
          update.commit();
          return made;
        }
      }
      tree.looks().checkInterrupted();
      // Only a name that the source has needs more than its listing.
      before = before(number, name);
    }
  }

  // ---- creating

  public Node mkdir(long number, FileName name, int mode, Caller caller) throws FsException {
    return make(number, name, DIRECTORY | (mode & PERMISSIONS), 0, null, caller);
  }

  public Node mknod(long number, FileName name, int mode, long device, Caller caller)
      throws FsException {
    int type = (mode & TYPE_BITS) == 0 ? REGULAR : mode & TYPE_BITS;
    if (type == DIRECTORY || type == SYMBOLIC_LINK) {
      throw new FsException(Errno.EPERM, name.toString());
    }
    Node node = make(number, name, type | (mode & PERMISSIONS), device, null, caller);
    if (type == REGULAR) {
      written.announce(node.inode(), caller);
    }
    return node;
  }

  public Node symlink(long number, FileName name, FileName target, Caller caller)
      throws FsException {
    if (target.size() > TARGET_MAX) {
      throw new FsException(Errno.ENAMETOOLONG, name.toString());
    }
    if (target.size() == 0 || target.toLatin1().indexOf('\0') >= 0) {
      throw new FsException(Errno.EINVAL, name + ": not a target of a link");
    }
    return make(number, name, SYMBOLIC_LINK | LINK_PERMISSIONS, 0, target, caller);
  }

  private Node make(
      long number, FileName name, int mode, long device, @Nullable FileName target, Caller caller)
      throws FsException {
    Long before = state.result(caller.unique());
    if (before != null) {
      announce(state.inode(before), caller);
      return nodes.shown(state.inode(before));
    }
    Inode made =
        makeName(
            number,
            name,
            (update, directory, found) -> {
              Inode inode = fresh(update, directory, name, mode, device, caller);
              if (target != null) {
                inode = inode.withTarget(target).withSize(target.size(), 0);
              }
              if (inode.isRegular()) {
                // The announcement follows; there are no data.
                update.writing(inode.number(), 0, 0);
                addName(update, directory, name, inode, found.change(), false);
              } else {
                inode = journalMade(update, directory, name, inode, target, caller);
              }
              update.put(inode);
              update.result(caller.unique(), inode.number());
              return inode;
            });
    return nodes.shown(made);
  }

  private Inode journalMade(
      State.Update update,
      Inode directory,
      FileName name,
      Inode inode,
      @Nullable FileName target,
      Caller caller) {
    long sequence = update.nextSequence();
    Change.Head head = caller.head(sequence, inode.number(), state.millis());
    At at = new At(directory.number(), name);
    Attributes attributes = inode.attributes();
    update.journal(
        inode.isDirectory()
            ? new Change.MakeDirectory(head, at, attributes)
            : target == null
                ? new Change.MakeNode(head, at, attributes)
                : new Change.MakeSymbolicLink(head, at, attributes, target));
    addName(update, directory, name, inode, sequence, true);
    return inode.withFlag(Inode.ANNOUNCED, true).withChange(sequence);
  }

  /** A new node; mode and group follow its directory. */
  public Inode fresh(
      State.Update update, Inode directory, FileName name, int mode, long device, Caller caller)
      throws FsException {
    Instant now = state.now();
    boolean hands = (directory.attributes().mode() & SET_GROUP_ID) != 0;
    boolean isDirectory = (mode & TYPE_BITS) == DIRECTORY;
    int given = hands && isDirectory ? mode | SET_GROUP_ID : mode;
    int gid = hands ? directory.attributes().gid() : caller.gid();
    Attributes attributes =
        new Attributes(
            given,
            isDirectory ? 2 : 1,
            caller.uid(),
            gid,
            device,
            isDirectory ? DIRECTORY_BYTES : 0,
            isDirectory ? BLOCK_SECTORS : 0,
            now,
            now,
            now);
    return Inode.fresh(update.newNumber(), attributes, directory.number(), name);
  }

  public void addName(
      State.Update update,
      Inode directory,
      FileName name,
      Inode inode,
      long change,
      boolean isAnnounced) {
    update.name(
        directory.number(), name, new NameRow(inode.number(), inode.type(), change, isAnnounced));
    Inode touched = touched(directory, inode.isDirectory() ? 1 : 0);
    update.put(isAnnounced ? touched.withChange(change) : touched);
  }

  public Inode touched(Inode directory, int moreDirectories) {
    Instant now = state.now();
    int links = directory.attributes().linkCount();
    Inode next = links < 2 ? directory : directory.withLinks(links + moreDirectories, now);
    return next.withTimes(now, now);
  }

  // ---- links

  public Node link(long number, long directoryNumber, FileName name, Caller caller)
      throws FsException {
    Long before = state.result(caller.unique());
    if (before != null) {
      announce(state.inode(before), caller);
      return nodes.node(before);
    }
    Inode linked = nodes.find(number);
    if (linked.isDirectory()) {
      throw new FsException(Errno.EPERM, name.toString());
    }
    linked.protection().requireChangeable(name.toString());
    if (linked.parent() != 0) {
      Inode to = nodes.directory(directoryNumber);
      Inode from = directoryOf(linked);
      checkReachable(linked, from == null ? to : from, to, name);
    }
    if (linked.isRegular() && !linked.is(Inode.UNNAMED)) {
      written.announce(number, caller);
    }
    Inode made =
        makeName(
            directoryNumber,
            name,
            (update, directory, found) -> link(update, directory, name, number, found, caller));
    if (!made.is(Inode.ANNOUNCED)) {
      written.announce(number, caller);
    }
    return nodes.node(number);
  }

  /** A directory with a name of the file, if one is known; the recorded one may be gone. */
  private @Nullable Inode directoryOf(Inode file) throws FsException {
    for (long number : new long[] {file.parent(), file.homeParent()}) {
      Inode found = number == 0 ? null : state.find(number);
      if (found != null && !found.isRemoved()) {
        return found;
      }
    }
    return null;
  }

  private Inode link(
      State.Update update, Inode directory, FileName name, long number, Found found, Caller caller)
      throws FsException {
    Inode inode = update.inode(number);
    int links = inode.attributes().linkCount();
    if (links >= MAX_LINKS) {
      throw new FsException(Errno.EMLINK, name.toString());
    }
    if (links == 0 && !inode.is(Inode.UNNAMED)) {
      throw new FsException(Errno.ENOENT, name + ": the file was removed");
    }
    Inode next = inode.withLinks(links + 1, state.now());
    if (inode.is(Inode.ANNOUNCED)) {
      long sequence = update.nextSequence();
      update.journal(
          new Change.Link(
              caller.head(sequence, number, state.millis()), new At(directory.number(), name)));
      addName(update, directory, name, next, sequence, true);
      next = next.withChange(sequence);
    } else {
      // The file gets its first name.
      next = next.withPlace(directory.number(), name).withFlag(Inode.UNNAMED, false);
      addName(update, directory, name, next, found.change(), false);
      update.delete(Tables.NAMELESS, Tables.key(number));
    }
    update.put(next);
    update.result(caller.unique(), number);
    return next;
  }

  // ---- removing

  public void unlink(long number, FileName name, Caller caller) throws FsException {
    remove(number, name, false, caller);
  }

  public void rmdir(long number, FileName name, Caller caller) throws FsException {
    remove(number, name, true, caller);
  }

  private void remove(long number, FileName name, boolean isRmdir, Caller caller)
      throws FsException {
    if (state.result(caller.unique()) != null) {
      return;
    }
    for (boolean isAgain = false; ; isAgain = true) {
      if (isAgain) {
        tree.looks().checkInterrupted();
      }
      Inode directory = nodes.directory(number);
      Inode before = before(number, name);
      if (before == null) {
        throw new FsException(Errno.ENOENT, name.toString());
      }
      checkKind(before, isRmdir, name);
      directory.protection().requireChangeable(name.toString());
      before.protection().requireChangeable(name.toString());
      Listing listing = nodes.listing(directory);
      Listing inside = isRmdir ? nodes.listing(before) : null;
      try (State.Held held = state.hold()) {
        Found found = now(living(number), name, before, listing);
        Inode inode = found == null ? null : found.inode();
        if (found != null && inode == null) {
          throw new FsException(Errno.ENOENT, name.toString());
        }
        if (found == null || inode == null || inode.number() != before.number()) {
          continue;
        }
        if (isRmdir && inside != null && !tree.isKept(inode.number(), inside)) {
          continue;
        }
        if (isRmdir && !nodes.isEmpty(inode, inside)) {
          throw new FsException(Errno.ENOTEMPTY, name.toString());
        }
        State.Update update = state.update();
        remove(update, number, name, inode, found, caller);
        update.result(caller.unique(), inode.number());
        update.commit();
        return;
      }
    }
  }

  private static void checkKind(Inode inode, boolean isRmdir, FileName name) throws FsException {
    if (isRmdir && !inode.isDirectory()) {
      throw new FsException(Errno.ENOTDIR, name.toString());
    }
    if (!isRmdir && inode.isDirectory()) {
      throw new FsException(Errno.EISDIR, name.toString());
    }
  }

  private void remove(
      State.Update update, long number, FileName name, Inode inode, Found found, Caller caller)
      throws FsException {
    NameRow row = found.row();
    Inode directory = touched(update.inode(number), inode.isDirectory() ? -1 : 0);
    if (row != null && !row.announced()) {
      // The source never had the file.
      if (state.isPending(row.change())) {
        update.name(number, name, NameRow.removed(row.change()));
      } else {
        update.deleteName(number, name);
      }
      long sequence = update.nextSequence();
      update.journal(
          new Change.SetAttributes(
              caller.head(sequence, number, state.millis()),
              directory.attributes(),
              Change.SetAttributes.TOUCH));
      update.put(directory.withChange(sequence));
    } else {
      long sequence = update.nextSequence();
      Change.Head head = caller.head(sequence, inode.number(), state.millis());
      At at = new At(number, name);
      update.journal(
          inode.isDirectory()
              ? new Change.RemoveDirectory(head, at)
              : new Change.Unlink(head, at, inode.attributes().linkCount() == 1));
      update.name(number, name, NameRow.removed(sequence));
      update.put(directory.withChange(sequence));
      update.put(inode.withChange(sequence));
    }
    loseName(update, update.inode(inode.number()));
  }

  public void loseName(State.Update update, Inode inode) {
    int links = inode.isDirectory() ? 0 : inode.attributes().linkCount() - 1;
    Inode next = inode.withLinks(links, state.now());
    if (links <= 0) {
      update.put(Tables.NAMELESS, Tables.key(inode.number()), new byte[0]);
    }
    update.put(next);
  }

  /** Announces a file before another change refers to it. */
  public void announce(Inode inode, Caller caller) throws FsException {
    if (inode.isRegular() && (inode.is(Inode.WRITING) || !inode.is(Inode.ANNOUNCED))) {
      written.announce(inode.number(), caller);
    }
  }

  // ---- unreferenced nodes

  /** No kernel refers to a node any more. */
  public void forget(long number) throws FsException {
    forget(number, () -> false);
  }

  /** A kernel has forgotten a node, which another node of a cluster may have open. */
  public void forget(long number, BooleanSupplier isOpen) throws FsException {
    Inode known = state.find(number);
    if (known == null || !known.isRemoved()) {
      return;
    }
    written.alone(
        number,
        () -> {
          try (State.Held held = state.hold()) {
            Inode inode = state.find(number);
            if (inode != null && inode.isRemoved() && !isOpen.getAsBoolean()) {
              State.Update update = state.update();
              forget(update, inode);
              update.commit();
            }
          }
        });
  }

  private void forget(State.Update update, Inode inode) throws FsException {
    written.drop(update, inode);
    Inode next = inode.withData(0, 0, -1).withFlag(Inode.WRITING, false);
    update.delete(Tables.WRITING, Tables.key(inode.number()));
    update.delete(Tables.NAMELESS, Tables.key(inode.number()));
    if (state.isPending(next)) {
      update.put(next.withFlag(Inode.FORGOTTEN, true));
    } else {
      removeNode(state, update, next);
    }
  }

  /** Removes all traces of an unlinked node. */
  public static void removeNode(State state, State.Update update, Inode inode) throws FsException {
    Stat seen = inode.seen();
    if (seen != null) {
      update.deleteSource(seen, inode.number());
    }
    Extended.remove(state, update, inode);
    update.remove(inode.number());
  }
}
