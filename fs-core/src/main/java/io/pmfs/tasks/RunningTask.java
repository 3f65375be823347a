package io.pmfs.tasks;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.DaemonThread;
import io.pmfs.stage.Staging;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A task's state: its counts, findings, threads and end. The {@link Work} it runs defines what it
 * does.
 *
 * <p>Only the first {@link Findings} are kept; all are counted. A cancelled task ends when its
 * threads have returned, or after two seconds: threads that still wait for the source are
 * abandoned, and stop when it answers. An ended task keeps no paths except those of its findings.
 */
final class RunningTask implements FileTask {
  private static final Logger log = LoggerFactory.getLogger(RunningTask.class);

  private static final long GRACE_NANOS = 2_000_000_000L;
  private static final long PATIENCE_MS = 20;

  /** The work of a task, run on a thread of its own. */
  interface Work {
    void run(RunningTask task) throws InterruptedException;
  }

  /** Counters; some are corrected downwards. */
  static final class Counts {
    final LongAdder totalFiles = new LongAdder();
    final LongAdder totalBytes = new LongAdder();
    final LongAdder files = new LongAdder();
    final LongAdder bytes = new LongAdder();
    final LongAdder done = new LongAdder();
    final LongAdder present = new LongAdder();
    final LongAdder noRoom = new LongAdder();
    final LongAdder failed = new LongAdder();
  }

  private volatile TaskRequest request;
  private final Runnable threadStart;
  final Counts counts = new Counts();
  private final Findings findings;
  private final List<Runnable> whenCancelled = new CopyOnWriteArrayList<>();
  private final CountDownLatch ended = new CountDownLatch(1);
  private final long startNanos = System.nanoTime();
  private volatile long endNanos;
  private volatile long cancelNanos;
  private volatile boolean cancelled;
  private volatile boolean totalsAreFinal;
  private volatile FileName directory = FileName.of("");
  private volatile @Nullable String failure;
  private volatile long position;

  /**
   * A task that has not started.
   *
   * @param threadStart run first by each of its threads
   */
  RunningTask(TaskRequest request, ScratchFiles scratch, Runnable threadStart) {
    this.request = request;
    this.findings = new Findings(scratch);
    this.threadStart = threadStart;
    this.position = request instanceof TaskRequest.Prefetch prefetch ? prefetch.from() : 0;
  }

  /**
   * Starts the task.
   *
   * @throws IllegalStateException with a message for the user, if no thread can be started
   */
  void start(Work work) {
    if (startThreads(1, "task", () -> run(work)).isEmpty()) {
      throw new IllegalStateException("cannot start a thread for the task");
    }
  }

  private void run(Work work) {
    try {
      work.run(this);
    } catch (InterruptedException e) {
      cancel();
    } catch (RuntimeException | Error e) {
      fail(e);
    } finally {
      endNanos = System.nanoTime();
      ended.countDown();
      request = request.with(TaskPaths.NONE);
      whenCancelled.clear();
    }
  }

  // Called by the work.

  /** Starts threads that all run the same code: fewer, or none, if the process cannot have more. */
  List<Thread> startThreads(int count, String name, Runnable body) {
    List<Thread> threads = new ArrayList<>();
    for (int i = 1; i <= count; i++) {
      try {
        threads.add(DaemonThread.start(name + "-" + i, () -> perform(body)));
      } catch (OutOfMemoryError e) {
        log.warn("started only {} of {} threads: {}", threads.size(), count, e.getMessage());
        break;
      }
    }
    return threads;
  }

  private void perform(Runnable body) {
    try {
      threadStart.run();
      body.run();
    } catch (RuntimeException | Error e) {
      fail(e);
    }
  }

  /**
   * Runs the same code on several threads and waits for them; on the caller's if none can be
   * started.
   */
  void runThreads(int count, String name, Runnable body) throws InterruptedException {
    List<Thread> threads = startThreads(count, name, body);
    if (threads.isEmpty() && count > 0) {
      body.run();
    }
    join(threads);
  }

  /** Waits for threads, but not for those that do not return once the task is cancelled. */
  void join(List<Thread> threads) throws InterruptedException {
    for (Thread thread : threads) {
      while (thread.isAlive() && !isOver()) {
        thread.join(PATIENCE_MS);
      }
    }
  }

  /** Runs the action when the task is cancelled, or at once if it is already. */
  void whenCancelled(Runnable action) {
    whenCancelled.add(action);
    if (cancelled) {
      action.run();
    }
  }

  boolean isCancelled() {
    return cancelled;
  }

  /**
   * Called when all names are counted: the totals are then final, unless the task was cancelled.
   */
  void totalsAreFinal() {
    if (!cancelled) {
      totalsAreFinal = true;
    }
  }

  void isIn(FileName path) {
    directory = path;
  }

  /** Counts the outcome of staging a file, and reports the file if it has no copy. */
  void count(FileName path, Staging.Outcome outcome) {
    switch (outcome.result()) {
      case STAGED -> counts.done.increment();
      case PRESENT -> counts.present.increment();
      case NO_ROOM -> report(path, TaskFinding.Kind.NO_ROOM, "no tier has room for it");
      case SOURCE_FAILED, TIER_FAILED -> report(path, TaskFinding.Kind.FAILED, outcome.reason());
      case CANCELLED -> {}
    }
  }

  void report(FileName path, TaskFinding.Kind kind, String reason) {
    (kind == TaskFinding.Kind.NO_ROOM ? counts.noRoom : counts.failed).increment();
    findings.add(new TaskFinding(path, kind, reason));
  }

  /** Sets how many paths of the request a later task can skip. */
  void isAt(long paths) {
    position = paths;
  }

  /** Ends the task as failed. */
  private void fail(Throwable e) {
    if (cancelled) {
      log.debug("failed after it was cancelled: {}", e.toString());
    } else {
      log.error("{} failed", request.getClass().getSimpleName(), e);
      failure = e instanceof Error ? e.toString() : String.valueOf(e.getMessage());
    }
    cancel();
  }

  // Called by any thread.

  @Override
  public TaskRequest request() {
    return request;
  }

  @Override
  public TaskProgress progress() {
    TaskProgress.State state = state();
    boolean whole = state == TaskProgress.State.ENDED;
    long files = counts.files.sum();
    long bytes = counts.bytes.sum();
    long end = endNanos != 0 ? endNanos : System.nanoTime();
    return new TaskProgress(
        state,
        state == TaskProgress.State.FAILED ? failure : null,
        whole || totalsAreFinal,
        whole ? files : Math.max(files, counts.totalFiles.sum()),
        whole ? bytes : Math.max(bytes, counts.totalBytes.sum()),
        files,
        bytes,
        directory,
        counts.done.sum(),
        counts.present.sum(),
        counts.noRoom.sum(),
        counts.failed.sum(),
        Duration.ofNanos(end - startNanos));
  }

  private TaskProgress.State state() {
    if (!isOver()) {
      return TaskProgress.State.RUNNING;
    }
    if (failure != null) {
      return TaskProgress.State.FAILED;
    }
    return cancelled ? TaskProgress.State.CANCELLED : TaskProgress.State.ENDED;
  }

  boolean isOver() {
    return ended.getCount() == 0 || (cancelled && System.nanoTime() - cancelNanos > GRACE_NANOS);
  }

  @Override
  public List<TaskFinding> findings(long from, int limit) {
    return findings.list(from, limit);
  }

  @Override
  public long position() {
    return position;
  }

  @Override
  public void close() {
    findings.close();
  }

  @Override
  public void cancel() {
    synchronized (whenCancelled) {
      if (cancelled || ended.getCount() == 0) {
        return;
      }
      cancelNanos = System.nanoTime();
      cancelled = true;
    }
    whenCancelled.forEach(Runnable::run);
  }

  @Override
  public boolean await(Duration timeout) throws InterruptedException {
    long deadline = System.nanoTime() + timeout.toNanos();
    while (!isOver()) {
      long rest = deadline - System.nanoTime();
      if (rest <= 0) {
        return false;
      }
      ended.await(Math.min(rest, TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS)), TimeUnit.NANOSECONDS);
    }
    return true;
  }
}
