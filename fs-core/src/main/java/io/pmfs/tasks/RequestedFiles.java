package io.pmfs.tasks;

import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.stage.copies.InodeBytes;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The files that the paths of a request stand for, each once. A directory stands for everything
 * below it, except for paths that the request also names: these are processed at their own place in
 * the request.
 *
 * <p>Paths are reread as needed and not kept in memory: only one byte per inode, and one bit per
 * missing path.
 */
final class RequestedFiles {
  // Bits that mark an inode.
  private static final byte NAMED = 1;
  private static final byte COUNTED = 2;
  private static final byte TAKEN = 4;

  private final RunningTask task;
  private final Tree tree;
  private final TaskPaths paths;
  private final Predicate<Inode> included;
  private final InodeBytes marks = new InodeBytes();
  private final BitSet notFound = new BitSet(); // GUARDED_BY(notFound); by position
  private volatile boolean namesDirectories;

  private RequestedFiles(RunningTask task, Tree tree, Predicate<Inode> included) {
    this.task = task;
    this.tree = tree;
    this.paths = task.request().paths();
    this.included = included;
  }

  /** Looks up all paths with several threads, and reports those that do not exist. */
  static RequestedFiles find(RunningTask task, Tree tree, int threads) throws InterruptedException {
    return find(task, tree, threads, inode -> true);
  }

  /** Like {@link #find(RunningTask, Tree, int)}, excluding some files. */
  static RequestedFiles find(RunningTask task, Tree tree, int threads, Predicate<Inode> included)
      throws InterruptedException {
    RequestedFiles files = new RequestedFiles(task, tree, included);
    TaskPaths.Cursor cursor = files.paths.open();
    task.runThreads((int) Math.min(threads, files.paths.count()), "find", () -> files.mark(cursor));
    return files;
  }

  private void mark(TaskPaths.Cursor cursor) {
    for (TaskPaths.Place place; !task.isCancelled() && (place = TaskPaths.next(cursor)) != null; ) {
      long number = find(task, tree, place);
      if (number == 0) {
        synchronized (notFound) {
          notFound.set((int) place.position());
        }
      } else if (mark(number, NAMED)) {
        countNamed(number);
      }
    }
  }

  private void countNamed(long number) {
    Inode inode = tree.inode(number);
    if (inode == null || inode.attributes().type() == FileType.REGULAR) {
      count(number);
    } else if (inode.attributes().type() == FileType.DIRECTORY) {
      namesDirectories = true;
    }
  }

  /** Sets a mark of an inode; false if it was set. */
  private boolean mark(long number, byte mark) {
    while (true) {
      byte before = marks.get(number);
      if ((before & mark) != 0) {
        return false;
      }
      if (marks.compareAndSet(number, before, (byte) (before | mark))) {
        return true;
      }
    }
  }

  /** Looks up one path; if it does not exist, reports it and returns 0. */
  private static long find(RunningTask task, Tree tree, TaskPaths.Place place) {
    try {
      return tree.find(place.path());
    } catch (FsException e) {
      report(task, place, e);
      return 0;
    }
  }

  /** Reports a path that could not be looked up. */
  static void report(RunningTask task, TaskPaths.Place place, FsException e) {
    TaskFinding.Kind kind = TaskFinding.Kind.NOT_FOUND;
    String reason = "there is no such path";
    if (e.errno() == Errno.ENOTDIR) {
      reason = "a path component is not a directory; symbolic links are not followed";
    } else if (e.errno() != Errno.ENOENT) {
      kind = TaskFinding.Kind.FAILED;
      reason = String.valueOf(e.getMessage());
    }
    if (!task.isCancelled()) {
      task.report(place.path(), kind, place.reason(reason));
    }
  }

  /** Receives the files that the request stands for. */
  interface Visitor {
    void file(long number);

    default void symbolicLink(long number) {}

    default void directory(long number) {}
  }

  /**
   * Passes the files, in order, to the visitor, on {@code threads} threads, or on the caller's if
   * none can be started.
   */
  void forEach(int threads, Visitor visitor) throws InterruptedException {
    forEach(threads, visitor, () -> false);
  }

  /**
   * Like {@link #forEach(int, Visitor)}, with other work for idle threads.
   *
   * @param otherWork does a small piece of it; false if there is none
   */
  void forEach(int threads, Visitor visitor, BooleanSupplier otherWork)
      throws InterruptedException {
    FileQueue queue = new FileQueue();
    task.whenCancelled(queue::stop);
    List<Thread> workers =
        task.startThreads(
            threads,
            "file",
            () -> {
              try {
                queue.serve(visitor::file, otherWork);
              } catch (InterruptedException e) {
                task.cancel();
              }
            });
    if (workers.isEmpty()) {
      walk(visitor::file, visitor);
      return;
    }
    task.runThreads(
        1,
        "walk",
        () -> {
          walk(queue::put, visitor);
          queue.close();
        });
    task.join(workers);
  }

  /** Receives files in order. */
  private interface Sink {
    void put(long number) throws InterruptedException;
  }

  private void walk(Sink sink, Visitor visitor) {
    OrderedWalk show = new OrderedWalk(sink, visitor);
    Walk walk = new Walk(tree, show, task::isCancelled);
    TaskPaths.Cursor cursor = paths.open();
    for (TaskPaths.Place place; !task.isCancelled() && (place = TaskPaths.next(cursor)) != null; ) {
      long root = isNotFound(place) ? 0 : find(task, tree, place);
      if (root == 0 || !mark(root, TAKEN)) {
        continue;
      }
      Inode inode = tree.inode(root);
      FileType type = inode == null ? FileType.REGULAR : inode.attributes().type();
      switch (type) {
        case DIRECTORY -> walk.below(root);
        case REGULAR -> show.put(root);
        case SYMBOLIC_LINK -> visitor.symbolicLink(root);
        default -> {}
      }
    }
  }

  private boolean isNotFound(TaskPaths.Place place) {
    synchronized (notFound) {
      return notFound.get((int) place.position());
    }
  }

  private final class OrderedWalk implements Walk.Visitor {
    private final Sink sink;
    private final Visitor visitor;

    OrderedWalk(Sink sink, Visitor visitor) {
      this.sink = sink;
      this.visitor = visitor;
    }

    @Override
    public boolean enters(long directory) {
      return !isNamed(directory);
    }

    @Override
    public void isIn(long directory) {
      task.isIn(tree.path(directory));
      visitor.directory(directory);
    }

    @Override
    public void file(long number) {
      if (!isNamed(number)) {
        put(number);
      }
    }

    private void put(long number) {
      if (!isIncluded(tree.inode(number))) {
        return;
      }
      try {
        sink.put(number);
      } catch (InterruptedException e) {
        task.cancel();
      }
    }

    @Override
    public void symbolicLink(long number) {
      visitor.symbolicLink(number);
    }

    @Override
    public void failed(long directory, FsException e) {
      if (!task.isCancelled()) {
        task.report(tree.path(directory), TaskFinding.Kind.FAILED, String.valueOf(e.getMessage()));
      }
    }
  }

  /** Starts threads that count the files and add up their sizes, importing unknown directories. */
  List<Thread> startCounting(int threads) {
    SharedDirectories shared = new SharedDirectories(threads);
    task.whenCancelled(shared::stop);
    TaskPaths.Cursor named = namesDirectories ? paths.open() : null;
    AtomicInteger counting = new AtomicInteger(threads);
    List<Thread> started =
        task.startThreads(
            threads,
            "count",
            () -> {
              try {
                countBelow(named, shared);
                counted(counting);
              } catch (InterruptedException e) {
                task.cancel();
              }
            });
    for (int i = started.size(); i < threads && !started.isEmpty(); i++) {
      shared.leave();
      counted(counting);
    }
    return started;
  }

  private void counted(AtomicInteger counting) {
    if (counting.decrementAndGet() == 0) {
      task.totalsAreFinal();
    }
  }

  private void countBelow(TaskPaths.@Nullable Cursor named, SharedDirectories shared)
      throws InterruptedException {
    Walk walk = new Walk(tree, new CountingWalk(shared), task::isCancelled);
    for (TaskPaths.Place place;
        named != null && !task.isCancelled() && (place = TaskPaths.next(named)) != null; ) {
      long number = isNotFound(place) ? 0 : known(place);
      Inode inode = number == 0 ? null : tree.inode(number);
      boolean isDirectory = inode != null && inode.attributes().type() == FileType.DIRECTORY;
      if (isDirectory && mark(number, COUNTED)) {
        walk.below(number);
      }
    }
    for (long directory; (directory = shared.take()) != SharedDirectories.NONE; ) {
      walk.below(directory);
    }
  }

  /**
   * Looks up a path that was found before; 0 if it no longer exists, which the walk will report.
   */
  private long known(TaskPaths.Place place) {
    try {
      return tree.find(place.path());
    } catch (FsException e) {
      return 0;
    }
  }

  private final class CountingWalk implements Walk.Visitor {
    private final SharedDirectories shared;

    CountingWalk(SharedDirectories shared) {
      this.shared = shared;
    }

    @Override
    public boolean enters(long directory) {
      return !isNamed(directory) && !shared.offer(directory);
    }

    @Override
    public void file(long number) {
      if (!isNamed(number)) {
        count(number);
      }
    }
  }

  private void count(long number) {
    Inode inode = tree.inode(number);
    if (isIncluded(inode)) {
      task.counts.totalFiles.increment();
      task.counts.totalBytes.add(inode == null ? 0 : inode.attributes().size());
    }
  }

  /** Whether the request includes a file; true for one that no longer exists, which is reported. */
  boolean isIncluded(@Nullable Inode inode) {
    return inode == null || included.test(inode);
  }

  /** Whether the request names this file or directory itself. */
  boolean isNamed(long number) {
    return (marks.get(number) & NAMED) != 0;
  }

  /** Whether the request covers a directory, because it names the directory or one above it. */
  boolean contains(long directory) {
    long at = directory;
    while (!isNamed(at)) {
      Inode inode = at == Namespace.ROOT ? null : tree.inode(at);
      if (inode == null) {
        return false;
      }
      at = inode.parent();
    }
    return true;
  }
}
