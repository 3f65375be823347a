package io.pmfs.daemon;

import com.google.gson.JsonObject;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.metadata.FileName;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.SessionSettings;
import org.jspecify.annotations.Nullable;

/** What the control socket can ask of the daemon. Called by several threads. */
public interface ControlRequests {
  StatusReport status();

  /** The status of all nodes of the cluster; null if there is none. Waits for the others. */
  @Nullable NodesReport nodes() throws InterruptedException;

  /**
   * A command line that asks a node of the cluster, as {@link io.pmfs.cluster.Cluster#curl} has it;
   * null if there is no cluster.
   */
  default @Nullable String curl(
      @Nullable String node, String resource, FileName path, @Nullable String range) {
    return null;
  }

  KeptTasks tasks();

  /** What can be told of single requests; null if nothing can. */
  default @Nullable RequestLog requests() {
    return null;
  }

  /** The metrics in Prometheus text. */
  default String metrics() {
    return "";
  }

  /**
   * The options of this mount and where each comes from, as {@code pmfs config --json} has them,
   * and what they came down to: {@link SessionSettings#toReport}.
   */
  default JsonObject configuration() {
    return new JsonObject();
  }

  /** Hands the mount over to the installed version; the daemon ends soon after. */
  void upgrade() throws MountFailure;

  /** Unmounts, and drops all copies if {@code purge}; busy gives a busy failure. */
  void unmount(boolean lazy, boolean purge) throws MountFailure;
}
