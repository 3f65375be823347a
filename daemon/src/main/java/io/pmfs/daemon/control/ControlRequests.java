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

/** The requests that the control socket makes to the daemon. Called by several threads. */
public interface ControlRequests {
  StatusReport status();

  /** The status of all nodes; null without a cluster. Waits for the other nodes. */
  @Nullable NodesReport nodes() throws InterruptedException;

  KeptTasks tasks();

  /** What commands wait for in a writable mount; null if the mount can only be read. */
  default @Nullable Drains drains() {
    return null;
  }

  /** The log of single requests; null if there is none. */
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

  /** Whether the unmount that follows waits for the source of a writable mount. */
  default void waitForSource(boolean waits) {}

  /**
   * Mounts the dataset at a further mount point: {@code MountedDataset.join}. Returns the device
   * number; null if unknown.
   */
  default @Nullable String join(Path mountpoint, Duration timeout) throws MountFailure {
    throw new MountFailure(ExitStatus.CANNOT, "this daemon serves no further mount point");
  }

  /** Whether the session with this device number is one of this daemon's, as far as it knows. */
  default boolean serves(String device) {
    return true;
  }

  /** Unmounts, and drops all copies if {@code purge}. A busy mount gives a busy failure. */
  void unmount(boolean lazy, boolean purge) throws MountFailure;
}
