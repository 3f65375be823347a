package io.pmfs.daemon.dataset;

import io.pmfs.daemon.metrics.Snapshot;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.places.SourceIdentity;
import org.jspecify.annotations.Nullable;

/** A mount, and what is seen of its dataset: by commands, metrics and the next daemon. */
public interface MountedDataset extends MountLife {
  /** What the mount shows instead of the source's own files; empty if it shows those. */
  String description();

  /** The identity of the source, for later daemons of the session. */
  SourceIdentity sourceIdentity();

  /**
   * Why another process could not continue: another source is at the source's path. Null if it
   * could, even while the source is away. Waits a few seconds at most.
   */
  @Nullable String otherSource();

  /** A snapshot. Several threads may call it, also while unmounting. */
  StatusReport status();

  /**
   * The status of all nodes; null without a cluster. Waits for the other nodes, some seconds at
   * most.
   */
  @Nullable NodesReport nodes() throws InterruptedException;

  /** The status and further metrics. Threads may call it as they call {@link #status}. */
  Snapshot snapshot();

  /** The log of single requests. */
  RequestLog requests();

  /** The tasks that stage, verify and evict on request. */
  KeptTasks tasks();
}
