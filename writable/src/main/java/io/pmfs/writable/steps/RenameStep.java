package io.pmfs.writable.steps;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Intent;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.tree.Homes;
import io.pmfs.writable.tree.Listing;
import io.pmfs.writable.tree.SourceTree;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Renames at the source. Used by one thread. */
@SuppressWarnings("try")
public final class RenameStep {
  private final Step step;
  private final Copies copies;
  private final Temporaries temporaries;
  private final UnlinkedFiles unlinked;
  private final NameStep names;
  private final State state;
  private final OutputCalls calls;

  public RenameStep(
      Step step, Copies copies, Temporaries temporaries, UnlinkedFiles unlinked, NameStep names) {
    this.step = step;
    this.copies = copies;
    this.temporaries = temporaries;
    this.unlinked = unlinked;
    this.names = names;
    this.state = step.state();
    this.calls = step.calls();
  }

  public Recording apply(Change.Rename change) throws FsException {
    Inode inode = state.find(change.inode());
    At from = inode == null ? null : home(inode, change.from());
    if (inode == null || from == null) {
      return inode == null || inode.isRemoved() ? removeReplaced(change) : Recording.NOTHING;
    }
    try (SourceTree.Directory directory = step.open(from.directory());
        SourceTree.Directory to = step.open(change.to().directory())) {
      Inode other = change.other() == 0 ? null : state.find(change.other());
      if (change.isExchange() && other != null) {
        return exchange(change, inode, other, directory, to);
      }
      Recording remaining = remaining(change, other);
      return apply(new Move(change, inode, from, other, directory, to)).and(remaining);
    }
  }

  /** Preserves what programs use of a replaced file, unless the source has lost it already. */
  private Recording remaining(Change.Rename change, @Nullable Inode other) throws FsException {
    return other == null || !UnlinkedFiles.isUsed(other) || isMade(change)
        ? Recording.NOTHING
        : unlinked.of(other);
  }

  /** The renamed node was removed since, and the source has it no more. */
  private Recording removeReplaced(Change.Rename change) throws FsException {
    Inode other = change.isExchange() ? null : state.find(change.other());
    if (other == null) {
      return Recording.NOTHING;
    }
    Change.Removal removal = Change.Removal.of(other, change.to(), change.head());
    return removal instanceof Change.Unlink unlink
        ? names.unlink(unlink)
        : names.rmdir((Change.RemoveDirectory) removal);
  }

  /** Whether a rename was made at the source without being recorded. */
  public boolean isMade(Change.Rename change) throws FsException {
    Inode inode = state.find(change.inode());
    At from = inode == null ? null : home(inode, change.from());
    Stat seen = inode == null ? null : inode.seen();
    if (from == null || seen == null) {
      return false;
    }
    try (SourceTree.Directory directory = step.openIfThere(from.directory());
        SourceTree.Directory to = step.openIfThere(change.to().directory())) {
      Stat left = directory == null ? null : Step.find(directory, from.name());
      Stat there = to == null ? null : Step.find(to, change.to().name());
      boolean isThere = there != null && seen.isSameFile(there);
      return isThere && (left == null || !seen.isSameFile(left));
    }
  }

  private @Nullable At home(Inode inode, At exact) throws FsException {
    try (State.Held held = state.hold()) {
      List<At> homes = step.homes().all(inode);
      if (homes.contains(exact)) {
        return exact;
      }
      return homes.size() == 1 ? homes.get(0) : null;
    }
  }

  // ---- one name

  /**
   * A rename that does not exchange.
   *
   * @param from where the source has the node
   * @param other what the mount replaced
   * @param left the directory of {@code from}
   * @param entered the directory of the new name
   */
  private record Move(
      Change.Rename change,
      Inode inode,
      At from,
      @Nullable Inode other,
      SourceTree.Directory left,
      SourceTree.Directory entered) {
    FileName toName() {
      return change.to().name();
    }

    Move replacingNothing() {
      return new Move(change, inode, from, null, left, entered);
    }
  }

  private Recording apply(Move move) throws FsException {
    step.tree().beginMove();
    Change.Rename change = move.change;
    Inode inode = move.inode;
    At from = move.from;
    Stat moving = Step.find(move.left, from.name());
    Stat seen = inode.seen();
    Stat target = Step.find(move.entered, move.toName());
    FileName copied = copied(move, target);
    Stat copy = copied == null ? null : Step.find(move.entered, copied);
    if (moving == null || seen == null || !seen.isSameFile(moving)) {
      // Perhaps done before a crash.
      if (target != null && seen != null && seen.isSameFile(target)) {
        return moved(move, move.toName(), target, target, true);
      }
      if (copied != null && copy != null) {
        return moved(move, copied, copy, copy, true);
      }
      return moving == null && inode.isRemoved()
          ? step.removed(inode.number(), from.directory(), from.name()).and(removeReplaced(change))
          : vanished(change, inode, from);
    }
    if (copied != null && copy != null) {
      Recording kept = removeCopied(move, seen);
      return moved(move, copied, copy, moving, false).and(kept);
    }
    if (target != null && target.isSameFile(moving)) {
      // Two names of one file: rename(2) would do nothing, but the mount has lost one of them.
      removeOld(move);
      return moved(move, move.toName(), moving, moving, false);
    }
    FileName given;
    try {
      given = give(move, move.left, from.name(), target);
    } catch (FsException e) {
      if (e.errno() != Errno.EXDEV || !isOnlyName(inode, moving)) {
        throw e;
      }
      return moveCopy(move, moving);
    }
    return moved(move, given, moving, moving, false);
  }

  /** Whether nothing is lost if one file replaces the other, as mv(1) does. */
  private boolean isOnlyName(Inode inode, Stat there) throws FsException {
    try (State.Held held = state.hold()) {
      return inode.isRegular()
          && there.attributes().linkCount() == 1
          && step.homes().all(inode).size() == 1;
    }
  }

  /** Renames between file systems or projects by copying the file. */
  private Recording moveCopy(Move move, Stat moving) throws FsException {
    step.tree().endMove(); // Nothing has moved yet, and the copy may last long.
    Copies.Copy copy = copies.duplicate(move.change, move.left, move.from.name(), moving);
    temporaries.prove(List.of(copy));
    step.tree().beginMove();
    Stat target = Step.find(move.entered, move.toName());
    FileName given = give(move, move.entered, copy.name(), target);
    temporaries.used(move.change);
    step.sync(move.entered);
    Recording kept = removeCopied(move, moving);
    return moved(move, given, Objects.requireNonNull(copy.made()), moving, false).and(kept);
  }

  /** The name that an earlier attempt gave to its copy; null if there is none. */
  private @Nullable FileName copied(Move move, @Nullable Stat target) throws FsException {
    Change.Rename change = move.change;
    if (isCopied(change, target)) {
      return move.toName();
    }
    if (target == null || Intent.of(state, change.sequence()) == null) {
      return null;
    }
    FileName beside =
        step.makeBeside(
            move.toName(),
            name -> {
              Stat there = Step.find(move.entered, name);
              return there == null || isCopied(change, there);
            });
    return isCopied(change, Step.find(move.entered, beside)) ? beside : null;
  }

  /** Removes a file that was copied, unless another program has changed it since. */
  private Recording removeCopied(Move move, Stat before) throws FsException {
    Stat old = Step.find(move.left, move.from.name());
    if (old != null && before.hasSameContent(old)) {
      removeOld(move);
      return Recording.NOTHING;
    }
    long directory = move.from.directory();
    Recording shown = update -> step.tree().forget(directory);
    return old == null
        ? shown
        : shown.and(
            step.conflict(
                move.change,
                step.path(directory, move.from.name()),
                "another program changed this file while it was moved; it is kept"));
  }

  private boolean isCopied(Change.Rename change, @Nullable Stat target) throws FsException {
    Intent intent = target == null ? null : Intent.of(state, change.sequence());
    return intent != null && target != null && intent.isOf(target);
  }

  private void removeOld(Move move) throws FsException {
    try (OutputCalls.Acting acting = step.actors().as(move.change)) {
      calls.unlink(move.left.file(), move.from.name());
    }
  }

  /**
   * Gives a file of a directory the new name or, if another program's file has that, one beside it.
   *
   * @return the name
   */
  private FileName give(
      Move move, SourceTree.Directory directory, FileName name, @Nullable Stat target)
      throws FsException {
    Inode other = move.other;
    boolean isMoved =
        tryMove(move, directory, name, target)
            || (other != null
                && other.isDirectory()
                && temporaries.clear(other.number())
                && tryMove(move, directory, name, target));
    return isMoved
        ? move.toName()
        : step.makeBeside(
            move.toName(),
            free -> step.renameFreeAs(move.change, directory, name, move.entered, free));
  }

  /** Gives a file of a directory the new name. */
  private boolean tryMove(
      Move move, SourceTree.Directory directory, FileName name, @Nullable Stat target)
      throws FsException {
    boolean isExpected = target == null || isExpected(move.change, move.other, target);
    try (OutputCalls.Acting acting = step.actors().as(move.change)) {
      if (target == null) {
        return step.renameFree(directory, name, move.entered, move.toName());
      }
      if (isExpected) {
        calls.rename(directory.file(), name, move.entered.file(), move.toName(), 0);
      }
      return isExpected;
    } catch (FsException e) {
      if (e.errno() == Errno.ENOTEMPTY || e.errno() == Errno.EEXIST) {
        return false;
      }
      throw e;
    }
  }

  /** Whether the file under the new name is the one that the mount replaced. */
  private boolean isExpected(Change.Rename change, @Nullable Inode other, Stat target)
      throws FsException {
    Stat expected = other == null ? null : other.seen();
    return other != null
        && expected != null
        && isAt(other, change.to().directory(), change.to().name())
        && (other.isRegular() ? expected.hasSameContent(target) : expected.isSameFile(target));
  }

  private boolean isAt(Inode inode, long directory, FileName name) throws FsException {
    try (State.Held held = state.hold()) {
      return step.homes().has(inode, directory, name);
    }
  }

  /**
   * Completes a rename that is made at the source.
   *
   * @param name which the source has now: the new one, or one beside it
   * @param there the file that was given that name
   * @param before the node's state before it
   * @param isMade whether it was made before this step began
   */
  private Recording moved(Move move, FileName name, Stat there, Stat before, boolean isMade)
      throws FsException {
    try (SourceTree.Directory node = move.entered.node(name, there)) {
      return name.equals(move.toName())
          ? moved(move, name, node, before, isMade)
          : moved(move.replacingNothing(), name, node, before, isMade).and(keptBeside(move, name));
    }
  }

  private Recording keptBeside(Move move, FileName beside) throws FsException {
    Change.Rename change = move.change;
    long number = move.inode.number();
    long where = change.to().directory();
    return step.aside(number, where)
        .and(
            update -> {
              Inode now = update.inode(number);
              if (!now.isRemoved()) {
                update.put(now.withPlace(where, beside));
              }
            })
        .and(
            step.conflict(
                change, "another program changed this file; yours is saved as " + beside));
  }

  private Recording moved(
      Move move, FileName name, SourceTree.Directory node, Stat before, boolean isMade)
      throws FsException {
    Change.Rename change = move.change;
    Inode inode = move.inode;
    Inode other = move.other;
    At from = move.from;
    SourceTree.Directory to = move.entered;
    step.times().disturb(change, from.directory());
    Recording rested =
        step.finish(
            change,
            from.directory(),
            null,
            () -> {
              step.sync(to);
              if (from.directory() != change.to().directory()) {
                step.sync(move.left);
              }
              step.times().touchMoved(node, inode.number());
            });
    Stat stat = step.after(inode, before, node.status(Inode.NO_NAME), isMade);
    At there = new At(change.to().directory(), name);
    Recording replaced =
        other == null
            ? Recording.NOTHING
            : step.removed(other.number(), there.directory(), name).and(step.linksOf(other, there));
    return replaced
        .and(update -> listed(from, there, stat))
        .and(
            update -> {
              Inode next = step.homes().move(update, update.inode(inode.number()), from, there);
              update.put(Homes.seen(update, next, stat));
              step.tree().markChecked(inode.number());
            })
        .and(rested);
  }

  private void listed(At from, At to, Stat stat) {
    Listing left = step.tree().known(from.directory());
    if (left != null) {
      left.remove(from.name());
    }
    Listing entered = step.tree().known(to.directory());
    if (entered != null) {
      entered.add(to.name(), stat.inode(), stat.attributes().type());
    }
  }

  /** Handles a file that another program removed or replaced before it was renamed. */
  private Recording vanished(Change.Rename change, Inode inode, At from) throws FsException {
    return step.conflict(change, "another program removed or replaced it before it was renamed")
        .and(
            update -> {
              Inode now = step.homes().clear(update, update.inode(inode.number()));
              update.put(Homes.unseen(update, now));
              step.tree().forget(from.directory());
            });
  }

  // ---- two names

  private Recording exchange(
      Change.Rename change,
      Inode inode,
      Inode other,
      SourceTree.Directory directory,
      SourceTree.Directory to)
      throws FsException {
    step.tree().beginMove();
    FileName name = change.from().name();
    FileName toName = change.to().name();
    Stat first = Step.find(directory, name);
    Stat second = Step.find(to, toName);
    Stat seen = inode.seen();
    Stat otherSeen = other.seen();
    if (first == null || second == null || seen == null || otherSeen == null) {
      return vanished(change, inode, new At(change.from().directory(), name));
    }
    boolean isDone = seen.isSameFile(second) && otherSeen.isSameFile(first);
    if (!isDone && !(seen.isSameFile(first) && otherSeen.isSameFile(second))) {
      return step.conflict(change, "another program replaced one of two files to be exchanged");
    }
    if (!isDone) {
      try (OutputCalls.Acting acting = step.actors().as(change)) {
        calls.rename(directory.file(), name, to.file(), toName, OutputCalls.RENAME_EXCHANGE);
      }
    }
    Stat before = isDone ? second : first;
    Stat otherBefore = isDone ? first : second;
    Recording rested;
    Stat now;
    Stat otherNow;
    try (SourceTree.Directory node = to.node(toName, before);
        SourceTree.Directory otherNode = directory.node(name, otherBefore)) {
      rested =
          step.finish(
              change,
              change.from().directory(),
              null,
              () -> {
                step.sync(directory);
                step.sync(to);
                step.times().touchMoved(node, inode.number());
                step.times().touchMoved(otherNode, other.number());
              });
      now = step.after(inode, before, node.status(Inode.NO_NAME), isDone);
      otherNow = step.after(other, otherBefore, otherNode.status(Inode.NO_NAME), isDone);
    }
    At from = new At(change.from().directory(), name);
    At there = new At(change.to().directory(), toName);
    return rested.and(
        update -> {
          listed(new At(from.directory(), name), there, now);
          Listing left = step.tree().known(from.directory());
          if (left != null) {
            left.add(name, otherNow.inode(), otherNow.attributes().type());
          }
          Inode moved = step.homes().move(update, update.inode(inode.number()), from, there);
          update.put(Homes.seen(update, moved, now));
          Inode back = step.homes().move(update, update.inode(other.number()), there, from);
          update.put(Homes.seen(update, back, otherNow));
        });
  }
}
