package io.pmfs.daemon.report;

import com.google.gson.annotations.JsonAdapter;
import io.pmfs.mounts.StandIn;
import org.jspecify.annotations.Nullable;

/**
 * The output of {@code pmfs status --json}, by subject. {@link StatusJson} writes the components of
 * a part that is no {@link Figure} itself as fields of one object. Names are stable; fields are
 * added, never changed. A field is null in the report of an older daemon that does not have it.
 *
 * @param dataset {@link DatasetReport#NONE} of a writable mount, whose tiers keep outputs instead
 *     of copies
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

  /** The report about a mount that has no daemon any more, but shows the source. */
  public static StatusReport of(StandIn standIn) {
    return new StatusReport(
        new MountReport(standIn.mountpoint(), standIn.source()),
        DaemonReport.gone("root", standIn.logFile()),
        new BridgeReport(
            BridgeReport.NONE,
            "the source itself is mounted there since " + standIn.since(),
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

  /** Whether a daemon reports; else the source itself is mounted there. */
  public boolean hasDaemon() {
    return !bridge.bridge().equals(BridgeReport.NONE);
  }

  /** Whether the mount works, in words; null if the daemon does not report it. */
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
