package io.pmfs.tasks;

import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.FsException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Reads the order of a prefetch, looking up a few thousand paths at a time, and searches for a
 * reader that is further on. Used by the task's thread and the threads it starts.
 */
final class OrderReader {
  /** Paths looked up at once. */
  static final int BATCH = 4096;

  private final TaskSource source;
  private final RunningTask task;
  private final TaskPaths paths;
  private final TaskPaths.Cursor cursor;
  private final BitSet reported = new BitSet(); // GUARDED_BY(reported); indexed by position
  private List<Entry> batch = List.of();
  private int at;

  OrderReader(TaskSource source, RunningTask task, TaskPaths paths, long from) {
    this.source = source;
    this.task = task;
    this.paths = paths;
    this.cursor = paths.open();
    cursor.skipTo(from);
  }

  /** A path of the order with its inode number; 0 if unknown. */
  record Entry(TaskPaths.Place place, long number) {}

  /** The next path, which stays the next until {@link #pass}; null after the last. */
  @Nullable Entry next() throws InterruptedException {
    if (at == batch.size()) {
      batch = nextBatch(cursor);
      at = 0;
    }
    return at == batch.size() ? null : batch.get(at);
  }

  void pass() {
    at++;
  }

  long position() {
    return cursor.position() - (batch.size() - at);
  }

  long rest() {
    return paths.count() - position();
  }

  /** Skips paths until the next one is at the given position. */
  void skipTo(long position) {
    long within = position - position() + at;
    if (within <= batch.size()) {
      at = (int) within;
    } else {
      batch = List.of();
      at = 0;
      cursor.skipTo(position);
    }
  }

  private List<Entry> nextBatch(TaskPaths.Cursor from) throws InterruptedException {
    List<TaskPaths.Place> places = new ArrayList<>();
    for (TaskPaths.Place place; places.size() < BATCH && (place = TaskPaths.next(from)) != null; ) {
      places.add(place);
    }
    long[] numbers = new long[places.size()];
    AtomicInteger next = new AtomicInteger();
    task.runThreads(
        Math.min(source.jobs(), numbers.length),
        "find",
        () -> {
          for (int i; (i = next.getAndIncrement()) < numbers.length && !task.isCancelled(); ) {
            numbers[i] = find(places.get(i));
          }
        });
    List<Entry> entries = new ArrayList<>();
    for (int i = 0; i < numbers.length; i++) {
      entries.add(new Entry(places.get(i), numbers[i]));
    }
    return entries;
  }

  private long find(TaskPaths.Place place) {
    try {
      return source.tree().find(place.path());
    } catch (FsException e) {
      if (isFirstReport(place)) {
        RequestedFiles.report(task, place, e);
      }
      return 0;
    }
  }

  /** Marks a path as reported; false if it already was. */
  private boolean isFirstReport(TaskPaths.Place place) {
    synchronized (reported) {
      int position = (int) place.position();
      boolean isFirstReport = !reported.get(position);
      reported.set(position);
      return isFirstReport;
    }
  }

  /**
   * Starts threads that look up all paths ahead of the reader and report those that are not files.
   */
  List<Thread> startChecking(int threads) {
    TaskPaths.Cursor all = paths.open();
    AtomicInteger checking = new AtomicInteger(threads);
    Runnable ended =
        () -> {
          if (checking.decrementAndGet() == 0) {
            task.totalsAreFinal();
          }
        };
    List<Thread> started =
        task.startThreads(
            threads,
            "count",
            () -> {
              TaskPaths.Place place;
              while (!task.isCancelled() && (place = TaskPaths.next(all)) != null) {
                check(place);
              }
              ended.run();
            });
    for (int i = started.size(); i < threads && !started.isEmpty(); i++) {
      ended.run();
    }
    return started;
  }

  private void check(TaskPaths.Place place) {
    long number = find(place);
    Inode inode = number == 0 ? null : source.tree().inode(number);
    if (inode == null) {
      return;
    }
    FileType type = inode.attributes().type();
    if (type == FileType.REGULAR) {
      task.counts.totalBytes.add(inode.attributes().size());
    } else if (isFirstReport(place)) {
      String what = type == FileType.DIRECTORY ? "it is a directory" : "it is not a regular file";
      String reason = place.reason(what + "; an order must name regular files");
      task.report(place.path(), TaskFinding.Kind.FAILED, reason);
    }
  }

  /**
   * Searches from here to the end for the files being read: the reader is where several of them are
   * close together. Returns the position of the first; -1 if there is no such place, or the window
   * is being read after all.
   */
  long findReader(PrefetchWindow window) throws InterruptedException {
    long rest = rest();
    int evidence = window.evidence(rest);
    TaskPaths.Cursor further = cursor.fork();
    long first = -1;
    int found = 0;
    for (List<Entry> entries = batch.subList(at, batch.size());
        !entries.isEmpty() || further.position() < paths.count();
        entries = nextBatch(further)) {
      for (Entry entry : entries) {
        if (entry.number() == 0 || !window.isReadElsewhere(entry.number())) {
          continue;
        }
        long position = entry.place().position();
        if (found == 0 || position - first > 2 * BATCH) {
          first = position;
          found = 0;
        }
        if (++found == evidence) {
          return first;
        }
      }
      if (task.isCancelled() || !window.isReaderElsewhere(rest)) {
        return -1;
      }
    }
    return -1;
  }
}
