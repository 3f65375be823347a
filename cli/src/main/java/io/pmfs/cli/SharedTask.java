package io.pmfs.cli;

import io.pmfs.cluster.Member;
import io.pmfs.cluster.PeerException;
import io.pmfs.fs.FileTask;
import io.pmfs.fs.TaskFinding;
import io.pmfs.fs.TaskProgress;
import io.pmfs.fs.TaskRequest;
import io.pmfs.metadata.FileName;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A task of all nodes of a cluster: each does its own part, and what is said of it is the sum. A
 * node that leaves in the middle leaves its part undone, which is a finding.
 */
final class SharedTask implements FileTask {
  private static final Logger log = LoggerFactory.getLogger(SharedTask.class);

  private static final Duration LOOK_AGAIN = Duration.ofMillis(500);

  /** Looks in vain after which a peer's part counts as undone: its next daemon may go on. */
  private static final int MOST_SILENT_LOOKS = 60;

  private final FileTask here;
  private final PeerTasks peers;
  private final List<Part> parts;
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile boolean cancelled;

  SharedTask(FileTask here, List<Member> others, PeerTasks peers) {
    this.here = here;
    this.peers = peers;
    this.parts = others.stream().map(Part::new).toList();
  }

  /** Has the others start, and follows them. */
  void start(String request) {
    CountDownLatch running = new CountDownLatch(parts.size());
    for (Part part : parts) {
      daemon(
          "part-" + part.peer.name(),
          () -> {
            try {
              part.follow(request);
            } finally {
              running.countDown();
            }
          });
    }
    daemon(
        "parts",
        () -> {
          running.await();
          while (!here.await(LOOK_AGAIN)) {
            log.trace("the part here goes on");
          }
          ended.countDown();
        });
  }

  private interface Work {
    void run() throws InterruptedException;
  }

  private static void daemon(String name, Work work) {
    Thread thread =
        new Thread(
            () -> {
              try {
                work.run();
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
            },
            name);
    thread.setDaemon(true);
    thread.start();
  }

  /** What another node does. */
  private final class Part {
    private final Member peer;
    private volatile @Nullable TaskReport latest;
    private volatile @Nullable String undone;
    private volatile List<TaskFinding> findings = List.of();

    Part(Member peer) {
      this.peer = peer;
    }

    void follow(String request) throws InterruptedException {
      try {
        latest = begin(request);
      } catch (PeerException e) {
        undone = "its part was not begun: " + e.getMessage();
        return;
      }
      int silent = 0;
      boolean told = false;
      for (TaskReport report = latest; report != null && report.isRunning(); report = latest) {
        TimeUnit.MILLISECONDS.sleep(LOOK_AGAIN.toMillis());
        try {
          if (cancelled && !told) {
            peers.cancel(peer);
            told = true;
          }
          latest = peers.latest(peer);
          silent = 0;
        } catch (PeerException e) {
          silent++;
          if (silent > MOST_SILENT_LOOKS || (silent > 1 && !peers.isThere(peer))) {
            undone = "it left before its part was done";
            return;
          }
        }
      }
      try {
        findings = peers.findings(peer).stream().map(Part::finding).toList();
      } catch (PeerException e) {
        log.warn("{}: its findings: {}", peer, e.getMessage());
      }
    }

    /** It may be at it already, from an earlier daemon of this node. */
    private TaskReport begin(String request) throws PeerException {
      try {
        return peers.start(peer, request);
      } catch (PeerException e) {
        TaskReport running = peers.latest(peer);
        if (running.isRunning() && running.task().equals(TaskJson.word(here.request()))) {
          return running;
        }
        throw e;
      }
    }

    private static TaskFinding finding(TaskResource.Finding told) {
      TaskFinding.Kind kind = TaskFinding.Kind.FAILED;
      for (TaskFinding.Kind known : TaskFinding.Kind.values()) {
        if (known.name().toLowerCase(Locale.ROOT).replace('_', '-').equals(told.outcome())) {
          kind = known;
        }
      }
      return new TaskFinding(PathText.decode(told.path()), kind, told.reason());
    }
  }

  @Override
  public TaskRequest request() {
    return here.request();
  }

  @Override
  public TaskProgress progress() {
    boolean isOver = ended.getCount() == 0;
    TaskProgress sum = here.progress();
    TaskProgress.State state = sum.state();
    if (!isOver && state != TaskProgress.State.FAILED) {
      state = TaskProgress.State.RUNNING;
    }
    for (Part part : parts) {
      TaskReport report = part.latest;
      if (report != null) {
        sum = sum(sum, report);
      }
      if (part.undone != null) {
        sum = oneMoreFailed(sum);
      }
    }
    return with(state, sum);
  }

  private static TaskProgress sum(TaskProgress a, TaskReport b) {
    return new TaskProgress(
        a.state(),
        a.reason(),
        a.totalsAreFinal() && b.totalsAreFinal(),
        a.totalFiles() + b.totalFiles(),
        a.totalBytes() + b.totalBytes(),
        a.files() + b.files(),
        a.bytes() + b.bytes(),
        a.directory(),
        a.done() + b.done(),
        a.present() + b.present(),
        a.noRoom() + b.noRoom(),
        a.failed() + b.failed(),
        a.elapsed());
  }

  private static TaskProgress oneMoreFailed(TaskProgress a) {
    return new TaskProgress(
        a.state(),
        a.reason(),
        a.totalsAreFinal(),
        a.totalFiles(),
        a.totalBytes(),
        a.files(),
        a.bytes(),
        a.directory(),
        a.done(),
        a.present(),
        a.noRoom(),
        a.failed() + 1,
        a.elapsed());
  }

  private static TaskProgress with(TaskProgress.State state, TaskProgress a) {
    return new TaskProgress(
        state,
        a.reason(),
        a.totalsAreFinal(),
        a.totalFiles(),
        a.totalBytes(),
        a.files(),
        a.bytes(),
        a.directory(),
        a.done(),
        a.present(),
        a.noRoom(),
        a.failed(),
        a.elapsed());
  }

  /** Those of this node first; those of the others once all have ended. */
  @Override
  public List<TaskFinding> findings(long from, int limit) {
    List<TaskFinding> found = new ArrayList<>(here.findings(from, limit));
    if (ended.getCount() > 0 || found.size() == limit) {
      return found;
    }
    List<TaskFinding> others = new ArrayList<>();
    for (Part part : parts) {
      others.addAll(part.findings);
      String undone = part.undone;
      if (undone != null) {
        others.add(
            new TaskFinding(
                FileName.of(""),
                TaskFinding.Kind.FAILED,
                part.peer + ": " + undone + "; run this again"));
      }
    }
    long skipped = found.isEmpty() ? from - countHere(from) : 0;
    others.stream().skip(skipped).limit(limit - found.size()).forEach(found::add);
    return found;
  }

  /** How many of this node's findings lie below an index behind them. */
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
  public void cancel() {
    cancelled = true;
    here.cancel();
  }

  @Override
  public boolean await(Duration timeout) throws InterruptedException {
    return ended.await(timeout.toMillis(), TimeUnit.MILLISECONDS);
  }
}
