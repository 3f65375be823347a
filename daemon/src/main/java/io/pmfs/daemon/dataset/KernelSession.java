package io.pmfs.daemon.dataset;

import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.fuse.Bridge;
import io.pmfs.fuse.Sessions;
import io.pmfs.machine.MountFailure;
import io.pmfs.metadata.FileName;
import io.pmfs.settings.MountSettings;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * A session of the kernel that is not mounted yet, and the log of its requests.
 *
 * @param bridgeReason why this bridge was chosen
 * @param isResumed whether an earlier daemon served this mount
 */
public record KernelSession(
    MountSettings settings,
    Sessions bridge,
    String bridgeReason,
    boolean isResumed,
    RequestLog requests) {

  /**
   * Opens the log, which belongs to {@code opened}.
   *
   * @param paths returns the path of an inode below the root; null if it is not known
   */
  public static KernelSession open(
      MountSettings settings,
      Bridge bridge,
      String bridgeReason,
      boolean isResumed,
      LongFunction<@Nullable FileName> paths,
      Opened opened)
      throws MountFailure {
    Sessions all = new Sessions(bridge);
    RequestLog requests =
        opened.add(RequestLogs.open(settings.observation(), paths, all, isResumed));
    all.listen(requests);
    return new KernelSession(settings, all, bridgeReason, isResumed, requests);
  }
}
