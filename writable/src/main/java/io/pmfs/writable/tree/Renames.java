package io.pmfs.writable.tree;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.NameRow;
import io.pmfs.writable.journal.State;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** Renames, including those that replace or exchange. Thread-safe. */
@SuppressWarnings("try")
public final class Renames {
  private final State state;
  private final Names names;
  private final Nodes nodes;
  private final SourceTree tree;

  public Renames(State state, Names names, Nodes nodes, SourceTree tree) {
    this.state = state;
    this.names = names;
    this.nodes = nodes;
    this.tree = tree;
  }

  public void rename(
      long number, FileName name, long toNumber, FileName toName, int flags, Caller caller)
      throws FsException {
    boolean isExchange = flags == OutputCalls.RENAME_EXCHANGE;
    if (flags != 0 && flags != OutputCalls.RENAME_NOREPLACE && !isExchange) {
      throw new FsException(Errno.EINVAL, "flags of a rename: " + flags);
    }
    if (state.result(caller.unique()) != null) {
      return;
    }
    Nodes.checkName(name);
    if (!isExchange) {
      Nodes.checkNewName(toName);
      tree.checkLength(toName);
    }
    while (!tryRename(number, name, toNumber, toName, flags, caller)) {
      // Names changed meanwhile.
      tree.looks().checkInterrupted();
    }
  }

  private boolean tryRename(
      long number, FileName name, long toNumber, FileName toName, int flags, Caller caller)
      throws FsException {
    boolean isExchange = flags == OutputCalls.RENAME_EXCHANGE;
    Inode directory = nodes.directory(number);
    Inode toDirectory = nodes.directory(toNumber);
    Inode before = names.before(number, name);
    Inode toBefore = names.before(toNumber, toName);
    if (before == null || (isExchange && toBefore == null)) {
      throw new FsException(Errno.ENOENT, before == null ? name.toString() : toName.toString());
    }
    names.checkReachable(before, directory, toDirectory, name);
    if (isExchange && toBefore != null) {
      names.checkReachable(toBefore, toDirectory, directory, toName);
    }
    checkProtection(directory, before, name);
    if (toBefore != null) {
      checkProtection(toDirectory, toBefore, toName);
    }
    toDirectory.protection().requireGrowing(toName.toString());
    Listing listing = nodes.listing(directory);
    Listing toListing = nodes.listing(toDirectory);
    Listing inside = toBefore != null && toBefore.isDirectory() ? nodes.listing(toBefore) : null;
    names.announce(before, caller);
    if (isExchange && toBefore != null) {
      names.announce(toBefore, caller);
    }
    try (State.Held held = state.hold()) {
      Names.Found from = names.now(names.living(number), name, before, listing);
      Names.Found to = names.now(names.living(toNumber), toName, toBefore, toListing);
      if (from == null || to == null) {
        return false;
      }
      Inode inode = from.inode();
      Inode other = to.inode();
      if (inode == null || inode.number() != before.number()) {
        return false;
      }
      boolean isOther = other == null ? toBefore != null : !sameNumber(other, toBefore);
      boolean isUnannounced =
          !inode.is(Inode.ANNOUNCED) || (isExchange && other != null && !other.is(Inode.ANNOUNCED));
      boolean isStale = inside != null && other != null && !tree.isKept(other.number(), inside);
      if (isOther || isUnannounced || isStale) {
        return false;
      }
      if (other != null && flags == OutputCalls.RENAME_NOREPLACE) {
        throw new FsException(Errno.EEXIST, toName.toString());
      }
      if (other != null && other.number() == inode.number()) {
        return true; // Two names of one file: POSIX requires that nothing happens.
      }
      checkNoLoop(inode, toNumber, name);
      if (isExchange && other != null) {
        checkNoLoop(other, number, toName);
      } else if (other != null) {
        checkReplaceable(inode, other, inside, toName);
      }
      State.Update update = state.update();
      move(update, new At(number, name), inode, new At(toNumber, toName), to, isExchange, caller);
      update.result(caller.unique(), inode.number());
      update.commit();
      return true;
    }
  }

  /** Removes a name or makes it lead to another node. */
  private static void checkProtection(Inode directory, Inode inode, FileName name)
      throws FsException {
    directory.protection().requireChangeable(name.toString());
    inode.protection().requireChangeable(name.toString());
  }

  private static boolean sameNumber(Inode inode, @Nullable Inode other) {
    return other != null && inode.number() == other.number();
  }

  /** Rejects moving a directory into its own descendant. */
  private void checkNoLoop(Inode inode, long toDirectory, FileName name) throws FsException {
    if (!inode.isDirectory()) {
      return;
    }
    long at = toDirectory;
    while (at != WritableFileSystem.ROOT && at != 0) {
      if (at == inode.number()) {
        throw new FsException(Errno.EINVAL, name + ": cannot be moved into itself");
      }
      at = state.inode(at).parent();
    }
  }

  private void checkReplaceable(Inode inode, Inode other, @Nullable Listing inside, FileName toName)
      throws FsException {
    if (inode.isDirectory() && !other.isDirectory()) {
      throw new FsException(Errno.ENOTDIR, toName.toString());
    }
    if (!inode.isDirectory() && other.isDirectory()) {
      throw new FsException(Errno.EISDIR, toName.toString());
    }
    if (other.isDirectory() && !nodes.isEmpty(other, inside)) {
      throw new FsException(Errno.ENOTEMPTY, toName.toString());
    }
  }

  private void move(
      State.Update update,
      At from,
      Inode inode,
      At to,
      Names.Found found,
      boolean isExchange,
      Caller caller)
      throws FsException {
    Inode other = found.inode();
    NameRow toRow = found.row();
    boolean staysInside = from.directory() == to.directory();
    Instant now = state.now();
    long sequence = update.nextSequence();
    // A file that the source never had needs no removal there.
    boolean isKnown = other != null && (toRow == null || toRow.announced());
    update.journal(
        new Change.Rename(
            caller.head(sequence, inode.number(), state.millis()),
            from,
            to,
            isKnown && other != null ? other.number() : 0,
            isExchange,
            !staysInside
                && (inode.isDirectory() || (isExchange && other != null && other.isDirectory()))));
    update.name(
        to.directory(), to.name(), new NameRow(inode.number(), inode.type(), sequence, true));
    update.name(
        from.directory(),
        from.name(),
        isExchange && other != null
            ? new NameRow(other.number(), other.type(), sequence, true)
            : NameRow.removed(sequence));
    int fromLinks = inode.isDirectory() ? -1 : 0;
    int toLinks = inode.isDirectory() ? 1 : 0;
    if (other != null && other.isDirectory()) {
      toLinks--;
      fromLinks += isExchange ? 1 : 0;
    }
    update.put(names.touched(update.inode(from.directory()), fromLinks).withChange(sequence));
    update.put(names.touched(update.inode(to.directory()), toLinks).withChange(sequence));
    Inode moved = update.inode(inode.number());
    update.put(
        moved
            .withPlace(to.directory(), to.name())
            .withTimes(moved.attributes().modificationTime(), now)
            .withChange(sequence));
    if (other == null) {
      return;
    }
    Inode rest = update.inode(other.number());
    if (isExchange) {
      update.put(
          rest.withPlace(from.directory(), from.name())
              .withTimes(rest.attributes().modificationTime(), now)
              .withChange(sequence));
    } else {
      names.loseName(update, isKnown ? rest.withChange(sequence) : rest);
    }
  }
}
