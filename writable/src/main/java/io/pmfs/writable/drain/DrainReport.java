package io.pmfs.writable.drain;

import io.pmfs.posix.FsException;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.DrainStatus.Failure;
import io.pmfs.writable.NodeAway;
import io.pmfs.writable.data.OutputFiles;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Deferred;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Refusal;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Waiting;
import io.pmfs.writable.steps.Conflicts;
import io.pmfs.writable.steps.Pace;
import io.pmfs.writable.steps.Step;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reports the changes that the source lacks. Thread-safe. */
final class DrainReport {
  private static final Logger log = LoggerFactory.getLogger(DrainReport.class);

  private static final int MOST_FAILURES = 100;
  private static final int SCANNED = 10_000;
  private static final int MILLIS = 1000;

  private final State state;
  private final OutputFiles files;
  private final Step step;
  private final Committer committer;
  private final Conflicts conflicts;
  private final Unclosed unclosed;
  private final Supplier<@Nullable Stop> stopped;

  /**
   * Why no change is made at the moment.
   *
   * @param away the unreachable node that is the reason; null if there is none
   */
  record Stop(Failure failure, @Nullable NodeAway away) {}

  DrainReport(
      State state,
      OutputFiles files,
      Step step,
      Committer committer,
      Conflicts conflicts,
      Unclosed unclosed,
      Supplier<@Nullable Stop> stopped) {
    this.state = state;
    this.files = files;
    this.step = step;
    this.committer = committer;
    this.conflicts = conflicts;
    this.unclosed = unclosed;
    this.stopped = stopped;
  }

  /**
   * How far the source is behind.
   *
   * @param pace of copying
   * @param localBytes disk usage of data files on this node
   */
  DrainStatus status(Pace pace, long localBytes) {
    return status(refusedCount() + conflicts.givenUpCount(), failures(), pace, localBytes);
  }

  /** A status of only what {@link Conflicts#acknowledge} clears. */
  DrainStatus conflicts(Pace pace, long localBytes) {
    return status(conflicts.givenUpCount(), conflicts.last(), pace, localBytes);
  }

  private DrainStatus status(long refused, List<Failure> failures, Pace pace, long localBytes) {
    Waiting waiting = state.waiting();
    return new DrainStatus(
        waiting.bytes(),
        waiting.files() + unclosed.count(),
        state.waitingCount() + unclosed.count(),
        oldestMillis() / MILLIS,
        pace.totalBytes(),
        committer.madeCount(),
        pace.recentBytesPerSecond(),
        localBytes,
        conflicts.count(),
        refused,
        failures,
        away());
  }

  private String path(long number) {
    try {
      Inode inode = state.find(number);
      return inode == null ? "" : step.path(inode.parent(), inode.name());
    } catch (FsException e) {
      return "";
    }
  }

  /** The path of a change, or the other name that it has. */
  String path(Change change) {
    try {
      return step.path(change);
    } catch (FsException e) {
      return "inode " + change.inode();
    }
  }

  private long refusedCount() {
    Stop stop = stopped.get();
    boolean isStopped = stop != null && stop.away() == null && state.failure() == null;
    return (isStopped ? 1 : 0)
        + state.deferred().all().stream()
            .filter(entry -> entry.refusal() != null && awayNode(entry) == null)
            .count();
  }

  private @Nullable NodeAway awayNode(Deferred.Entry entry) {
    return committer.awayNode(entry.change().sequence());
  }

  /** The unreachable node that changes wait for; null if there is none. */
  private DrainStatus.@Nullable Away away() {
    Stop stop = stopped.get();
    NodeAway node = stop == null ? null : stop.away();
    if (stop != null && node != null) {
      return node.waiting(stop.failure().path(), state.waitingCount() + unclosed.count());
    }
    for (Deferred.Entry entry : state.deferred().all()) {
      NodeAway other = awayNode(entry);
      if (other != null) {
        return other.waiting(path(entry.change()), state.deferred().size() + unclosed.count());
      }
    }
    for (Map.Entry<Long, Exception> entry : unclosed.failures().entrySet()) {
      NodeAway other = NodeAway.of(entry.getValue());
      if (other != null) {
        return other.waiting(path(entry.getKey()), unclosed.count());
      }
    }
    return null;
  }

  private long oldestMillis() {
    try {
      Deferred.Entry passed = state.deferred().from(0);
      Change oldest = passed == null ? state.change(state.committed() + 1) : passed.change();
      return oldest == null ? 0 : Math.max(0, state.millis() - oldest.head().madeMillis());
    } catch (FsException e) {
      return 0;
    }
  }

  private List<Failure> failures() {
    List<Failure> all = new ArrayList<>();
    Stop stop = stopped.get();
    if (stop != null && stop.away() == null) {
      all.add(stop.failure());
    }
    addRefused(all);
    unclosed
        .failures()
        .forEach(
            (number, why) -> {
              if (all.size() < MOST_FAILURES && NodeAway.of(why) == null) {
                all.add(unclosed(path(number), why));
              }
            });
    for (Failure conflict : conflicts.last()) {
      if (all.size() < MOST_FAILURES) {
        all.add(conflict);
      }
    }
    return all;
  }

  private void addRefused(List<Failure> all) {
    Map<Long, Integer> behind = new HashMap<>();
    int looked = 0;
    for (Deferred.Entry entry : state.deferred().all()) {
      Deferred.Entry root = entry.refusal() == null && looked++ < SCANNED ? root(entry) : null;
      if (root != null) {
        behind.merge(root.change().sequence(), 1, Integer::sum);
      }
    }
    for (Deferred.Entry entry : state.deferred().all()) {
      Refusal refusal = entry.refusal();
      if (all.size() >= MOST_FAILURES) {
        return;
      }
      if (refusal != null && awayNode(entry) == null) {
        int count = behind.getOrDefault(entry.change().sequence(), 0);
        FsException answer =
            refusal.isOfNode() ? null : new FsException(refusal.errno(), refusal.reason());
        all.add(
            new Failure(path(entry.change()), refusal.reason(), answer, refusal.isAside(), count));
      }
    }
  }

  private static Failure unclosed(String path, Exception why) {
    return new Failure(
        path,
        why instanceof FsException e
            ? Failure.of(path, e).reason()
            : String.valueOf(why.getMessage()),
        null);
  }

  /** Paths of changes that the source lacks, the oldest first. */
  List<String> waiting(int most) {
    Set<String> paths = new LinkedHashSet<>();
    try {
      for (Change change : state.changesAfter(-1, Math.max(most, SCANNED))) {
        if (paths.size() >= most) {
          break;
        }
        paths.add(path(change));
      }
      for (long number : unclosed.numbers()) {
        Inode inode = state.find(number);
        if (paths.size() < most && inode != null) {
          paths.add(step.path(inode.parent(), inode.name()));
        }
      }
      for (long number : files.numbers()) {
        Inode inode = state.find(number);
        if (paths.size() < most && inode != null && inode.is(Inode.WRITING)) {
          paths.add(step.path(inode.parent(), inode.name()));
        }
      }
    } catch (FsException e) {
      log.warn("listing what waits: {}", e.getMessage());
    }
    return new ArrayList<>(paths);
  }

  /** The refused change that this one depends on, or itself. */
  Deferred.@Nullable Entry root(Deferred.@Nullable Entry entry) {
    Deferred.Entry at = entry;
    while (at != null && at.refusal() == null) {
      at = state.deferred().before(at.change(), Set.of());
    }
    return at;
  }
}
