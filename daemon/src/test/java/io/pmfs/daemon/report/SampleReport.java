package io.pmfs.daemon.report;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/** A status with a value for each figure, and variations of it. */
public final class SampleReport {
  private static final Gson GSON = new Gson();

  private SampleReport() {}

  /** The same record with other values in fields of its JSON. */
  public static <T extends Record> T with(T record, Map<String, ?> fields) {
    JsonObject json = GSON.toJsonTree(record).getAsJsonObject();
    fields.forEach((name, value) -> json.add(name, GSON.toJsonTree(value)));
    @SuppressWarnings("unchecked")
    Class<T> type = (Class<T>) record.getClass();
    return GSON.fromJson(json, type);
  }

  public static StatusReport of(String mountpoint, String source) {
    return new StatusReport(
        new MountReport(mountpoint, source),
        new DaemonReport(
            "ada",
            1,
            3725,
            "/var/log/pmfs/x.log",
            null,
            new DaemonReport.Memory(200 << 20, 50 << 20, 192 << 20),
            null),
        new BridgeReport("jnr", "as requested", "page-cache", "read-only"),
        new StateReport("/local/pmfs/state", null),
        new DatasetReport(
            List.of(
                new TierReport(
                    "pm0",
                    "pm",
                    "/mnt/pmem0/pmfs",
                    "full",
                    "quota",
                    new TierReport.Dax(false, "not DAX: ext4 on /dev/pmem0 mounted without dax"),
                    200L << 30,
                    200L << 30,
                    1234567,
                    "zstd:3",
                    500L << 30,
                    600,
                    400,
                    3000,
                    8,
                    1,
                    7,
                    0),
                new TierReport(
                    "ssd0",
                    "ssd",
                    "/local/pmfs",
                    "on",
                    "",
                    TierReport.Dax.NONE,
                    1L << 40,
                    1536,
                    1,
                    "none",
                    1000,
                    0,
                    400,
                    0,
                    0,
                    0,
                    0,
                    72L << 30)),
            new DatasetReport.Reads(1000, 4000, 3000, 500, 0.75, 0, 500, 0),
            new DatasetReport.Staging(1, 2, 3, 4, 1, 5, 6, 7, 8, 9, false),
            new Engagement(Engagement.ENGAGED, "the source was asked for 12 % of what was read"),
            recent(0),
            null),
        new SourceReport(
            new SourceReport.Operations(1, 2, 1 << 20, 4, 5, 6, 7, 8, 9, 42), null, 0L),
        new KernelReport(
            new RequestReport(
                List.of(0.001, 0.002),
                List.of(
                    new RequestReport.Operation("lookup", 2, 0.001, 0.5, 1, List.of(2L, 0L, 0L)),
                    new RequestReport.Operation("read", 10, 0.02, 1.5, 2, List.of(0L, 10L, 0L)))),
            new KernelReport.AccessLog("/var/log/pmfs/x.access", 1234),
            new KernelReport.Waiting(3, 12.9, "read", "part-000/x", 4711),
            new KernelReport.Failures(0, 0, null, null, null, null)),
        null,
        null,
        null);
  }

  private static RecentReport recent(long fromPeers) {
    return new RecentReport(
        4000,
        List.of(new RecentReport.TierBytes("pm", 3000), new RecentReport.TierBytes("ssd", 1)),
        0,
        0L,
        500,
        fromPeers,
        499 - fromPeers,
        42,
        12L);
  }

  /** With failed requests and changed inode numbers. */
  public static StatusReport failing(KernelReport.Failures failures, long renumbered) {
    return with(
        of("/mnt/dataset", "/lustre/imagenet"),
        Map.of("failures", failures, "renumberedFiles", renumbered));
  }

  /** A node in a cluster of two, n1 and n2. */
  public static StatusReport inCluster(String node) {
    return inCluster(node, List.of());
  }

  /** With more members. */
  public static StatusReport inCluster(String node, List<ClusterReport.MemberReport> more) {
    return inCluster(cluster(node, more, List.of()));
  }

  /** A node of a cluster with further missing nodes. */
  public static StatusReport withMissing(List<MissingNode> missing) {
    return inCluster(cluster("n1", List.of(), missing));
  }

  private static StatusReport inCluster(ClusterReport cluster) {
    return with(
        of("/mnt/dataset", "/lustre/imagenet"), Map.of("cluster", cluster, "recent", recent(300)));
  }

  /** A writable mount in a cluster with further missing nodes. */
  public static StatusReport writable(OutputsReport outputs, List<MissingNode> missing) {
    StatusReport sample = of("/mnt/run42", "/lustre/run42");
    return new StatusReport(
        sample.mount(),
        sample.daemon(),
        with(sample.bridge(), Map.of("bridge", "kernel", "readModeReason", "files may change")),
        sample.state(),
        DatasetReport.NONE,
        new SourceReport(null),
        with(
            sample.kernel(),
            Map.of(
                "requests",
                new RequestReport(List.of(), List.of()),
                "waiting",
                new KernelReport.Waiting(0, 0, null, null, -1))),
        cluster("n1", List.of(), missing),
        null,
        outputs);
  }

  private static ClusterReport cluster(
      String node, List<ClusterReport.MemberReport> more, List<MissingNode> missing) {
    return new ClusterReport(
        "train",
        Stream.concat(
                more.stream(),
                Stream.of("n1", "n2")
                    .map(
                        name ->
                            new ClusterReport.MemberReport(
                                name,
                                "00000000-0000-0000-0000-000000000001",
                                "10.0.0." + name.substring(1),
                                20113,
                                name.equals(node),
                                name.equals("n1") ? 0.49 : 0.51,
                                name.equals("n2") && node.equals("n1"),
                                100,
                                5 << 20,
                                3,
                                0.4,
                                12.5)))
            .toList(),
        node.equals("n1") ? 0.49 : 0.51,
        1,
        "auto",
        7 << 20,
        90,
        10,
        0.9,
        new ClusterReport.Served(
            80, 3 << 20, new TreeMap<>(Map.of("421", 2L, "slow", 1L)), 4, 5, 6),
        2 + more.size() + missing.size(),
        missing,
        null);
  }
}
