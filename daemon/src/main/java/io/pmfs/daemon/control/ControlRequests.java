package io.pmfs.daemon.control;

import com.google.gson.JsonObject;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.tasks.Drains;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.settings.SessionSettings;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** What the control socket asks of the daemon. Called by several threads. */
public interface ControlRequests {
  StatusReport status();

  /** The status of all nodes; null without a cluster. Waits for the other nodes. */
  @Nullable NodesReport nodes() throws InterruptedException;

  KeptTasks tasks();

  /** The drains of a writable mount; null for a read-only one. */
  default @Nullable Drains drains() {
    return null;
  }

  default @Nullable RequestLog requests() {
    return null;
  }

  /** The metrics in Prometheus's text format. */
  default String metrics() {
    return "";
  }

  /**
   * The options of this mount and the origin of each, as in {@code pmfs config --json}, and the
   * resulting settings: {@link SessionSettings#toReport}.
   */
  default JsonObject configuration() {
    return new JsonObject();
  }

  /** Hands the mount over to the installed version; the daemon ends soon after. */
  void upgrade() throws MountFailure;

  /** Mounts the dataset at a further mount point; see {@code MountedDataset.join}. */
  default @Nullable String join(Path mountpoint, Duration timeout) throws MountFailure {
    throw new MountFailure(ExitStatus.CANNOT, "this daemon serves no further mount point");
  }

  /** Whether this daemon serves the session with this device number, as far as it knows. */
  default boolean serves(String device) {
    return true;
  }

  /**
   * Unmounts. A busy mount gives a busy failure, and nothing is changed.
   *
   * @param purge whether to drop all copies
   * @param abandon whether a writable mount does not wait for the source
   */
  void unmount(boolean lazy, boolean purge, boolean abandon) throws MountFailure;
}
