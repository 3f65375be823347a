package io.pmfs.writable.steps;

import com.google.common.collect.Iterables;
import io.pmfs.metadata.Attributes;
import io.pmfs.posix.FsException;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Intent;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import java.time.Instant;
import java.time.temporal.ChronoField;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Whether a file of the source is a version that this mount announced, made by an earlier attempt
 * or an earlier process without being recorded. Used by one thread.
 */
public final class OwnVersions {
  /** File systems store times in one of these units. */
  private static final List<Integer> UNIT_NANOS =
      List.of(1, 100, 1000, 1_000_000, 10_000_000, 1_000_000_000, 2_000_000_000);

  private final State state;
  private List<Change> window = List.of();

  OwnVersions(State state) {
    this.state = state;
  }

  /** The changes that are made next. */
  void setWindow(List<Change> changes) {
    window = changes;
  }

  /**
   * Whether the source has an announced version, or a part of one, that an earlier attempt or
   * process put there without recording it.
   */
  boolean isOwnVersion(Stat there, long number) throws FsException {
    Inode inode = state.find(number);
    Stat seen = inode == null ? null : inode.seen();
    for (Change.Content content : contents(number)) {
      if (isMade(there, seen, content) || isPart(there, seen, content)) {
        return true;
      }
    }
    return seen != null
        && seen.isSameFile(there)
        && seen.attributes().size() == there.attributes().size()
        && isTimeSet(there.attributes().modificationTime(), number);
  }

  List<Change.Content> contents(long number) {
    List<Change.Content> contents = new ArrayList<>();
    for (Change change : Iterables.concat(state.deferred().of(number), window)) {
      if (change instanceof Change.Content content && content.inode() == number) {
        contents.add(content);
      }
    }
    return contents;
  }

  /**
   * Whether an earlier attempt produced the wanted file; another program may have produced one that
   * looks alike.
   */
  boolean isMade(Stat there, @Nullable Stat seen, Change.Content change) throws FsException {
    boolean isVersion = isVersion(there, change) || isVersionWithOtherTimes(there, change);
    Intent intent = isVersion ? Intent.of(state, change) : null;
    boolean isInPlace =
        intent != null
            && intent.mark() != Intent.Mark.NOTHING
            && seen != null
            && seen.isSameFile(there);
    return intent != null && (isInPlace || intent.isOf(there));
  }

  /**
   * Like {@link #isVersion}, with the times that the content had before it was merged with a later
   * change, or those of a change that an earlier attempt made together with it.
   */
  private boolean isVersionWithOtherTimes(Stat there, Change.Content change) {
    Attributes found = there.attributes();
    return found.type() == change.attributes().type()
        && found.size() == change.size()
        && (isTimeSet(found.modificationTime(), change.inode())
            || contents(change.inode()).stream()
                .anyMatch(
                    content ->
                        content.sequence() == change.sequence() && isVersion(there, content)));
  }

  /** Whether an unrecorded change of a node sets this time. */
  private boolean isTimeSet(Instant time, long number) {
    for (Change change : Iterables.concat(state.deferred().of(number), window)) {
      if (change instanceof Change.SetAttributes set
          && set.inode() == number
          && set.setsTimes()
          && isKept(time, set.attributes().modificationTime())) {
        return true;
      }
    }
    return false;
  }

  /**
   * Whether an attempt to change the file in place may have left it like this, or found it like
   * this and could not open it: exactly, if that was recorded. A process that dies cannot record
   * it.
   */
  private boolean isPart(Stat there, @Nullable Stat seen, Change.Content change)
      throws FsException {
    Intent intent = Intent.of(state, change);
    if (intent == null || seen == null || !seen.isSameFile(there)) {
      return false;
    }
    Stat left = intent.left();
    long size = there.attributes().size();
    return switch (intent.mark()) {
      case OVERWRITES -> left == null || left.hasSameContent(there);
      case APPENDS ->
          left == null
              ? size >= seen.attributes().size() && size <= change.attributes().size()
              : left.hasSameContent(there);
      default -> left != null && left.hasSameContent(there);
    };
  }

  /**
   * Whether an earlier attempt may have truncated a file to overwrite it in place. Several contents
   * may have been merged since, under the number of the last.
   */
  boolean isOverwriting(long number) throws FsException {
    for (Change.Content content : contents(number)) {
      if (Temporaries.isOverwriting(state, content)) {
        return true;
      }
    }
    return false;
  }

  /** Whether a file is the result of a change, even if a power failure cut the data here since. */
  static boolean isVersion(Stat there, Change.Content change) {
    Attributes wanted = change.attributes();
    Attributes found = there.attributes();
    return found.type() == wanted.type()
        && (found.size() == change.size() || found.size() == wanted.size())
        && isKept(found.modificationTime(), wanted.modificationTime());
  }

  /** Whether a file system may store a given time like this: some truncate it. */
  private static boolean isKept(Instant there, Instant given) {
    int nanos =
        Math.floorMod(given.getEpochSecond(), 2) * 1_000_000_000
            + given.get(ChronoField.NANO_OF_SECOND);
    return UNIT_NANOS.stream().anyMatch(unit -> there.equals(given.minusNanos(nanos % unit)));
  }

  /** Whether the source has the time that the mount shows, as its file system stores it. */
  public static boolean hasTimeOf(Stat there, Inode shown) {
    return isKept(there.attributes().modificationTime(), shown.attributes().modificationTime());
  }

  /** The node, once drained, with the source's timestamps. */
  public static Inode agreed(Inode inode, Stat there) {
    Attributes kept = there.attributes();
    return inode.with(inode.attributes().withTimes(kept.accessTime(), kept.modificationTime()));
  }
}
