package io.pmfs.daemon;

import io.pmfs.cluster.Member;
import io.pmfs.cluster.PeerException;
import io.pmfs.daemon.report.PeerReason;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.fs.Findings;
import io.pmfs.fs.TaskFinding;
import io.pmfs.fs.TaskRequest;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PathText;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What another node does of a {@link SharedTask}. One thread has it begin and follows it; its
 * daemon may be replaced meanwhile, and is then asked again. Safe for use by many threads.
 */
final class PeerPart {
  private static final Logger log = LoggerFactory.getLogger(PeerPart.class);

  /** Looks in vain, after which the part counts as undone: the next daemon may go on before. */
  private static final int MOST_SILENT_LOOKS = 60;

  private static final long FIRST_PAUSE_MS = 20;

  private final PeerTasks.Node node;
  private final PeerTasks peers;
  private final long longestPauseMs;
  private final Findings findings;

  /** Of the requests that have ended, and of the one that is at work. */
  private final List<TaskReport> reports = new ArrayList<>(); // GUARDED_BY(this)

  private volatile @Nullable String undone;
  private volatile boolean cancelled;

  PeerPart(PeerTasks.Node node, PeerTasks peers, Findings findings, Duration lookAgain) {
    this.node = node;
    this.findings = findings;
    this.peers = peers;
    this.longestPauseMs = lookAgain.toMillis();
  }

  String name() {
    return node.name();
  }

  /** Asks it to stop; what it did so far stays. */
  void cancel() {
    cancelled = true;
  }

  /** Has the node do one request after the other; returns when it has, or will not. */
  void follow(Iterable<TaskRequest> requests) throws InterruptedException {
    try {
      for (TaskRequest request : requests) {
        String why = new Run(request).follow();
        if (cancelled) {
          return;
        }
        if (why != null) {
          isUndone(why);
          return;
        }
      }
    } catch (UncheckedIOException e) {
      if (!cancelled) {
        isUndone(String.valueOf(e.getMessage()));
      }
    }
  }

  private void isUndone(String why) {
    undone = why;
    String reason = "on " + name() + ": " + why + "; run this again";
    findings.add(new TaskFinding(FileName.of(""), TaskFinding.Kind.FAILED, reason));
  }

  /** How far it is: one report for each request that was begun. */
  synchronized List<TaskReport> reports() {
    return List.copyOf(reports);
  }

  /** Why not all of it was done, or null. */
  @Nullable String undone() {
    return undone;
  }

  List<TaskFinding> findings(long from, int limit) {
    return findings.list(from, limit);
  }

  long findingCount() {
    return findings.size();
  }

  /** Gives up its findings. */
  void close() {
    findings.close();
  }

  /** One request. */
  private final class Run {
    private final TaskRequest request;
    private @Nullable TaskReport latest;
    private @Nullable Member asked;
    private boolean isTold;
    private boolean isLeftToIt;
    private int silent;

    Run(TaskRequest request) {
      this.request = request;
    }

    /** Why it was not done, or null. */
    @Nullable String follow() throws InterruptedException {
      long pauseMs = FIRST_PAUSE_MS;
      while (silent <= MOST_SILENT_LOOKS) {
        Member peer = peers.find(node.id());
        try {
          if (peer == null) {
            silent++;
          } else if (look(peer)) {
            return outcome(peer);
          }
        } catch (PeerException e) {
          if (e.kind() != PeerException.Kind.UNREACHABLE && asked == null) {
            return "its part was not begun: " + PeerReason.of(e);
          }
          log.debug("{}: {}", node.name(), e.getMessage());
          silent++;
        }
        if (cancelled && (isLeftToIt || asked == null)) {
          return null;
        }
        pauseMs = Math.min(longestPauseMs, pauseMs * 2);
        TimeUnit.MILLISECONDS.sleep(pauseMs);
      }
      return asked == null ? "its part was not begun: it left" : "it left before its part was done";
    }

    /** Whether there is nothing more to wait for. */
    private boolean look(Member peer) throws PeerException {
      Member before = asked;
      if (cancelled) {
        if (before == null) {
          return false;
        }
        tell(peer);
      }
      boolean isNew = before == null || before.instance() != peer.instance();
      boolean begins = isNew && !cancelled;
      TaskReport report = begins ? peers.start(peer, request) : peers.latest(peer);
      asked = peer;
      silent = 0;
      TaskReport known = latest;
      if (!begins && known != null && !known.id().equals(report.id())) {
        return true;
      }
      keep(report);
      return !report.isRunning();
    }

    private void tell(Member peer) throws PeerException {
      if (isTold) {
        return;
      }
      try {
        peers.cancel(peer);
        isTold = true;
      } catch (PeerException e) {
        // Unless it was not heard: its own users began it, and are to end it.
        isLeftToIt = e.kind() != PeerException.Kind.UNREACHABLE;
        throw e;
      }
    }

    private void keep(TaskReport report) {
      synchronized (PeerPart.this) {
        if (latest != null) {
          reports.remove(reports.size() - 1);
        }
        reports.add(report);
      }
      latest = report;
    }

    private @Nullable String outcome(Member peer) {
      TaskReport report = latest;
      if (report == null || report.isRunning()) {
        return "another task began there before the outcome of its part was asked for";
      }
      takeFindings(peer);
      return switch (report.state()) {
        case "ended" -> null;
        case "failed" -> "its part failed: " + report.reason();
        default -> "its part was " + report.state() + " there";
      };
    }

    private void takeFindings(Member peer) {
      try {
        int taken = 0;
        for (var page = peers.findings(peer, 0);
            !page.isEmpty() && taken < Findings.MOST;
            page = peers.findings(peer, taken)) {
          page.stream().map(PeerPart.this::finding).forEach(findings::add);
          taken += page.size();
        }
      } catch (PeerException | IllegalArgumentException e) {
        log.warn("{}: its findings: {}", node.name(), e.getMessage());
      }
    }
  }

  private TaskFinding finding(TaskResource.Finding told) {
    TaskFinding.Kind kind = TaskFinding.Kind.FAILED;
    for (TaskFinding.Kind known : TaskFinding.Kind.values()) {
      if (known.name().toLowerCase(Locale.ROOT).replace('_', '-').equals(told.outcome())) {
        kind = known;
      }
    }
    FileName path = PathText.decode(told.path());
    return new TaskFinding(path, kind, "on " + node.name() + ": " + told.reason());
  }
}
