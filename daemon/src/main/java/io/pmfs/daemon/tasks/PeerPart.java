package io.pmfs.daemon.tasks;

import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.daemon.report.FindingsPage;
import io.pmfs.daemon.report.PeerReason;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PathText;
import io.pmfs.tasks.Findings;
import io.pmfs.tasks.TaskFinding;
import io.pmfs.tasks.TaskRequest;
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
 * Another node's part of a {@link SharedTask}. One thread starts and follows it. If the node's
 * daemon is replaced meanwhile, the part is requested again. Thread-safe.
 */
final class PeerPart {
  private static final Logger log = LoggerFactory.getLogger(PeerPart.class);

  /** After this many unanswered requests the part counts as not done. */
  private static final int MOST_SILENT_LOOKS = 60;

  private static final long FIRST_PAUSE_MS = 20;

  private final PeerTasks.Node node;
  private final PeerTasks peers;
  private final long longestPauseMs;
  private final Findings findings;

  /** The reports of the ended requests and of the running one. */
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

  /** Asks the node to stop; its copies so far stay. */
  void cancel() {
    cancelled = true;
  }

  /** Sends the node one request after another; returns when all are done or one has failed. */
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
    } catch (RuntimeException | Error e) {
      if (!cancelled) {
        isUndone(e instanceof UncheckedIOException ? String.valueOf(e.getMessage()) : e.toString());
      }
    }
  }

  /** Records why the part is not done. */
  void isUndone(String why) {
    undone = why;
    String reason = "on " + name() + ": " + why + "; run this again";
    findings.add(new TaskFinding(FileName.of(""), TaskFinding.Kind.FAILED, reason));
  }

  /** The progress: one report for each request that was started. */
  synchronized List<TaskReport> reports() {
    return List.copyOf(reports);
  }

  /** Why the part is incomplete, or null. */
  @Nullable String undone() {
    return undone;
  }

  List<TaskFinding> findings(long from, int limit) {
    return findings.list(from, limit);
  }

  long findingCount() {
    return findings.size();
  }

  /** Discards its findings. */
  void close() {
    findings.close();
  }

  /** One request. */
  private final class Run {
    private final TaskRequest request;
    private @Nullable TaskReport latest;
    private @Nullable Member asked;
    private boolean isCancelRequested;
    private boolean isRefused;
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
            return "its part did not start: " + PeerReason.of(e);
          }
          log.debug("{}: {}", node.name(), e.getMessage());
          silent++;
        }
        if (cancelled && (isRefused || asked == null)) {
          return null;
        }
        pauseMs = Math.min(longestPauseMs, pauseMs * 2);
        TimeUnit.MILLISECONDS.sleep(pauseMs);
      }
      return asked == null
          ? "its part did not start: the node left"
          : "the node left before its part was done";
    }

    /** Whether the request has ended. */
    private boolean look(Member peer) throws PeerException {
      Member before = asked;
      if (cancelled) {
        if (before == null) {
          return false;
        }
        requestCancel(peer);
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

    private void requestCancel(Member peer) throws PeerException {
      if (isCancelRequested) {
        return;
      }
      try {
        peers.cancel(peer);
        isCancelRequested = true;
      } catch (PeerException e) {
        // A refusal means that the node's own users started the task, which only they may cancel.
        isRefused = e.kind() != PeerException.Kind.UNREACHABLE;
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
        return "another task started there before the result of its part was read";
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
        log.warn("{}: cannot read its findings: {}", node.name(), e.getMessage());
      }
    }
  }

  private TaskFinding finding(FindingsPage.Finding reported) {
    TaskFinding.Kind kind = TaskFinding.Kind.FAILED;
    for (TaskFinding.Kind known : TaskFinding.Kind.values()) {
      if (known.name().toLowerCase(Locale.ROOT).replace('_', '-').equals(reported.outcome())) {
        kind = known;
      }
    }
    FileName path = PathText.decode(reported.path());
    return new TaskFinding(path, kind, "on " + node.name() + ": " + reported.reason());
  }
}
