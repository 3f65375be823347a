package io.pmfs.daemon.metrics;

import io.pmfs.cluster.ClusterStatus;
import io.pmfs.cluster.Member;
import io.pmfs.cluster.PeerServerStatistics;
import io.pmfs.cluster.PeerStatistics;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.Bridge;
import io.pmfs.fuse.DirectoryStore;
import io.pmfs.fuse.ReadMode;
import io.pmfs.fuse.RecordedLatencies;
import io.pmfs.fuse.RequestLatencies;
import io.pmfs.fuse.RequestListener;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.RocksNamespace;
import io.pmfs.stage.Copies;
import io.pmfs.stage.EvictionPolicy;
import io.pmfs.stage.Stager;
import io.pmfs.stage.StagerSettings;
import io.pmfs.tier.CountedBackingStore;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.ReadResult;
import io.pmfs.tier.ReadSink;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierSettings;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A dataset with two tiers and a file {@code f} of 5,000 bytes, served to nobody but a test. */
public final class MeasuredDataset implements AutoCloseable {
  public static final int SIZE = 5000;

  private final RocksNamespace namespace;
  private final CountedBackingStore store;
  private final Copies copies;
  private final Stager stager;
  private final ExecutorService threads = Executors.newFixedThreadPool(2);
  private final PmfsFileSystem fileSystem;

  public MeasuredDataset(Path directory) throws Exception {
    Path source = Files.createDirectory(directory.resolve("source"));
    Files.write(source.resolve("f"), new byte[SIZE]);
    namespace = RocksNamespace.open(directory.resolve("state"), "measured", 16 << 20);
    store = new CountedBackingStore(new DirectoryStore(source));
    copies = new Copies(namespace, List.of(tier("pm", directory), tier("ssd", directory)));
    stager =
        new Stager(
            namespace, store, copies, EvictionPolicy.NONE, new StagerSettings(2, 8 << 20, 1000));
    fileSystem =
        new PmfsFileSystem(namespace, store, copies, stager, threads, InstantSource.system());
  }

  private static Tier tier(String kind, Path directory) throws IOException {
    TierSettings settings =
        new TierSettings(kind + ":/" + kind, "ssd", directory.resolve(kind), 1 << 20, 0);
    return new DirectoryTier(settings, Tier.Usage.NONE);
  }

  /** Reads so many bytes of the file, in one request; returns once nothing is being copied. */
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
    while (!stager.status().idle()) {
      Thread.onSpinWait();
    }
  }

  /** What it counts. */
  public Sources sources(boolean inCluster) {
    return new Sources(
        "/lustre/\"quoted\"\n",
        "/mnt/dataset",
        "1.2.3",
        new IdleBridge(),
        fileSystem,
        copies,
        stager,
        store,
        inCluster ? MeasuredDataset::cluster : null,
        () -> new Sources.TaskCounts(true, 3, 10, 300, 1000, 1),
        () -> new Sources.Waits(3, 12.5),
        () -> true);
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
        new PeerServerStatistics(8, 500, Map.of("421", 2L), 1, 0, 3));
  }

  /** Nothing comes from the kernel. */
  private static final class IdleBridge implements Bridge {
    private final RequestLatencies latencies = RecordedLatencies.ofReads(4);

    @Override
    public String name() {
      return "idle";
    }

    @Override
    public ReadMode readMode() {
      return ReadMode.PAGE_CACHE;
    }

    @Override
    public String readModeReason() {
      return "";
    }

    @Override
    public RequestLatencies latencies() {
      return latencies;
    }

    @Override
    public void tell(RequestListener listener) {}

    @Override
    public void mount(Duration timeout) {}

    @Override
    public boolean invalidateInode(long inode) {
      return false;
    }

    @Override
    public boolean invalidateEntry(long directory, FileName name) {
      return false;
    }

    @Override
    public void unmount(boolean lazy) {}

    @Override
    public boolean awaitEnd(Duration timeout) {
      return true;
    }
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
