package io.pmfs.writable.drain;

import io.pmfs.posix.FsException;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Deferred;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Intent;
import io.pmfs.writable.journal.Refusal;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a change makes of changes of the same node that the source does not have: a later content
 * takes the place of an earlier one, and a removal that of everything.
 *
 * @param done all changes that are settled then
 * @param steps what is to be made at the source; nothing if the node never was there
 */
public record Together(List<Change> done, List<Change> steps) {
  /** Whether these are new files, none of which takes the place of another. */
  public boolean isOfNewFiles() {
    return steps.size() > 1 && steps.stream().allMatch(change -> change instanceof Change.Content);
  }

  /**
   * Changes of one node, in their order.
   *
   * @param own those that wait
   * @param homes where the source has the node
   * @return null if the last one has to wait for the others
   */
  public static @Nullable Together of(List<Change> own, Change last, List<At> homes, State state)
      throws FsException {
    List<Change> all = new ArrayList<>(own);
    all.add(last);
    if (last instanceof Change.Removal removal && isLast(removal)) {
      return removal(own, removal, all, homes, state);
    }
    for (Change change : own) {
      if (isPerhapsMade(change, state)) {
        return null;
      }
    }
    Shortcut shortcut = Shortcut.of(all);
    Change step = shortcut.step();
    return shortcut.count() == all.size() && step != null ? new Together(all, List.of(step)) : null;
  }

  private static boolean isLast(Change.Removal removal) {
    return !(removal instanceof Change.Unlink unlink) || unlink.isLast();
  }

  private static @Nullable Together removal(
      List<Change> own, Change.Removal last, List<Change> all, List<At> homes, State state)
      throws FsException {
    List<Change> steps = new ArrayList<>();
    boolean isBegun = false;
    for (Change change : own) {
      boolean isOfOne =
          change.inode() == last.inode()
              && !(change instanceof Change.Rename rename && rename.isExchange());
      boolean isOfNames = change instanceof Change.Link || change instanceof Change.Removal;
      boolean isContent = change instanceof Change.Content;
      if (isOfOne && Intent.isMade(state, change)) {
        continue; // The removal takes the place of what remains.
      }
      isBegun |= isContent && isPerhapsMade(change, state);
      if (!isOfOne
          || (isOfNames && !homes.isEmpty())
          || (!isContent && isPerhapsMade(change, state))) {
        return null;
      }
      if (change instanceof Change.Rename rename && rename.other() != 0) {
        steps.add(removal(last, rename.other(), rename.to(), state));
      }
    }
    if (homes.size() > 1) {
      return null;
    }
    if (!homes.isEmpty()) {
      steps.add(0, removal(last, last.inode(), homes.get(0), state));
    } else if (isBegun) {
      steps.add(0, last); // It looks whether the source has the file.
    }
    return new Together(all, steps);
  }

  /** Whether the source may have got a new node although a call failed. */
  public static boolean isPerhapsMade(Change change, State state) throws FsException {
    if (Intent.isMade(state, change)) {
      return true;
    }
    if (change instanceof Change.Content content) {
      return content.isFirst() && state.get(Tables.INTENTS, Tables.key(content.sequence())) != null;
    }
    Deferred.Entry entry = state.deferred().get(change.sequence());
    Refusal refusal = entry == null ? null : entry.refusal();
    return refusal != null && !refusal.isAside() && !refusal.isOfRoom();
  }

  /** The removal of what a name has at the source. */
  private static Change removal(Change.Removal last, long inode, At at, State state)
      throws FsException {
    Change.Head head =
        new Change.Head(last.sequence(), inode, last.uid(), last.gid(), last.head().madeMillis());
    Inode there = state.find(inode);
    return last instanceof Change.RemoveDirectory
        ? new Change.RemoveDirectory(head, at)
        : new Change.Unlink(head, at, there == null || there.isRemoved());
  }
}
