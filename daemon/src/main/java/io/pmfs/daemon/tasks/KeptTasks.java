package io.pmfs.daemon.tasks;

import io.pmfs.daemon.report.TaskReport;
import io.pmfs.daemon.report.TaskSummary;
import io.pmfs.machine.Reason;
import io.pmfs.posix.DaemonThread;
import io.pmfs.tasks.FileTask;
import io.pmfs.tasks.FileTasks;
import io.pmfs.tasks.PathFile;
import io.pmfs.tasks.ScratchFiles;
import io.pmfs.tasks.TaskFinding;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The tasks of a mounted dataset. A file holds the request and position of the running task, so
 * that the next daemon continues it if this one dies or hands over. Ended tasks keep their counts
 * and findings, but not their paths. Thread-safe.
 */
public final class KeptTasks implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(KeptTasks.class);

  /** A task that crashes each daemon must not do so forever. */
  private static final int MAX_RESUMES = 3;

  /** The end of the message that refuses a second task. */
  public static final String IS_RUNNING = " is running";

  /**
   * How often the position is saved, which bounds the progress that a prefetch loses in a crash.
   */
  private static final Duration LOOK_AGAIN = Duration.ofSeconds(1);

  /** A task that ran this long does not crash the daemon. */
  private static final Duration SOUND = Duration.ofMinutes(10);

  private final FileTasks tasks;
  private final @Nullable PeerTasks peers;
  private final TaskLists lists;
  private final @Nullable Path file;
  private @Nullable TaskFile left; // GUARDED_BY(this); the task of an earlier daemon
  private @Nullable TaskFile kept; // GUARDED_BY(this); the running task, as in the file
  private volatile @Nullable Started latest; // written under this
  private volatile boolean handedOver;

  /** The task at the hand-over, reported from then on as still running. */
  private volatile @Nullable TaskReport runningAtHandOver;

  private record Started(String id, boolean isPart, FileTask task) {
    TaskReport report() {
      return TaskReport.of(id, task, task instanceof SharedTask shared ? shared.nodes() : 1);
    }

    /** This node's part of it. */
    FileTask own() {
      return task instanceof SharedTask shared ? shared.here() : task;
    }

    TaskReport ownReport() {
      return TaskReport.of(id, own(), 1);
    }
  }

  /** For a dataset on one node, without lists. */
  public KeptTasks(FileTasks tasks, @Nullable Path file) {
    this(tasks, null, new TaskLists(null, new ScratchFiles(List.of())), file);
  }

  /**
   * Takes over the tasks and removes lists of paths that no task will continue.
   *
   * @param peers the tasks of the other nodes of a cluster; null if there are none
   * @param file holds the running task's request; null if no daemon follows this one
   */
  public KeptTasks(
      FileTasks tasks, @Nullable PeerTasks peers, TaskLists lists, @Nullable Path file) {
    this.tasks = tasks;
    this.peers = peers;
    this.lists = lists;
    this.file = file;
    this.left = file != null && Files.exists(file) ? readLeft(file) : null;
    lists.keepOnly(left == null ? null : left.listName());
  }

  private @Nullable TaskFile readLeft(Path path) {
    try {
      return TaskFile.load(path, lists);
    } catch (IOException | RuntimeException e) {
      log.warn("{}: the task is not continued: {}", path, e.getMessage());
      remove();
      return null;
    }
  }

  public TaskLists lists() {
    return lists;
  }

  /**
   * Starts a task.
   *
   * @throws IllegalArgumentException if the request does not fit this dataset
   * @throws IllegalStateException if another task is running, which the message names
   */
  public synchronized TaskReport start(TaskRequest request) {
    mustBeIdle();
    PeerTasks all = peers;
    List<PeerTasks.Node> others =
        all == null || !PeerTasks.isForAll(request) ? List.of() : all.nodes();
    return start(new TaskFile(newId(), 0, false, others, request)).report();
  }

  private void mustBeIdle() {
    String refusal = refusal();
    if (refusal != null) {
      throw new IllegalStateException(refusal);
    }
  }

  /** Why no task can be started now; null if one can. */
  @Nullable
  public String refusal() {
    TaskReport running = latest();
    return running != null && running.isRunning() ? running.activity() + IS_RUNNING : null;
  }

  private static String newId() {
    byte[] id = new byte[8];
    new SecureRandom().nextBytes(id);
    return HexFormat.of().formatHex(id);
  }

  private Started start(TaskFile begun) {
    FileTask task = tasks.start(begun.request());
    PeerTasks all = peers;
    Started started =
        new Started(
            begun.id(),
            begun.isPart(),
            all == null ? task : all.everywhere(task, begun.request(), begun.others()));
    Started before = latest;
    latest = started;
    if (before != null) {
      before.task().close();
    }
    log.info("task {}: {}", started.id(), started.report().activity());
    keep(begun);
    TaskPaths paths = begun.request().paths();
    try {
      DaemonThread.start("task-end", () -> awaitEnd(started, paths));
    } catch (OutOfMemoryError e) {
      log.warn(
          "the next daemon will look whether task {} has ended: {}", started.id(), e.getMessage());
    }
    return started;
  }

  // Requests of other nodes concern only this node's part. Otherwise two nodes that follow each
  // other's tasks would count in circles or deadlock.

  /**
   * Starts this node's part of another node's task. Returns the running task if it has the same
   * request.
   */
  public synchronized TaskReport startPart(TaskRequest request) {
    Started running = latest;
    if (running != null
        && running.own().request().equals(request)
        && running.ownReport().isRunning()) {
      return running.ownReport();
    }
    mustBeIdle();
    return start(new TaskFile(newId(), 0, true, List.of(), request)).report();
  }

  /** This node's part of the latest task; null if there was none. */
  @Nullable
  public TaskReport latestPart() {
    Started started = latest;
    return started == null ? null : started.ownReport();
  }

  /** The findings of this node's part; empty for a task that other nodes cannot start. */
  public List<TaskFinding> findingsOfPart(long from, int limit) {
    Started started = latest;
    return started != null && PeerTasks.isForAll(started.own().request())
        ? started.own().findings(from, limit)
        : List.of();
  }

  /**
   * Stops a part that another node started here.
   *
   * @throws IllegalStateException if this node started the task
   */
  public void cancelPart() {
    Started started = latest;
    if (started != null && !started.isPart()) {
      throw new IllegalStateException("other nodes cannot cancel this task: it was started here");
    }
    cancel();
  }

  public synchronized boolean goesOn() {
    Path path = file;
    return left != null && path != null && Files.exists(path);
  }

  /** Continues the task of an earlier daemon of this session, if there is one. */
  public synchronized void resume() {
    boolean goesOn = goesOn();
    TaskFile before = left;
    left = null;
    if (before == null) {
      return;
    }
    // Another node may have restarted this node's part already.
    if (!goesOn || latest != null) {
      before.request().paths().close();
      return;
    }
    try {
      if (before.resumes() >= MAX_RESUMES) {
        throw new IllegalArgumentException("it was already continued " + MAX_RESUMES + " times");
      }
      start(before.with(before.resumes() + 1, before.request()));
    } catch (RuntimeException e) {
      log.warn("{}: the task is not continued: {}", file, e.getMessage());
      before.request().paths().close();
      remove();
    }
  }

  /** Discards the task of an earlier session, for which no user waits any more. */
  public synchronized void forget() {
    if (left != null) {
      left.request().paths().close();
      left = null;
    }
    remove();
  }

  private void keep(TaskFile begun) {
    kept = begun;
    Path path = file;
    if (path == null) {
      return;
    }
    try {
      begun.save(path);
    } catch (IOException e) {
      log.warn("{}: the next daemon cannot continue the task: {}", path, Reason.of(e));
      remove();
    }
  }

  private void awaitEnd(Started started, TaskPaths paths) {
    long start = System.nanoTime();
    try {
      while (!started.task().await(LOOK_AGAIN)) {
        keepPosition(started, System.nanoTime() - start > SOUND.toNanos());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return;
    }
    close(paths);
    TaskReport report = started.report();
    log.info("task {}: {} {}", started.id(), report.state(), TaskSummary.of(report).text());
    synchronized (this) {
      Started newest = latest;
      if (newest != null && newest.id().equals(started.id())) {
        kept = null;
        remove();
      }
    }
  }

  private void close(TaskPaths paths) {
    if (handedOver && paths instanceof PathFile list) {
      list.leave();
    } else {
      paths.close();
    }
  }

  /** Saves the position of a task. */
  private synchronized void keepPosition(Started started, boolean isSound) {
    Path path = file;
    TaskFile before = kept;
    if (path == null || before == null || handedOver || !started.equals(latest)) {
      return;
    }
    TaskFile now = before.at(started.own().position(), isSound);
    if (now.equals(before) || !Files.exists(path)) {
      return;
    }
    try {
      now.save(path);
      kept = now;
    } catch (IOException e) {
      log.debug("{}: {}", path, Reason.of(e));
    }
  }

  private void remove() {
    Path path = file;
    if (path == null || handedOver) {
      return;
    }
    try {
      TaskFile.remove(path);
    } catch (IOException e) {
      log.warn("{}: cannot be removed: {}", path, Reason.of(e));
    }
  }

  /** The running task, or else the last one; null if there was none. */
  @Nullable
  public TaskReport latest() {
    TaskReport goesOn = runningAtHandOver;
    Started started = latest;
    return goesOn != null || started == null ? goesOn : started.report();
  }

  public List<TaskFinding> findings(long from, int limit) {
    Started started = latest;
    return started == null ? List.of() : started.task().findings(from, limit);
  }

  /** Asks the running task to stop, if there is one. */
  public void cancel() {
    Started started = latest;
    if (started != null) {
      started.task().cancel();
    }
  }

  /** Leaves the running task to the next daemon from now on. */
  public synchronized void handOver() {
    TaskReport report = latest();
    Started started = latest;
    if (started != null) {
      keepPosition(started, false);
    }
    runningAtHandOver = report != null && report.isRunning() ? report : null;
    handedOver = true;
  }

  /** Cancels the running task and waits for its end. */
  @Override
  public void close() {
    tasks.close();
    TaskFile running;
    synchronized (this) {
      running = kept;
    }
    if (running != null) {
      close(running.request().paths());
    }
    remove();
  }
}
