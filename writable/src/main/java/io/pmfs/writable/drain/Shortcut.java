package io.pmfs.writable.drain;

import io.pmfs.metadata.Attributes;
import io.pmfs.writable.journal.Change;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Coalesces the next changes into one step at the source.
 *
 * <p>The source must always show an earlier state of the mount. A run of changes may be coalesced
 * only if the source goes from the state before the run to the state after it in at most one step;
 * then it shows only states that the mount had. Changes of the same file are folded, a link and the
 * removal of another name into a rename, and files created and removed within the run are dropped;
 * the run counts only if at most one change is left. A replaced version is therefore copied if
 * anything else happened in between.
 *
 * @param count how many changes the step replaces
 * @param step what is made; null for nothing
 */
public record Shortcut(int count, @Nullable Change step) {
  /** A longer run will not become one step. */
  private static final int MAX_LEFT = 64;

  /** The longest run at the beginning of these changes, at least one. */
  public static Shortcut of(List<Change> changes) {
    Shortcut best = new Shortcut(1, changes.get(0));
    List<Change> left = new ArrayList<>();
    for (int i = 0; i < changes.size() && left.size() < MAX_LEFT; i++) {
      fold(left, changes.get(i));
      if (left.size() <= 1) {
        best = new Shortcut(i + 1, left.isEmpty() ? null : left.get(0));
      }
    }
    return best;
  }

  private static void fold(List<Change> left, Change next) {
    int last = lastOf(left, next.inode());
    Change folded = last < 0 ? null : fold(left.get(last), next);
    if (folded != null) {
      left.set(last, folded);
      return;
    }
    if (next instanceof Change.Removal removal
        && last >= 0
        && isBirthUnder(left.get(last), removal)) {
      left.remove(last);
      return;
    }
    if (next instanceof Change.Unlink unlink && unlink.isLast()) {
      dropContent(left, unlink);
    }
    left.add(next);
  }

  /** Index of an inode's last change; -1 if a later change refers to it, which prevents folding. */
  private static int lastOf(List<Change> left, long inode) {
    for (int i = left.size() - 1; i >= 0; i--) {
      Change change = left.get(i);
      if (change.inode() == inode) {
        return i;
      }
      if (change.other() == inode) {
        return -1;
      }
    }
    return -1;
  }

  /** Folds two changes of the same file; null if that is not possible. */
  private static @Nullable Change fold(Change before, Change next) {
    if (before instanceof Change.Content content) {
      return fold(content, next);
    }
    if (before instanceof Change.Link link && next instanceof Change.Unlink unlink) {
      return fold(link, unlink);
    }
    if (before instanceof Change.SetAttributes earlier
        && next instanceof Change.SetAttributes later) {
      return new Change.SetAttributes(
          later.head(), merge(earlier.attributes(), later), earlier.mask() | later.mask());
    }
    return null;
  }

  /** A file that gets a name and loses another is renamed, also where links are impossible. */
  private static @Nullable Change fold(Change.Link before, Change.Unlink next) {
    return next.at().equals(before.at())
        ? null
        : new Change.Rename(next.head(), next.at(), before.at(), 0, false, false);
  }

  private static @Nullable Change fold(Change.Content before, Change next) {
    if (next instanceof Change.Content content) {
      return content.isLost() ? null : content.after(before); // A lost content replaces nothing.
    }
    if (next instanceof Change.SetAttributes set) {
      return before.isLost() ? null : before.with(merge(before.attributes(), set));
    }
    return null;
  }

  private static Attributes merge(Attributes before, Change.SetAttributes next) {
    Attributes wanted = next.attributes();
    Attributes merged = wanted.withSize(before.size(), before.blocks());
    return next.setsTimes()
        ? merged
        : merged.withTimes(before.accessTime(), before.modificationTime());
  }

  /** Whether a change created the name that the next one removes. */
  private static boolean isBirthUnder(Change before, Change.Removal next) {
    return before instanceof Change.Content content
        ? content.isFirst() && next.at().equals(content.name())
        : before instanceof Change.Made made && next.at().equals(made.at());
  }

  /** Drops a content that was never visible, because the file's last name was removed after it. */
  private static void dropContent(List<Change> left, Change.Unlink removal) {
    int last = lastOf(left, removal.inode());
    if (last < 0) {
      return;
    }
    Change change = left.get(last);
    boolean isOnlyChange =
        left.stream().filter(other -> other.inode() == removal.inode()).count() == 1;
    boolean isInvisible =
        (change instanceof Change.Content content && !content.isFirst())
            || change instanceof Change.SetAttributes;
    if (isOnlyChange && isInvisible) {
      left.remove(last);
    }
  }
}
