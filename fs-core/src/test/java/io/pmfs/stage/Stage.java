package io.pmfs.stage;

import io.pmfs.memory.CollectingSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Listing;
import io.pmfs.metadata.Namespace;
import io.pmfs.metadata.RocksNamespace;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.posix.Await;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.FsException;
import io.pmfs.source.CountedBackingStore;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore;
import io.pmfs.source.SourceStatus;
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
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.ThreadFactory;
import java.util.function.Function;
import java.util.stream.Stream;

/** A real namespace, real tiers that can be made to fail, and a flat source of generated files. */
public final class Stage implements AutoCloseable {
  static final StagerSettings SETTINGS = new StagerSettings(4, 16 << 20, 1000);

  private static final long MINUTE = Duration.ofMinutes(1).toNanos();

  public final FakeStore store = new FakeStore();
  final FaultyStore faulty = new FaultyStore(store);
  public final CountedBackingStore source = new CountedBackingStore(faulty);
  public final Namespace namespace;
  public final List<FaultyTier> tiers = new ArrayList<>();
  private final Path directory;
  private StagerSettings settings = SETTINGS;
  private EvictionPolicy eviction = EvictionPolicy.NONE;
  private Compression compression = Compression.NONE;
  private Bundling bundling = Bundling.NONE;
  private Share share = Share.ALL;
  private Lenders lenders = Lenders.none();
  private long now;
  private Function<String, ThreadFactory> threads = DaemonThread::numbered;
  public Copies copies;
  public Stager stager;

  /** Creates one tier per capacity. */
  public Stage(Path directory, long... capacities) throws IOException {
    this.directory = directory;
    this.namespace =
        RocksNamespace.open(
            directory.resolve("state"), "test", 16 << 20, UUID.randomUUID(), null, line -> {});
    for (int i = 0; i < capacities.length; i++) {
      tiers.add(
          new FaultyTier(
              new DirectoryTier(
                  new TierSettings(
                      "ssd:" + i, "ssd", directory.resolve("tier" + i), capacities[i], 0),
                  Tier.Usage.NONE,
                  null)));
    }
    copies = copies();
    stager = openStager();
  }

  private Stager openStager() {
    return new Stager(namespace, source, copies, eviction, settings, share, lenders, threads);
  }

  private Copies copies() {
    List<CopyFormat> formats = new ArrayList<>();
    for (int i = 0; i < tiers.size(); i++) {
      formats.add(
          new CopyFormat(
              compression, bundling, directory.resolve("tier" + i), Runnable::run, null));
    }
    return TestCopies.of(namespace, List.copyOf(tiers), formats);
  }

  public Stage with(Compression next) {
    compression = next;
    restart();
    return this;
  }

  public Stage with(Bundling next) {
    bundling = next;
    restart();
    return this;
  }

  public Stage with(Share next) {
    share = next;
    restart();
    return this;
  }

  /** Uses the copies that another stage of the same source has at each import of this one. */
  Stage with(Stage lender) {
    lenders = new Lenders("test", () -> List.of(lender.asLender()), () -> now);
    restart();
    return this;
  }

  Lenders.Lender asLender() {
    Map<String, Path> places = new HashMap<>();
    for (int i = 0; i < tiers.size(); i++) {
      places.put("ssd:" + i, directory.resolve("tier" + i));
    }
    return new Lenders.Lender(directory.resolve("state"), places);
  }

  public Stage with(StagerSettings next) {
    settings = next;
    restart();
    return this;
  }

  Stage withThreads(Function<String, ThreadFactory> next) {
    threads = next;
    restart();
    return this;
  }

  public Stage with(EvictionPolicy next) {
    eviction = next;
    restart();
    return this;
  }

  /** Discards the state in memory, like a new session. */
  public void restart() {
    stager.close();
    copies = copies();
    stager = openStager();
  }

  /** Imports the names and attributes of the source's root into the namespace. */
  public void importAll() throws FsException {
    now += MINUTE;
    FileName root = FileName.of("");
    SourceStatus status = store.status(root);
    namespace.updateInode(
        Namespace.ROOT,
        known ->
            new Inode(
                Namespace.ROOT,
                status.identity(),
                Namespace.ROOT,
                root,
                namespace.session(),
                null,
                status.attributes()));
    List<SourceEntry> entries = new ArrayList<>();
    for (FileName name : store.paths()) {
      if (name.size() > 0) {
        SourceStatus file = store.status(name);
        entries.add(new SourceEntry(name, file.identity(), file.attributes()));
      }
    }
    Namespace.DirectoryImport listing = namespace.beginImport(Namespace.ROOT);
    listing.add(entries);
    listing.finish(status.attributes(), new Listing(namespace.session(), Instant.EPOCH));
  }

  /** Adds a file with this content to the source and imports it. */
  public Inode file(String name, long seed, long size) throws FsException {
    store.file(name, seed, size);
    importAll();
    return inode(name);
  }

  public Inode inode(String name) {
    var entry = Objects.requireNonNull(namespace.find(Namespace.ROOT, FileName.of(name)), name);
    return Objects.requireNonNull(namespace.inode(entry.inode()));
  }

  public byte[] read(Inode inode) throws FsException {
    return read(inode, 0, Math.toIntExact(inode.attributes().size()));
  }

  public byte[] read(Inode inode, long offset, int size) throws FsException {
    ByteArrayOutputStream answer = new ByteArrayOutputStream();
    while (answer.size() < size) {
      CollectingSink sink = new CollectingSink();
      int count = stager.serve(inode, offset + answer.size(), size - answer.size(), sink);
      if (count < 1 || count != sink.answer().length) {
        throw new AssertionError(count + " bytes reported, " + sink.answer().length + " passed");
      }
      answer.writeBytes(sink.answer());
    }
    return answer.toByteArray();
  }

  public void awaitIdle() throws Exception {
    Await.until("staging is idle", () -> stager.status().idle());
    // The last user of a writer closes it, which may be after its fetch has ended.
    for (FaultyTier tier : tiers) {
      Await.until("unfinished copies are gone", () -> tier.openWriters() == 0);
    }
  }

  /** Reads a file and waits until it is in a tier. */
  public void stage(Inode inode) throws Exception {
    read(inode);
    awaitIdle();
    if (!copies.has(inode)) {
      throw new AssertionError(inode.name() + " was not staged: " + stager.status());
    }
  }

  /** The file of a copy. */
  public Path copyFile(int tier, Inode inode) {
    return directory.resolve("tier" + tier).resolve("copies/00/00/%06x".formatted(inode.number()));
  }

  /** All files in a tier's directory, unfinished ones included. */
  public List<Path> files(int tier) throws IOException {
    try (Stream<Path> all = Files.walk(directory.resolve("tier" + tier))) {
      return all.filter(file -> Files.isRegularFile(file) && !file.endsWith("lock")).toList();
    }
  }

  public static byte[] expected(long seed, Inode inode) {
    Attributes attributes = inode.attributes();
    return FakeStore.content(seed, 0, Math.toIntExact(attributes.size()));
  }

  @Override
  public void close() {
    faulty.clearFaults();
    tiers.forEach(FaultyTier::clearFaults);
    stager.close();
    copies.close();
    namespace.close();
  }
}
