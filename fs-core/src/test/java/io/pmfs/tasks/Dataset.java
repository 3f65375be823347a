package io.pmfs.tasks;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.memory.CollectingSink;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.metadata.RocksNamespace;
import io.pmfs.posix.Await;
import io.pmfs.posix.FsException;
import io.pmfs.source.CountedBackingStore;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore;
import io.pmfs.source.SourceOperations;
import io.pmfs.stage.Lenders;
import io.pmfs.stage.Stager;
import io.pmfs.stage.StagerSettings;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.Share;
import io.pmfs.stage.copies.TestCopies;
import io.pmfs.stage.formats.Bundling;
import io.pmfs.stage.formats.Compression;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.FaultyTier;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierSettings;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;

/** A complete file system over a generated source, mounted session after session. */
public final class Dataset implements AutoCloseable {
  public FakeStore store = new FakeStore();
  private final Path directory;
  private final ExecutorService threads = Executors.newFixedThreadPool(4);
  private final long[] capacities;
  private final Bundling bundling;
  private @Nullable List<Tier.@Nullable Usage> lastStop;

  /** Long after the source's last change, unless a test sets it. */
  public Instant now = Instant.MAX.minus(Duration.ofDays(1));

  // State of the running session.
  public FaultyStore faulty;
  public CountedBackingStore source;
  public Namespace namespace;
  public final List<FaultyTier> tiers = new ArrayList<>();
  private final List<DirectoryTier> directoryTiers = new ArrayList<>();
  public Copies copies;
  public Stager stager;
  public PmfsFileSystem fs;
  DatasetTasks tasks;
  private SourceOperations before = new SourceOperations(0, 0, 0, 0, 0, 0, 0, 0, 0);

  /** Mounts the source that {@code tree} creates for the first time. */
  public Dataset(Path directory, Tree tree, long... capacities) throws Exception {
    this(directory, Bundling.NONE, tree, capacities);
  }

  /** Like {@link #Dataset(Path, Tree, long...)}, with a choice of bundles. */
  public Dataset(Path directory, Bundling bundling, Tree tree, long... capacities)
      throws Exception {
    this.directory = directory;
    this.bundling = bundling;
    this.capacities = capacities;
    tree.make(store);
    faulty = new FaultyStore(store);
    source = new CountedBackingStore(faulty);
    namespace = openNamespace();
    copies = openCopies();
    stager = openStager(EvictionPolicy.NONE);
    fs = openFileSystem();
    tasks = new DatasetTasks(fs, namespace, source, copies, stager, scratch(), () -> {});
  }

  /** Changes a source. */
  public interface Tree {
    void make(FakeStore store) throws Exception;
  }

  private Namespace openNamespace() {
    return RocksNamespace.open(
        directory.resolve("state"), "test", 16 << 20, UUID.randomUUID(), null, line -> {});
  }

  private Copies openCopies() throws IOException {
    tiers.clear();
    directoryTiers.clear();
    List<CopyFormat> formats = new ArrayList<>();
    for (int i = 0; i < capacities.length; i++) {
      Path place = directory.resolve("tier" + i);
      directoryTiers.add(
          new DirectoryTier(
              new TierSettings("ssd:" + i, "ssd", place, capacities[i], 0),
              lastStop == null ? Tier.Usage.NONE : lastStop.get(i),
              null));
      tiers.add(new FaultyTier(directoryTiers.get(i)));
      formats.add(new CopyFormat(Compression.NONE, bundling, null, Runnable::run, null));
    }
    return TestCopies.of(namespace, List.copyOf(tiers), formats);
  }

  private Stager openStager(EvictionPolicy eviction) {
    return new Stager(
        namespace,
        source,
        copies,
        eviction,
        new StagerSettings(2, 8 << 20, 10_000),
        Share.ALL,
        Lenders.none(),
        () -> {});
  }

  public PmfsFileSystem openFileSystem() throws FsException {
    return new PmfsFileSystem(namespace, source, copies, stager, threads, () -> now);
  }

  /** Unmounts, changes the source and mounts again. */
  public void remount(Tree change) throws Exception {
    remount(change, EvictionPolicy.NONE);
  }

  public void remount(Tree change, EvictionPolicy eviction) throws Exception {
    unmount();
    change.make(store);
    faulty = new FaultyStore(store);
    source = new CountedBackingStore(faulty);
    namespace = openNamespace();
    copies = openCopies();
    stager = openStager(eviction);
    stager.compareTiers();
    fs = openFileSystem();
    tasks = new DatasetTasks(fs, namespace, source, copies, stager, scratch(), () -> {});
    before = source.operations();
  }

  private ScratchFiles scratch() {
    return new ScratchFiles(List.of(directory));
  }

  private void unmount() throws Exception {
    tasks.close();
    stager.close();
    lastStop = new ArrayList<>();
    directoryTiers.forEach(tier -> lastStop.add(tier.usage()));
    copies.close();
    namespace.close();
  }

  /** The requests to the source since the last call or the mount, which requests the root. */
  public SourceOperations asked() {
    SourceOperations now = source.operations();
    SourceOperations since =
        new SourceOperations(
            now.opens() - before.opens(),
            now.reads() - before.reads(),
            now.bytes() - before.bytes(),
            now.stats() - before.stats(),
            now.lists() - before.lists(),
            now.readlinks() - before.readlinks(),
            now.xattrs() - before.xattrs(),
            now.statfs() - before.statfs(),
            now.seeks() - before.seeks());
    before = now;
    return since;
  }

  public long number(String path) throws FsException {
    return number(FileName.of(path));
  }

  public long number(FileName path) throws FsException {
    long at = PmfsFileSystem.ROOT;
    if (path.size() > 0) {
      for (String name : path.toLatin1().split("/", -1)) {
        at = fs.find(at, FileName.ofLatin1(name)).inode();
      }
    }
    return at;
  }

  public Inode inode(String path) throws FsException {
    return fs.inode(number(path));
  }

  public byte[] read(String path) throws FsException {
    return read(number(path), 0, Integer.MAX_VALUE);
  }

  public byte[] read(long number, long offset, int size) throws FsException {
    CollectingSink sink = new CollectingSink();
    int count = fs.read(number, offset, size, sink);
    if (count != sink.answer().length) {
      throw new AssertionError(count + " bytes reported, " + sink.answer().length + " passed");
    }
    return sink.answer();
  }

  public List<DirectoryEntry> list(String path) throws FsException {
    List<DirectoryEntry> entries = new ArrayList<>();
    fs.list(
        number(path),
        0,
        entry -> {
          entries.add(entry);
          return true;
        });
    return entries;
  }

  public List<String> names(String path) throws FsException {
    return list(path).stream().map(entry -> entry.name().toString()).toList();
  }

  /** Looks up every name, so that the source is not asked again. */
  public void readNames() throws FsException {
    for (FileName path : store.paths()) {
      fs.inode(number(path));
    }
  }

  /** Walks and reads everything; returns the inode numbers by path. */
  public Map<String, Long> readAll() throws Exception {
    Map<String, Long> numbers = new TreeMap<>();
    readAll("", numbers);
    awaitIdle();
    return numbers;
  }

  private void readAll(String path, Map<String, Long> numbers) throws FsException {
    Inode inode = inode(path);
    numbers.put(path, inode.number());
    switch (inode.attributes().type()) {
      case DIRECTORY -> {
        for (String name : names(path)) {
          readAll(path.isEmpty() ? name : path + "/" + name, numbers);
        }
      }
      case REGULAR -> {
        byte[] content = read(path);
        if (content.length != inode.attributes().size()) {
          throw new AssertionError(path + " has " + content.length + " bytes");
        }
      }
      case SYMBOLIC_LINK -> fs.readSymbolicLink(inode.number());
      default -> {}
    }
  }

  public void awaitIdle() throws Exception {
    Await.until("staging is idle", () -> stager.status().idle());
  }

  /** The number of copies in all tiers. */
  public long copyCount() {
    return tiers.stream().mapToLong(tier -> tier.status().copies()).sum();
  }

  @Override
  public void close() throws IOException {
    faulty.clearFaults();
    tiers.forEach(FaultyTier::clearFaults);
    tasks.close();
    stager.close();
    copies.close();
    namespace.close();
    threads.shutdownNow();
  }
}
