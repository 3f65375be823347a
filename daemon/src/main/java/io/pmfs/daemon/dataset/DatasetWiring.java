package io.pmfs.daemon.dataset;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.hash.Hashing;
import com.google.common.io.MoreFiles;
import com.google.common.io.RecursiveDeleteOption;
import io.pmfs.cluster.Cluster;
import io.pmfs.daemon.process.BridgeChoice;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.daemon.tasks.PeerTasks;
import io.pmfs.daemon.tasks.TaskLists;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.Bridge;
import io.pmfs.fuse.BridgeProvider;
import io.pmfs.fuse.KernelBridge;
import io.pmfs.fuse.NodeNumber;
import io.pmfs.fuse.ReadMode;
import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountSpec;
import io.pmfs.fuse.mounting.SharedSession;
import io.pmfs.fuse.system.Priority;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.RocksNamespace;
import io.pmfs.mounts.Registry;
import io.pmfs.places.NotOwnException;
import io.pmfs.places.OwnPath;
import io.pmfs.places.SourceIdentity;
import io.pmfs.places.Surroundings;
import io.pmfs.posix.DaemonPool;
import io.pmfs.posix.FsException;
import io.pmfs.settings.ClusterOptions;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;
import io.pmfs.shards.ShardException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.CountedBackingStore;
import io.pmfs.stage.Lenders;
import io.pmfs.stage.Stager;
import io.pmfs.stage.StagerSettings;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.LeastRecentlyUsed;
import io.pmfs.stage.copies.Share;
import io.pmfs.tasks.DatasetTasks;
import io.pmfs.tasks.ScratchFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Calls the constructors of all parts of a dataset that is mounted for reading. */
public final class DatasetWiring {
  private static final Logger log = LoggerFactory.getLogger(DatasetWiring.class);

  /** The dataset does not change while it is mounted: the kernel need not ask again. */
  private static final Duration KERNEL_TIMEOUT = Duration.ofDays(1);

  /** Requests that may wait for the source at once: more than a job has loader workers. */
  private static final int WORKERS = 64;

  /** About 200 bytes of heap for each file that waits to be fetched. */
  private static final int QUEUE_LENGTH = 100_000;

  /** Set by scripts/pmfs to the same number of bytes as -XX:MaxDirectMemorySize. */
  public static final String DIRECT_MEMORY = "pmfs.directMemoryBytes";

  private final Surroundings surroundings;
  private final @Nullable Supervision supervision;
  private final long kernelFlags;
  private final Consumer<String> notice;
  private final MountSettings settings;
  private final SessionSettings session;
  private final Opened opened;

  /**
   * For one mount of this process.
   *
   * @param kernelFlags the features of the kernel that may be used; see {@link KernelBridge}
   * @param notice takes lines for the user who waits for a mount
   * @param opened takes over all that is opened
   */
  public DatasetWiring(
      Surroundings surroundings,
      @Nullable Supervision supervision,
      long kernelFlags,
      Consumer<String> notice,
      MountSettings settings,
      SessionSettings session,
      Opened opened) {
    this.surroundings = surroundings;
    this.supervision = supervision;
    this.kernelFlags = kernelFlags;
    this.notice = notice;
    this.settings = settings;
    this.session = session;
    this.opened = opened;
  }

  public ServedDataset open() throws MountFailure, FsException, ShardException, MountException {
    AtomicBoolean isOpened = new AtomicBoolean();
    SourceAndState source = openSource(isOpened);
    MountTiers tiers = new MountTiers(settings, source, isResumed(), notice);
    tiers.open(opened);
    BridgeChoice choice = bridgeChoice();
    boolean isDirect = choice.isKernel() && tiers.areReadDirectly(mayPassThrough());
    Copies copies = tiers.openCopies(isDirect, opened);
    Stager stager = stager(source, copies);
    PmfsFileSystem fileSystem = fileSystem(source, copies, stager);
    KernelSession kernel =
        KernelSession.open(
            settings,
            bridge(choice, readMode(isDirect), fileSystem),
            choice.reason(),
            isResumed(),
            node -> source.namespace().path(NodeNumber.inode(node)),
            opened);
    compareTiers(source, stager);
    KeptTasks tasks = tasks(source, fileSystem, copies, stager);
    ServedDataset served =
        new ServedDataset(kernel, source, tiers, stager, fileSystem, tasks, opened);
    source.transientCopies().mark();
    isOpened.set(true);
    return served;
  }

  /**
   * Opens the source, the state of its dataset and its cluster.
   *
   * @param isOpened whether the mount is open and no user waits for it any more
   */
  private SourceAndState openSource(AtomicBoolean isOpened)
      throws MountFailure, FsException, ShardException {
    SourceIdentity began = session.source();
    DatasetSource origin =
        began == null
            ? DatasetSource.open(settings.source())
            : DatasetSource.reopen(settings.source(), began);
    opened.add(origin);
    String dataset = datasetName(settings.source().path(), origin.identity());
    Path state = stateDirectory().resolve(dataset);
    TransientCopies transientCopies = TransientCopies.before(state, surroundings, isResumed());
    requireOwn(state);
    RocksNamespace namespace =
        RocksNamespace.open(
            state,
            origin.identity(),
            settings.metadata().memoryBytes(),
            session.id(),
            supervision == null ? null : supervision.numbers(),
            line -> sayOfState(line, isOpened.get()));
    opened.add(namespace);
    opened.add(StateRecovery.start(namespace));
    Cluster cluster = cluster(dataset, state);
    if (cluster != null) {
      opened.add(cluster);
    }
    DirectMemory memory = directMemory();
    Path index = namespace.failure() == null ? state : scratch();
    BackingStore shown = origin.store(index, memory, notice);
    OtherCopies others = new OtherCopies(settings, dataset, surroundings);
    Lenders lenders =
        opened.add(
            cluster == null
                ? new Lenders(origin.identity(), others::lenders, System::nanoTime)
                : Lenders.none());
    CountedBackingStore store =
        new CountedBackingStore(
            cluster == null
                ? origin.borrowing(shown, lenders, memory)
                : cluster.store(shown, settings.bridge().allowOther()));
    return new SourceAndState(
        dataset, origin, store, cluster, state, namespace, lenders, transientCopies, memory);
  }

  /**
   * Creates the directory of the dataset's state. A disk that cannot be written is detected later,
   * when the state is opened.
   */
  private static void requireOwn(Path state) throws MountFailure {
    try {
      OwnPath.ofProcess().filledDirectory(state);
    } catch (NotOwnException e) {
      throw new MountFailure(
          ExitStatus.USAGE,
          "%s: state: %s; choose another --state-dir".formatted(state, Reason.of(e)),
          e);
    } catch (IOException e) {
      log.debug("{}: state: {}", state, Reason.of(e));
    }
  }

  private Stager stager(SourceAndState source, Copies copies) {
    EvictionPolicy eviction =
        settings.copies().eviction().equals("lru")
            ? new LeastRecentlyUsed(new SplittableRandom())
            : EvictionPolicy.NONE;
    Cluster cluster = source.cluster();
    return opened.add(
        new Stager(
            source.namespace(),
            source.store(),
            copies,
            eviction,
            new StagerSettings(
                settings.copies().fetchThreads(),
                Math.toIntExact(Math.min(settings.copies().bufferMemoryBytes(), 1L << 30)),
                QUEUE_LENGTH),
            cluster == null ? Share.ALL : cluster.share(source.namespace()),
            source.lenders(),
            Priority::lower));
  }

  private PmfsFileSystem fileSystem(SourceAndState source, Copies copies, Stager stager)
      throws FsException {
    ExecutorService threads = new DaemonPool(settings.source().metadataThreads(), "metadata");
    opened.add(threads::shutdownNow);
    RocksNamespace namespace = source.namespace();
    CountedBackingStore store = source.store();
    InstantSource clock = InstantSource.system();
    return session.source() == null
        ? new PmfsFileSystem(namespace, store, copies, stager, threads, clock)
        : PmfsFileSystem.resume(namespace, store, copies, stager, threads, clock);
  }

  private static void compareTiers(SourceAndState source, Stager stager) {
    if (!source.namespace().stoppedCleanly()) {
      log.info(
          "the last session did not stop cleanly: tiers accept new copies once they have been"
              + " compared with the records");
    }
    stager.compareTiers();
  }

  /** A running task outlives this process only if the mount does. */
  private KeptTasks tasks(
      SourceAndState source, PmfsFileSystem fileSystem, Copies copies, Stager stager)
      throws MountFailure {
    ScratchFiles scratch = scratch(source.state());
    Cluster cluster = source.cluster();
    KeptTasks kept =
        new KeptTasks(
            new DatasetTasks(
                fileSystem,
                source.namespace(),
                source.store(),
                copies,
                stager,
                scratch,
                Priority::lower),
            cluster == null ? null : new PeerTasks(cluster, scratch, PeerTasks.LOOK_AGAIN),
            new TaskLists(source.state().resolve("lists"), scratch),
            supervision == null ? null : source.state().resolve("task.json"));
    if (supervision != null && !supervision.isResumed()) {
      kept.forget();
    }
    return opened.add(kept);
  }

  /** Limited like Java's direct memory by the launcher; unlimited without it. */
  private static DirectMemory directMemory() {
    return new DirectMemory(Long.getLong(DIRECT_MEMORY, Long.MAX_VALUE));
  }

  /** Sends a line to the log, and to the user if the mount is not open yet. */
  private void sayOfState(String line, boolean isOpened) {
    log.warn("{}", line);
    if (!isOpened && !isResumed()) {
      notice.accept(line);
    }
  }

  /** A temporary directory in place of a state directory that cannot be written. */
  private Path scratch() throws MountFailure {
    try {
      Path directory = OwnPath.ofProcess().directory(Files.createTempDirectory("pmfs-state"));
      opened.add(
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

  private @Nullable Cluster cluster(String dataset, Path state) throws MountFailure {
    ClusterOptions options = settings.cluster();
    if (options == null) {
      return null;
    }
    try {
      return options.open(dataset, state, surroundings.hostName(), isResumed());
    } catch (MountFailure e) {
      if (!isResumed()) {
        throw e;
      }
      log.warn("{}; continuing without peers", e.line());
      return null;
    }
  }

  private BridgeChoice bridgeChoice() {
    if (settings.isMountedByAnother()) {
      return new BridgeChoice("kernel", "another program has mounted");
    }
    return mountsForUser()
        ? new BridgeChoice("kernel", "root mounts for this user")
        : BridgeChoice.of(settings.bridge().kind(), surroundings);
  }

  /** Whether the kernel lets this process use passthrough. */
  private boolean mayPassThrough() {
    return mountsForUser() ? settings.bridge().passthroughCapability() : surroundings.isRoot();
  }

  /** Scratch files of tasks lie beside the state, or else in the control socket's directory. */
  private ScratchFiles scratch(Path state) throws MountFailure {
    return new ScratchFiles(List.of(state, Registry.open(surroundings).directory()));
  }

  private Bridge bridge(BridgeChoice choice, ReadMode readMode, PmfsFileSystem fileSystem)
      throws MountException {
    MountSpec options =
        new MountSpec(
            settings.mountpoint(),
            settings.source().path().toString(),
            settings.bridge().allowOther(),
            false,
            surroundings.forbidsExecution(),
            KERNEL_TIMEOUT);
    log.info("bridge {}: {}", choice.name(), choice.reason());
    SharedSession shared = supervision == null ? null : supervision.session();
    choice.check(settings.mountpoint(), surroundings);
    return choice.isKernel()
        ? new KernelBridge(fileSystem, options, readMode, WORKERS, shared, kernelFlags)
        : BridgeProvider.of(choice.name()).open(fileSystem, options);
  }

  private ReadMode readMode(boolean isDirect) {
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

  private Path stateDirectory() throws MountFailure {
    Path directory = settings.metadata().stateDirectory();
    if (directory == null) {
      throw MountFailure.usage("there is no place for the state; give one with --state-dir");
    }
    return directory;
  }

  /** Readable, and different for every identity: {@code imagenet-1f2e3d4c5b6a7980}. */
  public static String datasetName(Path source, String identity) {
    Path last = source.getFileName();
    String readable = last == null ? "root" : last.toString().replaceAll("[^A-Za-z0-9._-]", "_");
    String hash = Hashing.sha256().hashString(identity, UTF_8).toString();
    return readable.substring(0, Math.min(64, readable.length())) + "-" + hash.substring(0, 16);
  }

  public static MountFailure failure(MountException e) {
    return switch (e.reason()) {
      case UNAVAILABLE -> new MountFailure(ExitStatus.CANNOT, String.valueOf(e.getMessage()), e);
      case BUSY -> new MountFailure(ExitStatus.FAILED, MountFailure.BUSY, e);
      case FAILED -> new MountFailure(ExitStatus.FAILED, String.valueOf(e.getMessage()), e);
    };
  }
}
