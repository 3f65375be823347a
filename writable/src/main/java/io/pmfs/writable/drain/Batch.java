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
 * Changes that are settled together: a later content replaces an earlier one of the same node, and
 * a removal replaces everything.
 *
 * @param done all changes that this settles
 * @param steps the changes to make at the source; none if the node was never there
 */
public record Batch(List<Change> done, List<Change> steps) {
  /** Whether these are only new files, side by side. */
  public boolean isOfNewFiles() {
    return steps.size() > 1 && steps.stream().allMatch(change -> change instanceof Change.Content);
  }

  /**
   * Merges the changes of one node, in order.
   *
   * @param own the deferred ones
   * @param homes the node's names at the source
   * @return null if the last one must wait for the others
   */
  public static @Nullable Batch of(List<Change> own, Change last, List<At> homes, State state)
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
    return shortcut.count() == all.size() && step != null ? new Batch(all, List.of(step)) : null;
  }

  private static boolean isLast(Change.Removal removal) {
    return !(removal instanceof Change.Unlink unlink) || unlink.isLast();
  }

  private static @Nullable Batch removal(
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
        continue; // The removal replaces what was not completed.
      }
      isBegun |= isContent && isPerhapsMade(change, state);
      if (!isOfOne
          || (isOfNames && !homes.isEmpty())
          || (!isContent && isPerhapsMade(change, state))) {
        return null;
      }
      if (change instanceof Change.Rename rename) {
        Inode other = state.find(rename.other());
        if (other != null) {
          steps.add(Change.Removal.of(other, rename.to(), last.head()));
        }
      }
    }
    if (homes.size() > 1) {
      return null;
    }
    Inode inode = state.find(last.inode());
    if (!homes.isEmpty() && inode != null) {
      steps.add(0, Change.Removal.of(inode, homes.get(0), last.head()));
    } else if (isBegun) {
      steps.add(0, last); // The removal checks whether the source has the file.
    }
    return new Batch(all, steps);
  }

  /** Whether the source may have a new node although a call failed. */
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
}
