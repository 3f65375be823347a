package io.pmfs.daemon;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.hash.Hashing;
import com.google.common.io.MoreFiles;
import com.google.common.io.RecursiveDeleteOption;
import io.pmfs.cluster.Cluster;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.fs.DatasetTasks;
import io.pmfs.fs.FileTasks;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fs.ScratchFiles;
import io.pmfs.fuse.Bridge;
import io.pmfs.fuse.JnrBridge;
import io.pmfs.fuse.KernelBridge;
import io.pmfs.fuse.LinuxDaxFiles;
import io.pmfs.fuse.MountException;
import io.pmfs.fuse.MountOptions;
import io.pmfs.fuse.Priority;
import io.pmfs.fuse.ReadMode;
import io.pmfs.fuse.SharedSession;
import io.pmfs.metadata.NamespaceException;
import io.pmfs.metadata.RocksNamespace;
import io.pmfs.settings.ClusterOptions;
import io.pmfs.settings.DefaultTier;
import io.pmfs.settings.ExitStatus;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.PoolPlace;
import io.pmfs.settings.Reason;
import io.pmfs.settings.Registry;
import io.pmfs.settings.SessionSettings;
import io.pmfs.settings.SourceIdentity;
import io.pmfs.settings.Surroundings;
import io.pmfs.settings.TierSpec;
import io.pmfs.shards.ShardException;
import io.pmfs.stage.Bundling;
import io.pmfs.stage.Compression;
import io.pmfs.stage.Copies;
import io.pmfs.stage.CopyFormat;
import io.pmfs.stage.EvictionPolicy;
import io.pmfs.stage.LeastRecentlyUsed;
import io.pmfs.stage.Share;
import io.pmfs.stage.Stager;
import io.pmfs.stage.StagerSettings;
import io.pmfs.tier.BackingStore;
import io.pmfs.tier.CountedBackingStore;
import io.pmfs.tier.DirectMemory;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.FsException;
import io.pmfs.tier.MappedMemory;
import io.pmfs.tier.MissingTier;
import io.pmfs.tier.PoolException;
import io.pmfs.tier.PoolTier;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierKind;
import io.pmfs.tier.TierSettings;
import io.pmfs.tier.TierStatus;
import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Calls everyone's constructors: the one place where the modules meet. */
public final class Wiring implements MountOpener {
  private static final Logger log = LoggerFactory.getLogger(Wiring.class);

  /** The dataset does not change while it is mounted: the kernel need not ask again. */
  private static final Duration KERNEL_TIMEOUT = Duration.ofDays(1);

  /** Requests that may wait for the source at once: more than a job has loader workers. */
  private static final int WORKERS = 64;

  /** What the state of a few million files takes, with its log and what it merges. */
  private static final long STATE_BYTES = 256L << 20;

  /** No more of a small disk than one part in so many is left to the state. */
  private static final long STATE_SHARE = 20;

  /** About 200 bytes of heap for each file that waits to be fetched. */
  private static final int QUEUE_LENGTH = 100_000;

  /** What scripts/pmfs says beside -XX:MaxDirectMemorySize: the same number of bytes. */
  private static final String DIRECT_MEMORY = "pmfs.directMemoryBytes";

  private final Surroundings surroundings;
  private final @Nullable Supervision supervision;
  private final long kernelFlags;
  private final Consumer<String> notice;

  /**
   * Wires mounts of this process.
   *
   * @param kernelFlags what may be taken of the kernel's offer; see {@link KernelBridge}
   * @param notice takes lines for whoever waits for a mount
   */
  public Wiring(
      Surroundings surroundings,
      @Nullable Supervision supervision,
      long kernelFlags,
      Consumer<String> notice) {
    this.surroundings = surroundings;
    this.supervision = supervision;
    this.kernelFlags = kernelFlags;
    this.notice = notice;
  }

  @Override
  public MountedDataset open(MountSettings settings, SessionSettings session) throws MountFailure {
    Deque<AutoCloseable> opened = new ArrayDeque<>();
    boolean complete = false;
    try {
      ServedDataset dataset = open(settings, session, opened);
      complete = true;
      return dataset;
    } catch (FsException e) {
      throw new MountFailure(
          ExitStatus.USAGE, settings.source().path() + ": source: " + Reason.of(e), e);
    } catch (ShardException e) {
      throw new MountFailure(
          ExitStatus.FAILED, settings.source().path() + ": source: " + e.getMessage(), e);
    } catch (NamespaceException e) {
      throw new MountFailure(
          e.isInUse() ? ExitStatus.IN_USE : ExitStatus.FAILED, String.valueOf(e.getMessage()), e);
    } catch (MountException e) {
      throw failure(e);
    } finally {
      if (!complete) {
        opened.forEach(Wiring::closeQuietly);
      }
    }
  }

  private ServedDataset open(
      MountSettings settings, SessionSettings session, Deque<AutoCloseable> opened)
      throws MountFailure, FsException, ShardException, MountException {
    SourceIdentity began = session.source();
    DatasetSource origin =
        began == null
            ? DatasetSource.open(settings.source())
            : DatasetSource.reopen(settings.source(), began);
    opened.push(origin);
    String dataset = datasetName(settings.source().path(), origin.identity());
    Path state = stateDirectory(settings).resolve(dataset);
    TransientCopies transientCopies = TransientCopies.before(state, surroundings, isResumed());
    AtomicBoolean isOpened = new AtomicBoolean();
    RocksNamespace namespace =
        RocksNamespace.open(
            state,
            origin.identity(),
            settings.metadata().memoryBytes(),
            session.id(),
            supervision == null ? null : supervision.numbers(),
            line -> sayOfState(line, isOpened.get()));
    opened.push(namespace);
    opened.push(StateRecovery.start(namespace));
    Cluster cluster = cluster(settings, dataset, state);
    if (cluster != null) {
      opened.push(cluster);
    }
    DirectMemory memory = directMemory();
    Path index = namespace.failure() == null ? state : scratch(opened);
    BackingStore shown = origin.store(index, memory, notice);
    CountedBackingStore source =
        new CountedBackingStore(cluster == null ? shown : cluster.store(shown));
    List<Tier> tiers = new ArrayList<>();
    for (TierSpec spec : settings.copies().tiers()) {
      Tier tier = openTier(spec, settings, dataset, namespace);
      opened.push(tier);
      checkDax(spec, tier, settings.copies().requireDax());
      tiers.add(tier);
    }
    BridgeChoice choice =
        mountsForUser()
            ? new BridgeChoice("kernel", "root mounts for this user")
            : BridgeChoice.of(settings.bridge().kind(), surroundings);
    boolean isDirect = choice.isKernel() && isReadDirectly(settings, tiers.get(0));
    List<CopyFormat> formats = new ArrayList<>();
    for (int i = 0; i < tiers.size(); i++) {
      Bundling bundling =
          bundling(settings, PoolPlace.isPool(settings.copies().tiers().get(i)), isDirect);
      CopyFormat format =
          format(
              settings,
              settings.copies().tiers().get(i),
              tiers.get(i),
              bundling,
              dataset,
              state,
              namespace);
      opened.push(format);
      formats.add(format);
    }
    Copies copies = new Copies(namespace, tiers, formats, memory);
    opened.push(copies);
    EvictionPolicy eviction =
        settings.copies().eviction().equals("lru")
            ? new LeastRecentlyUsed(new SplittableRandom())
            : EvictionPolicy.NONE;
    Stager stager =
        new Stager(
            namespace,
            source,
            copies,
            eviction,
            new StagerSettings(
                settings.copies().fetchThreads(),
                Math.toIntExact(Math.min(settings.copies().bufferMemoryBytes(), 1L << 30)),
                QUEUE_LENGTH),
            cluster == null ? Share.ALL : cluster.share(namespace),
            Priority::lower);
    opened.push(stager);
    ExecutorService metadataThreads = metadataThreads(settings.source().metadataThreads());
    opened.push(metadataThreads::shutdownNow);
    PmfsFileSystem fileSystem =
        began == null
            ? new PmfsFileSystem(
                namespace, source, copies, stager, metadataThreads, InstantSource.system())
            : PmfsFileSystem.resume(
                namespace, source, copies, stager, metadataThreads, InstantSource.system());
    ReadMode readMode = readMode(settings, isDirect);
    Bridge bridge = bridge(choice, settings, readMode, fileSystem);
    log.info("bridge {}: {}", choice.name(), choice.reason());
    RequestLog requests = RequestLogs.open(settings.observation(), namespace, bridge, isResumed());
    opened.push(requests);
    bridge.tell(requests);
    if (!namespace.stoppedCleanly()) {
      log.info(
          "the last session did not stop cleanly: tiers take copies after they were compared with"
              + " the records");
    }
    stager.compareTiers();
    ScratchFiles scratch = scratch(state);
    KeptTasks tasks =
        keptTasks(
            state,
            cluster,
            scratch,
            new DatasetTasks(
                fileSystem, namespace, source, copies, stager, scratch, Priority::lower));
    opened.push(tasks);
    List<Path> owned = new ArrayList<>(List.of(state));
    List<Path> pools = new ArrayList<>();
    for (TierSpec spec : settings.copies().tiers()) {
      if (PoolPlace.isPool(spec)) {
        pools.add(spec.path());
      } else {
        owned.add(spec.path().resolve(dataset));
      }
    }
    ServedDataset served =
        new ServedDataset(
            settings,
            state,
            owned,
            pools,
            namespace,
            origin,
            source,
            cluster,
            tiers,
            copies,
            stager,
            fileSystem,
            tasks,
            bridge,
            requests,
            choice.reason(),
            isResumed(),
            isDirect
                ? tiers.get(0).name() + " is mapped memory, which the kernel reads itself"
                : "",
            opened);
    if (transientCopies.areToBeDropped()) {
      served.purge();
    }
    isOpened.set(true);
    return served;
  }

  /** As much as the launcher has told Java; elsewhere without a limit. */
  private static DirectMemory directMemory() {
    return new DirectMemory(Long.getLong(DIRECT_MEMORY, Long.MAX_VALUE));
  }

  /** To the log, and to the one who waits for a mount if there is one. */
  private void sayOfState(String line, boolean isOpened) {
    log.warn("{}", line);
    if (!isOpened && !isResumed()) {
      notice.accept(line);
    }
  }

  /** A directory in the place of a state that cannot be written, for this daemon only. */
  private static Path scratch(Deque<AutoCloseable> opened) throws MountFailure {
    try {
      Path directory = Files.createTempDirectory("pmfs-state");
      opened.push(
          () -> MoreFiles.deleteRecursively(directory, RecursiveDeleteOption.ALLOW_INSECURE));
      return directory;
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.FAILED, "no directory for temporary files: " + Reason.of(e), e);
    }
  }

  private boolean isResumed() {
    return supervision != null && supervision.isResumed();
  }

  private @Nullable Cluster cluster(MountSettings settings, String dataset, Path state)
      throws MountFailure {
    ClusterOptions options = settings.cluster();
    if (options == null) {
      return null;
    }
    try {
      return options.open(dataset, state, surroundings.hostName());
    } catch (MountFailure e) {
      if (!isResumed()) {
        throw e;
      }
      log.warn("{}; going on without peers", e.line());
      return null;
    }
  }

  /** What a pm tier is if it is not persistent memory: an error, or one line. */
  private void checkDax(TierSpec spec, Tier tier, boolean required) throws MountFailure {
    TierStatus.Dax dax = tier.status().dax();
    if (dax == null || dax.real()) {
      return;
    }
    String line = "%s: tier pm: %s".formatted(spec.path(), dax.reason());
    if (required && !isResumed()) {
      throw new MountFailure(
          ExitStatus.USAGE,
          line + "; choose a directory on persistent memory, or leave out --require-dax");
    }
    log.info("{}", line);
    if (!isResumed()) {
      notice.accept(line + "; its copies are kept as on a disk");
    }
  }

  /** Whether the kernel is to read copies where they lie from the beginning, sparing its cache. */
  private boolean isReadDirectly(MountSettings settings, Tier first) {
    Compression own = settings.copies().tiers().get(0).compression();
    Compression compression = own == null ? settings.copies().compression() : own;
    boolean permitted =
        mountsForUser() ? settings.bridge().passthroughCapability() : surroundings.isRoot();
    return first.isDirect()
        && settings.bridge().readMode().equals(ReadMode.AUTO.word())
        && compression.mode() == Compression.Mode.NONE
        && permitted;
  }

  /** What tasks do not keep in memory lies beside the state, or where the control socket is. */
  private ScratchFiles scratch(Path state) throws MountFailure {
    return new ScratchFiles(List.of(state, Registry.open(surroundings).directory()));
  }

  /** What is running goes on after this process only if the mount does. */
  private KeptTasks keptTasks(
      Path state, @Nullable Cluster cluster, ScratchFiles scratch, FileTasks tasks) {
    KeptTasks kept =
        new KeptTasks(
            tasks,
            cluster == null ? null : new PeerTasks(cluster, scratch),
            new TaskLists(state.resolve("lists"), scratch),
            supervision == null ? null : state.resolve("task.json"));
    if (supervision != null && !supervision.isResumed()) {
      kept.forget();
    }
    return kept;
  }

  private Bridge bridge(
      BridgeChoice choice, MountSettings settings, ReadMode readMode, PmfsFileSystem fileSystem)
      throws MountException {
    MountOptions options =
        new MountOptions(
            settings.mountpoint(),
            settings.source().path().toString(),
            settings.bridge().allowOther(),
            KERNEL_TIMEOUT);
    SharedSession session = supervision == null ? null : supervision.session();
    return choice.isKernel()
        ? new KernelBridge(fileSystem, options, readMode, WORKERS, session, kernelFlags)
        : new JnrBridge(fileSystem, options);
  }

  private ReadMode readMode(MountSettings settings, boolean isDirect) {
    ReadMode resumed = supervision == null ? null : supervision.resumedMode();
    if (resumed != null) {
      return resumed;
    }
    if (settings.bridge().readMode().equals(ReadMode.PAGE_CACHE.word())) {
      return ReadMode.PAGE_CACHE;
    }
    boolean asked = settings.bridge().readMode().equals(ReadMode.PASSTHROUGH.word());
    if (mountsForUser() && !settings.bridge().passthroughCapability()) {
      if (asked) {
        log.warn(ServedDataset.LACKS_CAPABILITY);
      }
      return ReadMode.PAGE_CACHE;
    }
    return asked || isDirect ? ReadMode.PASSTHROUGH : ReadMode.AUTO;
  }

  private boolean mountsForUser() {
    return supervision != null && supervision.mountsForUser();
  }

  private static Path stateDirectory(MountSettings settings) throws MountFailure {
    Path directory = settings.metadata().stateDirectory();
    if (directory == null) {
      throw MountFailure.usage("there is no place for the state; give one with --state-dir");
    }
    return directory;
  }

  /** Readable, and different for every identity: {@code imagenet-1f2e3d4c5b6a7980}. */
  private static String datasetName(Path source, String identity) {
    Path last = source.getFileName();
    String readable = last == null ? "root" : last.toString().replaceAll("[^A-Za-z0-9._-]", "_");
    String hash = Hashing.sha256().hashString(identity, UTF_8).toString();
    return readable.substring(0, Math.min(64, readable.length())) + "-" + hash.substring(0, 16);
  }

  private Tier openTier(
      TierSpec spec, MountSettings settings, String dataset, RocksNamespace namespace)
      throws MountFailure {
    try {
      return openThatTier(spec, settings, dataset, namespace);
    } catch (MountFailure e) {
      if (!isResumed()) {
        throw e;
      }
      log.warn("{}; going on without it", e.line());
      return new MissingTier(
          spec.kind() + ":" + spec.path(), kind(spec), spec.path().toString(), e.line());
    }
  }

  private static TierKind kind(TierSpec spec) {
    return spec.kind().equals("pm") ? TierKind.PM : TierKind.SSD;
  }

  private static Tier openThatTier(
      TierSpec spec, MountSettings settings, String dataset, RocksNamespace namespace)
      throws MountFailure {
    String name = spec.kind() + ":" + spec.path();
    Tier.Usage usage = TierUsage.kept(namespace, name);
    try {
      return PoolPlace.isPool(spec)
          ? openPool(spec, name, dataset, usage)
          : openDirectory(spec, name, settings, dataset, usage);
    } catch (PoolException e) {
      throw new MountFailure(ExitStatus.FAILED, spec.path() + ": pool: " + e.getMessage(), e);
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.USAGE, spec.path() + ": tier: " + Reason.of(e) + "; choose another --tier", e);
    }
  }

  private static Tier openDirectory(
      TierSpec spec, String name, MountSettings mount, String dataset, Tier.@Nullable Usage usage)
      throws IOException {
    FileStore disk = Files.getFileStore(spec.path());
    long diskBytes = disk.getTotalSpace();
    TierSettings settings =
        new TierSettings(
            name,
            kind(spec),
            spec.path().resolve(dataset),
            spec.capacity().on(diskBytes),
            Math.max(mount.copies().keepFree().on(diskBytes), roomOfState(mount, disk, diskBytes)));
    return new DirectoryTier(settings, usage, new LinuxDaxFiles());
  }

  /** Copies leave room for the records of them, where both are on one disk. */
  private static long roomOfState(MountSettings mount, FileStore disk, long diskBytes) {
    Path state = mount.metadata().stateDirectory();
    try {
      boolean isThere =
          state != null && Files.getFileStore(DefaultTier.nearestExisting(state)).equals(disk);
      return isThere ? Math.min(STATE_BYTES, diskBytes / STATE_SHARE) : 0;
    } catch (IOException e) {
      return 0;
    }
  }

  private static Tier openPool(
      TierSpec spec, String name, String dataset, Tier.@Nullable Usage usage) throws IOException {
    MappedMemory memory = PoolPlace.open(spec);
    return new PoolTier(
        new PoolTier.Settings(
            name, spec.path().toString(), dataset, spec.capacity().on(memory.size())),
        memory,
        usage,
        new SecureRandom());
  }

  private static CopyFormat format(
      MountSettings settings,
      TierSpec spec,
      Tier tier,
      Bundling bundling,
      String dataset,
      Path state,
      RocksNamespace namespace)
      throws MountFailure {
    Compression own = spec.compression();
    TierStatus status = tier.status();
    boolean isEmpty = status.state() == TierStatus.State.ON && status.copies() == 0;
    boolean isPool = PoolPlace.isPool(spec);
    return new CopyFormat(
        own == null ? settings.copies().compression() : own,
        bundling,
        isPool ? dictionaryOfPool(state, tier.name()) : spec.path().resolve(dataset),
        Wiring::runInBackground,
        isEmpty ? Long.valueOf(0) : TierUsage.keptContent(namespace, tier.name()));
  }

  /** A pool has no files: what its copies need lies with the records of them. */
  private static Path dictionaryOfPool(Path state, String tier) {
    String hash = Hashing.sha256().hashString(tier, UTF_8).toString();
    Path directory = state.resolve("pool-" + hash.substring(0, 16));
    try {
      return Files.createDirectories(directory);
    } catch (IOException e) {
      // Copies that need a dictionary are then made without one.
      log.warn("{}: state: {}", directory, Reason.of(e));
      return directory;
    }
  }

  /** Room for single files can only be made where copies are alone. */
  private static Bundling bundling(MountSettings settings, boolean isPool, boolean isDirect) {
    if (!settings.copies().eviction().equals("none")) {
      return Bundling.NONE;
    }
    return !isPool && (isDirect || settings.bridge().readMode().equals(ReadMode.PASSTHROUGH.word()))
        ? Bundling.COMPRESSED
        : Bundling.ALL;
  }

  private static void runInBackground(Runnable task) {
    Thread thread =
        new Thread(
            () -> {
              Priority.lower();
              task.run();
            },
            "dictionary");
    thread.setDaemon(true);
    thread.start();
  }

  private static ExecutorService metadataThreads(int count) {
    AtomicInteger number = new AtomicInteger();
    return Executors.newFixedThreadPool(
        count,
        task -> {
          Thread thread = new Thread(task, "metadata-" + number.incrementAndGet());
          thread.setDaemon(true);
          return thread;
        });
  }

  static MountFailure failure(MountException e) {
    return switch (e.reason()) {
      case UNAVAILABLE -> new MountFailure(ExitStatus.CANNOT, String.valueOf(e.getMessage()), e);
      case BUSY -> new MountFailure(ExitStatus.FAILED, MountFailure.BUSY, e);
      case FAILED -> new MountFailure(ExitStatus.FAILED, String.valueOf(e.getMessage()), e);
    };
  }

  static void closeQuietly(AutoCloseable resource) {
    try {
      resource.close();
    } catch (Exception e) {
      log.warn("closing", e);
    }
  }
}
