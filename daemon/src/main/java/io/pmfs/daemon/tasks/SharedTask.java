package io.pmfs.daemon.tasks;

import io.pmfs.daemon.report.TaskReport;
import io.pmfs.posix.DaemonThread;
import io.pmfs.tasks.FileTask;
import io.pmfs.tasks.TaskFinding;
import io.pmfs.tasks.TaskProgress;
import io.pmfs.tasks.TaskRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * A task on several nodes of a cluster: each does its own part, and reports are sums of the parts.
 * Runs until all parts have ended. A part that another node did not finish is a finding.
 */
final class SharedTask implements FileTask {
  private final FileTask here;
  private final List<PeerPart> parts;

  /** The parts of the other nodes. */
  private final CountDownLatch running;

  SharedTask(FileTask here, List<PeerPart> parts) {
    this.here = here;
    this.parts = List.copyOf(parts);
    this.running = new CountDownLatch(parts.size());
  }

  /** Sends these requests to the other nodes and follows them; each part iterates on its own. */
  void start(Iterable<TaskRequest> requests) {
    for (PeerPart part : parts) {
      try {
        DaemonThread.start("part-" + part.name(), () -> follow(part, requests));
      } catch (OutOfMemoryError e) {
        part.isUndone("cannot start a thread for its part: " + e.getMessage());
        running.countDown();
      }
    }
  }

  private void follow(PeerPart part, Iterable<TaskRequest> requests) {
    try {
      part.follow(requests);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      running.countDown();
    }
  }

  /** This node's part. */
  FileTask here() {
    return here;
  }

  /** How many nodes take part, as far as known. */
  int nodes() {
    return 1 + (int) parts.stream().filter(part -> !part.reports().isEmpty()).count();
  }

  @Override
  public TaskRequest request() {
    return here.request();
  }

  @Override
  public TaskProgress progress() {
    boolean areOthersOver = running.getCount() == 0;
    TaskProgress own = here.progress();
    Sum sum = new Sum(own);
    for (PeerPart part : parts) {
      List<TaskReport> reports = part.reports();
      sum.isFinal &= !reports.isEmpty() || part.undone() != null;
      reports.forEach(sum::add);
      if (part.undone() != null) {
        sum.failed++;
      }
    }
    return sum.with(areOthersOver ? own.state() : TaskProgress.State.RUNNING);
  }

  /** Counts of several parts. */
  private static final class Sum {
    private final TaskProgress own;
    private boolean isFinal;
    private long totalFiles;
    private long totalBytes;
    private long files;
    private long bytes;
    private long done;
    private long present;
    private long noRoom;
    private long failed;
    private Duration elapsed;

    Sum(TaskProgress own) {
      this.own = own;
      isFinal = own.totalsAreFinal();
      totalFiles = own.totalFiles();
      totalBytes = own.totalBytes();
      files = own.files();
      bytes = own.bytes();
      done = own.done();
      present = own.present();
      noRoom = own.noRoom();
      failed = own.failed();
      elapsed = own.elapsed();
    }

    void add(TaskReport part) {
      isFinal &= part.totalsAreFinal();
      totalFiles += part.totalFiles();
      totalBytes += part.totalBytes();
      files += part.files();
      bytes += part.bytes();
      done += part.done();
      present += part.present();
      noRoom += part.noRoom();
      failed += part.failed();
      elapsed = elapsed.compareTo(part.elapsed()) < 0 ? part.elapsed() : elapsed;
    }

    TaskProgress with(TaskProgress.State state) {
      return new TaskProgress(
          state,
          state == TaskProgress.State.FAILED ? own.reason() : null,
          isFinal,
          totalFiles,
          totalBytes,
          files,
          bytes,
          own.directory(),
          done,
          present,
          noRoom,
          failed,
          elapsed);
    }
  }

  /** This node's findings first; those of the other nodes once all parts have ended. */
  @Override
  public List<TaskFinding> findings(long from, int limit) {
    List<TaskFinding> found = new ArrayList<>(here.findings(from, limit));
    if (isRunning() || found.size() == limit) {
      return found;
    }
    long skipped = found.isEmpty() ? from - countHere(from) : 0;
    for (PeerPart part : parts) {
      List<TaskFinding> more = part.findings(skipped, limit - found.size());
      skipped = Math.max(0, skipped - part.findingCount());
      found.addAll(more);
    }
    return found;
  }

  private boolean isRunning() {
    return running.getCount() > 0 || here.progress().state() == TaskProgress.State.RUNNING;
  }

  /** The number of this node's findings, at most {@code from}. */
  private long countHere(long from) {
    long low = 0;
    long high = from;
    while (low < high) {
      long middle = (low + high) >>> 1;
      if (here.findings(middle, 1).isEmpty()) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  @Override
  public long position() {
    return here.position();
  }

  @Override
  public void close() {
    parts.forEach(PeerPart::close);
    here.close();
  }

  @Override
  public void cancel() {
    parts.forEach(PeerPart::cancel);
    here.cancel();
  }

  @Override
  public boolean await(Duration timeout) throws InterruptedException {
    long end = System.nanoTime() + timeout.toNanos();
    return running.await(timeout.toNanos(), TimeUnit.NANOSECONDS)
        && here.await(Duration.ofNanos(Math.max(0, end - System.nanoTime())));
  }
}
