package io.pmfs.daemon.dataset;

import io.pmfs.daemon.metrics.Snapshot;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.places.SourceIdentity;
import org.jspecify.annotations.Nullable;

/** A mount and its dataset, as commands, metrics and the next daemon see them. */
public interface MountedDataset extends MountLife {
  /** How the mount differs from the source's own files; empty if it does not. */
  String description();

  /** The identity of the source, for later daemons of the session. */
  SourceIdentity sourceIdentity();

  /**
   * Describes another directory at the source's path, with which no other process could continue;
   * null if there is none, even if the source is unavailable. Waits a few seconds at most.
   */
  @Nullable String otherSource();

  /** A snapshot. Thread-safe, also while unmounting. */
  StatusReport status();

  /**
   * The status of all nodes; null without a cluster. Waits for the other nodes, some seconds at
   * most.
   */
  @Nullable NodesReport nodes() throws InterruptedException;

  /** The status and further metrics. As thread-safe as {@link #status}. */
  Snapshot snapshot();

  /** The log of single requests. */
  RequestLog requests();

  KeptTasks tasks();
}
