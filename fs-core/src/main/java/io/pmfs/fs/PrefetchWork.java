package io.pmfs.fs;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.stage.Staging;
import io.pmfs.tier.FsException;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Staging ahead of a reader whose order is known: what the {@link PrefetchWindow} takes in is
 * copied, and what leaves it is dropped, unless it is pinned.
 */
final class PrefetchWork implements RunningTask.Work {
  /** Paths that are looked up at once. */
  private static final int BATCH = 4096;

  /** A file that cannot be copied now is tried again, so often and so long after each other. */
  private static final int ATTEMPTS = 20;

  private static final long PAUSE_MS = 50;

  private final TaskSource source;
  private final PmfsFileSystem fileSystem;
  private final Staging staging;
  private final List<FileName> order;
  private final PrefetchWindow window;
  private final FileQueue queue = new FileQueue();

  PrefetchWork(
      TaskSource source, PmfsFileSystem fileSystem, Staging staging, TaskRequest.Prefetch request) {
    this.source = source;
    this.fileSystem = fileSystem;
    this.staging = staging;
    this.order = request.paths();
    this.window = new PrefetchWindow(request.windowBytes());
  }

  @Override
  public void run(RunningTask task) throws InterruptedException {
    task.whenCancelled(staging::cancel);
    task.whenCancelled(queue::stop);
    task.counts.totalFiles.add(order.size());
    fileSystem.observe(window);
    try {
      List<Thread> threads =
          task.startThreads(
              source.jobs(),
              "file",
              () -> {
                try {
                  queue.serve(number -> stage(task, number), staging::help);
                } catch (InterruptedException e) {
                  task.cancel();
                }
              });
      for (int from = 0; from < order.size() && !task.isCancelled(); from += BATCH) {
        enter(task, from, find(task, order.subList(from, Math.min(order.size(), from + BATCH))));
      }
      task.totalsAreFinal();
      queue.close();
      while (!window.isRead() && !task.isCancelled()) {
        window.awaitChange();
        drop();
      }
      task.join(threads);
      drop();
    } finally {
      fileSystem.observe(null);
    }
  }

  private long[] find(RunningTask task, List<FileName> paths) throws InterruptedException {
    long[] numbers = new long[paths.size()];
    AtomicInteger next = new AtomicInteger();
    task.join(
        task.startThreads(
            Math.min(source.jobs(), numbers.length),
            "find",
            () -> {
              for (int i; (i = next.getAndIncrement()) < numbers.length && !task.isCancelled(); ) {
                numbers[i] = RequestedFiles.find(task, source.tree(), paths.get(i));
              }
            }));
    return numbers;
  }

  /** Takes files in as the reader moves on. */
  private void enter(RunningTask task, int from, long[] numbers) throws InterruptedException {
    for (int i = 0; i < numbers.length && !task.isCancelled(); i++) {
      Inode inode = numbers[i] == 0 ? null : source.tree().inode(numbers[i]);
      if (inode == null || inode.attributes().type() != FileType.REGULAR) {
        task.counts.files.increment();
        continue;
      }
      long size = inode.attributes().size();
      task.counts.totalBytes.add(size);
      if (size == 0) {
        task.counts.present.increment();
        task.counts.files.increment();
        continue;
      }
      drop();
      while (!window.enter((long) from + i, inode.number(), size) && !task.isCancelled()) {
        window.awaitChange();
        drop();
      }
      task.isIn(source.tree().path(inode.parent()));
      queue.put(inode.number());
    }
  }

  private void drop() {
    for (long number; (number = window.takeLeaving()) != 0; ) {
      staging.drop(number);
    }
  }

  private void stage(RunningTask task, long number) {
    long size = source.knownSize(number);
    long moved = 0;
    if (window.contains(number)) {
      try {
        Staging.Outcome outcome = stagePatiently(task, number);
        moved = outcome.movedBytes();
        if ((isNoRoom(outcome) || isCancelled(outcome)) && !window.contains(number)) {
          // The reader was faster.
          task.counts.present.increment();
        } else {
          task.count(source.tree().path(number), outcome);
        }
      } catch (FsException e) {
        task.report(source.tree().path(number), TaskFinding.Kind.FAILED, source.reason(e));
      }
      // It may have left while it was copied, and then nobody else drops it.
      if (!window.contains(number) && !task.isCancelled()) {
        staging.drop(number);
      }
    } else {
      // The reader was faster.
      task.counts.present.increment();
    }
    task.counts.bytes.add(size - moved);
    task.counts.files.increment();
  }

  /**
   * Readers that run ahead of the window take room too, until their files' turns come. What finds
   * none while it is read comes from the source to its reader alone, and is not to come twice.
   */
  private Staging.Outcome stagePatiently(RunningTask task, long number) throws FsException {
    Staging.Outcome outcome = stageUnlessRead(task, number);
    try {
      for (int i = 1; i < ATTEMPTS && isToBeTriedAgain(task, number, outcome); i++) {
        Thread.sleep(PAUSE_MS);
        outcome = stageUnlessRead(task, number);
      }
      if (isToBeTriedAgain(task, number, outcome)) {
        // Somebody reads it all the time.
        Thread.sleep(PAUSE_MS);
        outcome = staging.stageIf(source.checked(number), () -> isWanted(task, number));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return outcome;
  }

  /** The reader may have read it, and it may have been dropped, since somebody looked last. */
  private Staging.Outcome stageUnlessRead(RunningTask task, long number) throws FsException {
    return staging.stageIf(
        source.checked(number), () -> isWanted(task, number) && !window.isBeingRead(number));
  }

  private boolean isToBeTriedAgain(RunningTask task, long number, Staging.Outcome outcome) {
    return (isNoRoom(outcome) || isCancelled(outcome)) && isWanted(task, number);
  }

  private boolean isWanted(RunningTask task, long number) {
    return window.contains(number) && !task.isCancelled();
  }

  private static boolean isCancelled(Staging.Outcome outcome) {
    return outcome.result() == Staging.Outcome.Result.CANCELLED;
  }

  private static boolean isNoRoom(Staging.Outcome outcome) {
    return outcome.result() == Staging.Outcome.Result.NO_ROOM;
  }
}
