package io.pmfs.daemon.tasks;

import io.pmfs.metadata.FileName;
import io.pmfs.tasks.FileTask;
import io.pmfs.tasks.FileTasks;
import io.pmfs.tasks.TaskFinding;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskProgress;
import io.pmfs.tasks.TaskProgress.State;
import io.pmfs.tasks.TaskRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Tasks under the control of a test. */
public final class FakeTasks implements FileTasks {
  public final List<Task> started = new CopyOnWriteArrayList<>();

  /** The final progress of new tasks; null lets them run. */
  public volatile @Nullable TaskProgress outcome;

  public volatile List<TaskFinding> findings = List.of();
  public volatile @Nullable RuntimeException refusal;

  /** Runs when a page of findings is asked for. */
  public volatile Runnable whenFindingsAreRead = () -> {};

  volatile boolean closed;

  public final class Task implements FileTask {
    private final TaskRequest request;

    /** The paths of the request; the end of the task removes their list. */
    public final List<FileName> paths;

    private final List<TaskFinding> findings;
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile TaskProgress progress;
    public volatile long position;
    public volatile boolean closed;

    Task(TaskRequest request, TaskProgress progress, List<TaskFinding> findings) {
      this.request = request;
      this.paths = all(request.paths());
      this.findings = new ArrayList<>(findings);
      this.progress = progress;
    }

    private List<FileName> all(TaskPaths paths) {
      List<FileName> all = new ArrayList<>();
      TaskPaths.Cursor cursor = paths.open();
      for (FileName path; (path = cursor.next()) != null; ) {
        all.add(path);
      }
      return all;
    }

    public void is(TaskProgress now) {
      progress = now;
      if (now.state() != State.RUNNING) {
        ended.countDown();
      }
    }

    @Override
    public TaskRequest request() {
      return request;
    }

    @Override
    public TaskProgress progress() {
      return progress;
    }

    @Override
    public long position() {
      return position;
    }

    @Override
    public void close() {
      closed = true;
    }

    @Override
    public List<TaskFinding> findings(long from, int limit) {
      whenFindingsAreRead.run();
      int start = (int) Math.min(from, findings.size());
      return findings.subList(start, Math.min(findings.size(), start + limit));
    }

    @Override
    public void cancel() {
      if (progress.state() == State.RUNNING) {
        is(FakeTasks.progress(State.CANCELLED, 3, 0, 0, 0));
      }
    }

    @Override
    public boolean await(Duration timeout) throws InterruptedException {
      return ended.await(timeout.toMillis(), TimeUnit.MILLISECONDS);
    }
  }

  /** Progress over files of 1 KiB, in a directory "d", after 2 seconds. */
  public static TaskProgress progress(
      State state, long done, long present, long noRoom, long failed) {
    long files = done + present + noRoom + failed;
    return new TaskProgress(
        state,
        state == State.FAILED ? "the tiers are gone" : null,
        true,
        state == State.RUNNING ? 10 : files,
        1024 * (state == State.RUNNING ? 10 : files),
        files,
        1024 * files,
        FileName.of("d"),
        done,
        present,
        noRoom,
        failed,
        Duration.ofSeconds(2));
  }

  @Override
  public FileTask start(TaskRequest request) {
    RuntimeException no = refusal;
    if (no != null) {
      throw no;
    }
    TaskProgress now = outcome;
    Task task = new Task(request, progress(State.RUNNING, 0, 0, 0, 0), findings);
    if (now != null) {
      task.is(now);
    }
    started.add(task);
    return task;
  }

  public Task last() {
    return started.get(started.size() - 1);
  }

  @Override
  public void close() {
    closed = true;
    started.forEach(Task::cancel);
  }
}
