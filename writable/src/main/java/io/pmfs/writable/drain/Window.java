package io.pmfs.writable.drain;

import io.pmfs.posix.FsException;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.steps.ContentStep;
import io.pmfs.writable.steps.Copies;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The next changes of the journal, as many as are examined for coalescing and for copying ahead.
 * Used by one thread.
 */
final class Window {
  static final int COPIES_AHEAD = 32;

  private static final int MOST = 512;

  private final State state;
  private final Copies copies;
  private final List<Change> changes = new ArrayList<>();

  /** Whether there are contents that can be copied ahead. */
  private boolean isMoreToCopy;

  Window(State state, Copies copies) {
    this.state = state;
    this.copies = copies;
  }

  /** A view: it changes with the window. */
  List<Change> changes() {
    return Collections.unmodifiableList(changes);
  }

  boolean isEmpty() {
    return changes.isEmpty();
  }

  Change first() {
    return changes.get(0);
  }

  void fill() throws FsException {
    if (!changes.isEmpty() && first().sequence() != state.committed() + 1) {
      changes.clear();
    }
    long last = changes.isEmpty() ? state.committed() : changes.get(changes.size() - 1).sequence();
    if (changes.size() < MOST / 2 && last < state.head()) {
      changes.addAll(state.changesAfter(last, MOST - changes.size()));
      isMoreToCopy = true;
    }
  }

  void clear() {
    changes.clear();
  }

  /** Removes the changes up to one. */
  void removeTo(long sequence) {
    int count = 0;
    while (count < changes.size() && changes.get(count).sequence() <= sequence) {
      count++;
    }
    changes.subList(0, count).clear();
  }

  /** The first change, and those behind it that depend on no deferred change. */
  List<Change> free() {
    int count = 1;
    while (count < changes.size()
        && state.deferred().before(changes.get(count), Set.of()) == null) {
      count++;
    }
    return changes().subList(0, count);
  }

  /** Starts copies of contents that will be needed. */
  void copyAhead() throws FsException {
    if (!isMoreToCopy || copies.aheadCount() > COPIES_AHEAD / 2) {
      return;
    }
    Map<Long, Long> last = new HashMap<>();
    for (Change change : changes) {
      if (change instanceof Change.Content || change instanceof Change.Unlink) {
        last.put(change.inode(), change.sequence());
      }
    }
    List<Change.Content> wanted = new ArrayList<>();
    int most = COPIES_AHEAD - copies.aheadCount();
    for (int i = 0; i < changes.size() && wanted.size() < most; i++) {
      if (changes.get(i) instanceof Change.Content content
          && !content.isLost()
          && content.sequence() == last.getOrDefault(content.inode(), 0L)
          && !copies.isAhead(content.sequence())) {
        Inode inode = state.find(content.inode());
        if (inode != null && !ContentStep.isAppended(content, inode)) {
          wanted.add(content);
        }
      }
    }
    isMoreToCopy = wanted.size() == most;
    copies.begin(wanted);
  }
}
