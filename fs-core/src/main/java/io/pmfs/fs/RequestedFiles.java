package io.pmfs.fs;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.stage.InodeBytes;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The files that the paths of a request stand for, each once: a directory stands for all that is
 * below it, but for what the request names itself, which is taken in its own turn.
 */
final class RequestedFiles {
  private static final byte NAMED = 1;

  private final RunningTask task;
  private final Tree tree;
  private final InodeBytes named = new InodeBytes();
  private final long[] roots;
  private final Predicate<Inode> included;

  private RequestedFiles(RunningTask task, Tree tree, long[] numbers, Predicate<Inode> included) {
    this.task = task;
    this.tree = tree;
    this.included = included;
    this.roots =
        Arrays.stream(numbers)
            .filter(number -> number != 0 && named.compareAndSet(number, (byte) 0, NAMED))
            .toArray();
  }

  /** Looks all paths up, by several threads, and reports those that are not there. */
  static RequestedFiles find(RunningTask task, Tree tree, int threads) throws InterruptedException {
    return find(task, tree, threads, inode -> true);
  }

  /** The same, but for files that are not included. */
  static RequestedFiles find(RunningTask task, Tree tree, int threads, Predicate<Inode> included)
      throws InterruptedException {
    List<FileName> paths = task.request().paths();
    long[] numbers = new long[paths.size()];
    AtomicInteger next = new AtomicInteger();
    task.join(
        task.startThreads(
            Math.min(threads, paths.size()),
            "find",
            () -> {
              for (int i; (i = next.getAndIncrement()) < numbers.length && !task.isCancelled(); ) {
                numbers[i] = find(task, tree, paths.get(i));
              }
            }));
    return new RequestedFiles(task, tree, numbers, included);
  }

  /** Looks one path up; 0, and it is reported, if it is not there. */
  static long find(RunningTask task, Tree tree, FileName path) {
    try {
      return tree.find(path);
    } catch (FsException e) {
      if (e.errno() == Errno.ENOENT) {
        task.report(path, TaskFinding.Kind.NOT_FOUND, "there is no such path");
      } else if (e.errno() == Errno.ENOTDIR) {
        task.report(
            path,
            TaskFinding.Kind.NOT_FOUND,
            "a part of it is not a directory; symbolic links are not followed");
      } else if (!task.isCancelled()) {
        task.report(path, TaskFinding.Kind.FAILED, String.valueOf(e.getMessage()));
      }
      return 0;
    }
  }

  /** Is given what the request stands for. */
  interface Visitor {
    void file(long number);

    default void symbolicLink(long number) {}
  }

  /** Passes the files, in order, to the visitor, which is called by so many threads. */
  void forEach(int threads, Visitor visitor) throws InterruptedException {
    forEach(threads, visitor, () -> false);
  }

  /**
   * The same with something to do for threads that wait for a file.
   *
   * @param otherWork does a little of it; false if there is none
   */
  void forEach(int threads, Visitor visitor, BooleanSupplier otherWork)
      throws InterruptedException {
    FileQueue queue = new FileQueue();
    task.whenCancelled(queue::stop);
    List<Thread> walk = task.startThreads(1, "walk", () -> walk(queue, visitor));
    task.join(
        task.startThreads(
            threads,
            "file",
            () -> {
              try {
                queue.serve(visitor::file, otherWork);
              } catch (InterruptedException e) {
                task.cancel();
              }
            }));
    task.join(walk);
  }

  private void walk(FileQueue queue, Visitor visitor) {
    OrderedWalk show = new OrderedWalk(queue, visitor);
    Walk walk = new Walk(tree, show, task::isCancelled);
    for (int i = 0; i < roots.length && !task.isCancelled(); i++) {
      long root = roots[i];
      Inode inode = tree.inode(root);
      FileType type = inode == null ? FileType.REGULAR : inode.attributes().type();
      switch (type) {
        case DIRECTORY -> walk.below(root);
        case REGULAR -> show.put(root);
        case SYMBOLIC_LINK -> visitor.symbolicLink(root);
        default -> {}
      }
    }
    queue.close();
  }

  private final class OrderedWalk implements Walk.Visitor {
    private final FileQueue queue;
    private final Visitor visitor;

    OrderedWalk(FileQueue queue, Visitor visitor) {
      this.queue = queue;
      this.visitor = visitor;
    }

    @Override
    public boolean enters(long directory) {
      return !isNamed(directory);
    }

    @Override
    public void isIn(long directory) {
      task.isIn(tree.path(directory));
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
        queue.put(number);
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

  /** Starts threads that add up the files and their sizes, importing what is not known. */
  List<Thread> startCounting(int threads) {
    SharedDirectories shared = new SharedDirectories(threads);
    task.whenCancelled(shared::stop);
    AtomicInteger nextRoot = new AtomicInteger();
    AtomicInteger counting = new AtomicInteger(threads);
    return task.startThreads(
        threads,
        "count",
        () -> {
          try {
            count(nextRoot, shared);
            if (counting.decrementAndGet() == 0) {
              task.totalsAreFinal();
            }
          } catch (InterruptedException e) {
            task.cancel();
          }
        });
  }

  private void count(AtomicInteger nextRoot, SharedDirectories shared) throws InterruptedException {
    CountingWalk counting = new CountingWalk(shared);
    Walk walk = new Walk(tree, counting, task::isCancelled);
    for (int i; (i = nextRoot.getAndIncrement()) < roots.length && !task.isCancelled(); ) {
      Inode inode = tree.inode(roots[i]);
      if (inode != null && inode.attributes().type() == FileType.DIRECTORY) {
        walk.below(roots[i]);
      } else if (inode != null && inode.attributes().type() == FileType.REGULAR) {
        counting.count(roots[i]);
      }
    }
    for (long directory; (directory = shared.take()) != SharedDirectories.NONE; ) {
      walk.below(directory);
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

    private void count(long number) {
      Inode inode = tree.inode(number);
      if (!isIncluded(inode)) {
        return;
      }
      task.counts.totalFiles.increment();
      task.counts.totalBytes.add(inode == null ? 0 : inode.attributes().size());
    }
  }

  /** Whether the request is meant for a file; so it is for one that is gone, which is reported. */
  boolean isIncluded(@Nullable Inode inode) {
    return inode == null || included.test(inode);
  }

  /** Whether the request names that file or directory itself. */
  boolean isNamed(long number) {
    return named.get(number) == NAMED;
  }

  /** Whether the request stands for what is in a directory, by its name or by one above. */
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
