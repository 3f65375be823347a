package io.pmfs.daemon.report;

import com.google.gson.annotations.JsonAdapter;
import io.pmfs.mounts.StandIn;
import org.jspecify.annotations.Nullable;

/**
 * The output of {@code pmfs status --json}, by subject. {@link StatusJson} writes it as one flat
 * object. Names are stable; fields are added, never changed. A field that an older daemon does not
 * know is null.
 *
 * @param dataset {@link DatasetReport#NONE} for a writable mount, whose tiers hold outputs, not
 *     copies
 */
@JsonAdapter(StatusJson.class)
public record StatusReport(
    MountReport mount,
    DaemonReport daemon,
    BridgeReport bridge,
    StateReport state,
    DatasetReport dataset,
    SourceReport source,
    KernelReport kernel,
    @Figure("null without `--cluster`") @Nullable ClusterReport cluster,
    @Figure("the running task, or the last one; null if there was none") @Nullable TaskReport task,
    @Figure("null without `--writable`") @Nullable OutputsReport outputs) {

  /** The report about the source mounted in place of a session. */
  public static StatusReport of(StandIn standIn) {
    return new StatusReport(
        new MountReport(standIn.mountpoint(), standIn.source()),
        DaemonReport.gone("root", standIn.logFile()),
        new BridgeReport(
            BridgeReport.NONE,
            "the source itself has been mounted there since " + standIn.since(),
            "page-cache",
            "the source's own"),
        StateReport.NONE,
        DatasetReport.of(new Engagement(Engagement.SOURCE_ONLY, standIn.text())),
        new SourceReport(null),
        KernelReport.NONE,
        null,
        null,
        null);
  }

  /** Whether this is a daemon's report; otherwise the source itself is mounted there. */
  public boolean hasDaemon() {
    return !bridge.bridge().equals(BridgeReport.NONE);
  }

  /** A verdict in words; null if the daemon does not report it. */
  public @Nullable String verdict() {
    Engagement engagement = dataset.engagement();
    KernelReport.Failures failures = kernel.failures();
    return engagement == null
        ? null
        : engagement.verdict(
            cluster == null || cluster.absent().isEmpty(),
            failures != null && failures.lately() > 0);
  }

  public StatusReport with(MountReport newMount) {
    return with(newMount, daemon);
  }

  public StatusReport with(MountReport newMount, DaemonReport newDaemon) {
    return new StatusReport(
        newMount, newDaemon, bridge, state, dataset, source, kernel, cluster, task, outputs);
  }
}
