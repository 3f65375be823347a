package io.pmfs.daemon.metrics;

import io.pmfs.cluster.ClusterStatus;
import io.pmfs.cluster.client.PeerStatistics;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.Roll;
import io.pmfs.cluster.server.PeerServerStatistics;
import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.DaemonReport;
import io.pmfs.daemon.report.DatasetReport;
import io.pmfs.daemon.report.KernelReport;
import io.pmfs.daemon.report.NodeCacheReport;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.report.RequestReport;
import io.pmfs.daemon.report.SampleReport;
import io.pmfs.daemon.report.SourceReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.daemon.report.TierReport;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.protocol.RecordedLatencies;
import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.RocksNamespace;
import io.pmfs.posix.Await;
import io.pmfs.source.CountedBackingStore;
import io.pmfs.stage.Lenders;
import io.pmfs.stage.ReadOrigins;
import io.pmfs.stage.Stager;
import io.pmfs.stage.StagerSettings;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.Share;
import io.pmfs.stage.copies.TestCopies;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierSettings;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A dataset with two tiers and a file {@code f} of 5,000 bytes, served only to a test. */
public final class MeasuredDataset implements AutoCloseable {
  public static final int SIZE = 5000;

  private static final TaskReport TASK =
      new TaskReport(
          "1", "stage", "running", null, false, true, 10, 1000, 3, 300, "", 2, 0, 0, 1, 0, 1);
  private static final OutputsReport OUTPUTS =
      new OutputsReport(
          1,
          2,
          3,
          4,
          5,
          6,
          7,
          8,
          9,
          10,
          List.of(),
          new OutputsReport.Away("n2", false, "2026-11-26T18:00:00Z", "f", 3));

  private final RocksNamespace namespace;
  private final CountedBackingStore store;
  private final Copies copies;
  private final Stager stager;
  private final ExecutorService threads = Executors.newFixedThreadPool(2);
  private final PmfsFileSystem fileSystem;

  public MeasuredDataset(Path directory) throws Exception {
    Path source = Files.createDirectory(directory.resolve("source"));
    Files.write(source.resolve("f"), new byte[SIZE]);
    namespace =
        RocksNamespace.open(
            directory.resolve("state"), "measured", 16 << 20, UUID.randomUUID(), null, line -> {});
    store = new CountedBackingStore(new DirectoryStore(source));
    copies = TestCopies.raw(namespace, List.of(tier("pm", directory), tier("ssd", directory)));
    stager =
        new Stager(
            namespace,
            store,
            copies,
            EvictionPolicy.NONE,
            new StagerSettings(2, 8 << 20, 1000),
            Share.ALL,
            Lenders.none(),
            () -> {});
    fileSystem =
        new PmfsFileSystem(namespace, store, copies, stager, threads, InstantSource.system());
  }

  private static Tier tier(String kind, Path directory) throws IOException {
    TierSettings settings =
        new TierSettings(kind + ":/" + kind, "ssd", directory.resolve(kind), 1 << 20, 0);
    return new DirectoryTier(settings, Tier.Usage.NONE, null);
  }

  /** Reads so many bytes of the file in one request; returns once no copy is in progress. */
  public void read(int bytes) throws Exception {
    ByteBuffer buffer = ByteBuffer.allocateDirect(bytes);
    long inode = fileSystem.find(PmfsFileSystem.ROOT, FileName.of("f")).inode();
    fileSystem.read(
        inode,
        0,
        bytes,
        new ReadSink() {
          @Override
          public ByteBuffer buffer(int size) {
            return buffer.clear().limit(size);
          }

          @Override
          public void accept(ReadResult piece) throws IOException {
            piece.copyTo(buffer.clear());
          }
        });
    Await.until("staging is idle", () -> stager.status().idle());
  }

  public Snapshot snapshot(boolean inCluster) {
    ReadOrigins origins = stager.readOrigins();
    return new Snapshot(
        status(origins, inCluster),
        origins.fetched().reads(),
        origins.source().reads(),
        store.errors());
  }

  public StatusReport status(boolean inCluster) {
    return status(stager.readOrigins(), inCluster);
  }

  private StatusReport status(ReadOrigins origins, boolean inCluster) {
    Map<String, Object> measured =
        new HashMap<>(
            Map.of(
                "bridge",
                "idle",
                "tiers",
                List.of(
                    TierReport.of(0, origins, copies, stager),
                    TierReport.of(1, origins, copies, stager)),
                "reads",
                DatasetReport.Reads.of(fileSystem.readStatistics(), origins, 0),
                "staging",
                DatasetReport.Staging.of(stager.status(), copies),
                "sourceOperations",
                SourceReport.Operations.of(store.operations()),
                "requests",
                RequestReport.of(RecordedLatencies.ofReads(4)),
                "waiting",
                new KernelReport.Waiting(3, 12.5, "read", "f", 1),
                "nodeCache",
                new NodeCacheReport(1, 2, 3, null),
                "failures",
                new KernelReport.Failures(4, 5, "read", "a", "EIO", "2026-11-26T18:00:00Z"),
                "renumberedFiles",
                6));
    measured.put("memory", new DaemonReport.Memory(1 << 20, 0, 0));
    measured.put("task", TASK);
    measured.put("outputs", OUTPUTS);
    if (inCluster) {
      measured.put("cluster", ClusterReport.of(cluster()));
    }
    return SampleReport.with(SampleReport.of("/mnt/dataset", "/lustre/\"quoted\"\n"), measured);
  }

  private static ClusterStatus cluster() {
    Member member = new Member(UUID.randomUUID(), 1, "n1", "10.0.0.1", 20113);
    return new ClusterStatus(
        "train/x",
        List.of(new ClusterStatus.MemberStatus(member, true, 0.25, false, PeerStatistics.NONE)),
        1,
        "auto",
        1000,
        90,
        10,
        new PeerServerStatistics(8, 500, Map.of("421", 2L), 1, 0, 3),
        new Roll(
            3,
            List.of(
                new Roll.Absence("n2", "10.0.0.2", Instant.EPOCH, true),
                new Roll.Absence("n3", null, Instant.EPOCH, false))),
        null);
  }

  @Override
  public void close() {
    stager.close();
    copies.close();
    namespace.close();
    store.close();
    threads.shutdownNow();
  }
}
