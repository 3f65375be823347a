package io.pmfs.tasks;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.stage.Staging;
import java.time.Duration;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Stages files ahead of a reader whose order is known: copies files that enter the {@link
 * PrefetchWindow}, and drops unpinned ones that leave it. Ends when the last file was read or the
 * reader has stopped: docs/decisions/0037.
 */
final class PrefetchWork implements RunningTask.Work {
  /** Threads that check paths ahead of the reader. */
  private static final int CHECKERS = 2;

  /** A reader that reads no file of a full window for this long has stopped. */
  static final Duration STOPPED = Duration.ofHours(6);

  /** The limit when all remaining files are in the window. */
  static final Duration STOPPED_AT_THE_END = Duration.ofMinutes(10);

  /** How often to try a file that cannot be copied now, {@link #PAUSE_MS} apart. */
  private static final int ATTEMPTS = 20;

  private static final long PAUSE_MS = 50;

  private final TaskSource source;
  private final PmfsFileSystem fileSystem;
  private final Staging staging;
  private final TaskRequest.Prefetch request;
  private final PrefetchWindow window;
  private final FileQueue queue = new FileQueue();

  PrefetchWork(
      TaskSource source,
      PmfsFileSystem fileSystem,
      Staging staging,
      TaskRequest.Prefetch request,
      LongSupplier nanoTime) {
    this.source = source;
    this.fileSystem = fileSystem;
    this.staging = staging;
    this.request = request;
    this.window = new PrefetchWindow(request.windowBytes(), request.from(), nanoTime);
  }

  @Override
  public void run(RunningTask task) throws InterruptedException {
    task.whenCancelled(staging::cancel);
    task.whenCancelled(queue::stop);
    task.counts.totalFiles.add(request.paths().count());
    fileSystem.observe(window);
    try {
      OrderReader order = new OrderReader(source, task, request.paths(), request.from());
      List<Thread> checkers = order.startChecking(CHECKERS);
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
      if (threads.isEmpty()) {
        throw new IllegalStateException("cannot start a thread to copy files");
      }
      enterAll(task, order);
      queue.close();
      while (!window.isRead() && !hasRested(STOPPED_AT_THE_END) && !task.isCancelled()) {
        window.awaitChange();
        drop(task);
      }
      task.join(threads);
      task.join(checkers);
      drop(task);
    } finally {
      fileSystem.observe(null);
    }
  }

  private boolean hasRested(Duration limit) {
    return window.restNanos() > limit.toNanos();
  }

  /**
   * Adds files to the window as the reader advances, until the last is in or the reader has
   * stopped.
   */
  private void enterAll(RunningTask task, OrderReader order) throws InterruptedException {
    passed(task, order.position());
    for (OrderReader.Entry entry; !task.isCancelled() && (entry = order.next()) != null; ) {
      Inode inode = entry.number() == 0 ? null : source.tree().inode(entry.number());
      if (inode == null
          || inode.attributes().type() != FileType.REGULAR
          || inode.attributes().size() == 0) {
        window.skip(entry.place().position());
        pass(task, inode, order);
        continue;
      }
      drop(task);
      long reader = enter(task, order, entry.place().position(), inode);
      if (reader >= 0) {
        passed(task, reader - order.position());
        window.jump(reader);
        order.skipTo(reader);
      } else if (hasRested(STOPPED)) {
        String reason = "nothing was read for six hours: the reader stopped before this file";
        task.report(entry.place().path(), TaskFinding.Kind.FAILED, entry.place().reason(reason));
        return;
      } else {
        task.isIn(source.tree().path(inode.parent()));
        queue.put(inode.number());
        order.pass();
      }
    }
  }

  private static void pass(RunningTask task, @Nullable Inode inode, OrderReader order) {
    if (inode != null && inode.attributes().type() == FileType.REGULAR) {
      task.counts.present.increment();
    }
    task.counts.files.increment();
    order.pass();
  }

  /**
   * Waits for room in the window. Returns the reader's position if it is ahead of the window, else
   * -1.
   */
  private long enter(RunningTask task, OrderReader order, long position, Inode inode)
      throws InterruptedException {
    while (!window.enter(position, inode.number(), inode.attributes().size())
        && !hasRested(STOPPED)
        && !task.isCancelled()) {
      if (window.isReaderElsewhere(order.rest())) {
        long reader = order.findReader(window);
        if (reader >= 0) {
          return reader;
        }
        window.notFound();
      }
      window.awaitChange();
      drop(task);
    }
    return -1;
  }

  /** Counts files that the reader passed without a prefetch. */
  private static void passed(RunningTask task, long files) {
    task.counts.present.add(files);
    task.counts.files.add(files);
  }

  private void drop(RunningTask task) {
    // Read first: files before this index are dropped before the position is published.
    long first = window.firstIndex();
    for (long number; (number = window.takeLeaving()) != 0; ) {
      staging.drop(number);
    }
    task.isAt(first);
  }

  private void stage(RunningTask task, long number) {
    long size = source.knownSize(number);
    long moved = 0;
    if (window.contains(number)) {
      try {
        Staging.Outcome outcome = stagePatiently(task, number);
        moved = outcome.movedBytes();
        if (outcome.result() == Staging.Outcome.Result.SOURCE_FAILED && isWanted(task, number)) {
          Inode now = source.lookAgain(number);
          outcome = staging.stageIf(now, () -> isWanted(task, number));
          moved += outcome.movedBytes();
        }
        if ((isNoRoom(outcome) || isCancelled(outcome)) && !window.contains(number)) {
          // The reader was ahead of the prefetch.
          task.counts.present.increment();
        } else {
          task.count(source.tree().path(number), outcome);
        }
      } catch (FsException e) {
        if (e.errno() == Errno.ENOENT || e.errno() == Errno.ESTALE) {
          window.gone(number);
        }
        task.report(source.tree().path(number), TaskFinding.Kind.FAILED, source.reason(e));
      }
      // It may have left the window meanwhile; then nothing else drops the copy.
      if (!window.contains(number) && !task.isCancelled()) {
        staging.drop(number);
      }
    } else {
      // The reader was ahead of the prefetch.
      task.counts.present.increment();
    }
    task.counts.bytes.add(size - moved);
    task.counts.files.increment();
  }

  /**
   * Stages a file, and retries while there is no room: readers ahead of the window use room until
   * their files' turns come. A file that is being read without a copy is not staged meanwhile,
   * because it would be fetched twice.
   */
  private Staging.Outcome stagePatiently(RunningTask task, long number) throws FsException {
    Staging.Outcome outcome = stageUnlessRead(task, number);
    try {
      for (int i = 1; i < ATTEMPTS && shouldRetry(task, number, outcome); i++) {
        Thread.sleep(PAUSE_MS);
        outcome = stageUnlessRead(task, number);
      }
      if (shouldRetry(task, number, outcome)) {
        // It is read all the time: stage it anyway.
        Thread.sleep(PAUSE_MS);
        outcome = staging.stageIf(source.checked(number), () -> isWanted(task, number));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return outcome;
  }

  /** Stages a file unless it was read and dropped since the last check, or is being read. */
  private Staging.Outcome stageUnlessRead(RunningTask task, long number) throws FsException {
    return staging.stageIf(
        source.checked(number), () -> isWanted(task, number) && !window.isBeingRead(number));
  }

  private boolean shouldRetry(RunningTask task, long number, Staging.Outcome outcome) {
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
