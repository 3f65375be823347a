package io.pmfs.daemon.outputs;

import io.pmfs.contents.OutputDirectories;
import io.pmfs.daemon.dataset.DatasetSource;
import io.pmfs.daemon.dataset.DatasetWiring;
import io.pmfs.daemon.dataset.KernelSession;
import io.pmfs.daemon.dataset.Opened;
import io.pmfs.daemon.dataset.TransientCopies;
import io.pmfs.daemon.process.Readiness;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.fuse.Bridge;
import io.pmfs.fuse.KernelBridge;
import io.pmfs.fuse.mounting.MountSpec;
import io.pmfs.fuse.system.LinuxOutputCalls;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.places.SourceIdentity;
import io.pmfs.places.Surroundings;
import io.pmfs.posix.FsException;
import io.pmfs.settings.ClusterOptions;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.OutputSettings;
import io.pmfs.settings.SessionSettings;
import io.pmfs.settings.SourceSettings;
import io.pmfs.shards.ShardException;
import io.pmfs.writable.Place;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableSettings;
import io.pmfs.writable.mount.WritableMount;
import io.pmfs.writable.remote.NodeFiles;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Calls the constructors of the parts of a writable mount. */
public final class OutputWiring {
  /** How long the kernel caches names and attributes, because others may change the source. */
  private static final Duration KERNEL_TIMEOUT = Duration.ofSeconds(1);

  /** Workers at start; each has 2 MiB of direct memory (docs/decisions/0036). */
  private static final int WORKERS = 32;

  /**
   * Workers at most, added while others block. Their memory, at most 256 MiB, is what a read-only
   * mount gives its tasks.
   */
  private static final int MOST_WORKERS = 128;

  /** The memory of RocksDB for the journal of a writable mount. */
  private static final long OUTPUT_STATE_BYTES = 32L << 20;

  private final Surroundings surroundings;
  private final @Nullable Supervision supervision;
  private final long kernelFlags;

  public OutputWiring(
      Surroundings surroundings, @Nullable Supervision supervision, long kernelFlags) {
    this.surroundings = surroundings;
    this.supervision = supervision;
    this.kernelFlags = kernelFlags;
  }

  /** Opens the mount; its parts belong to {@code opened}. */
  public ServedOutputs open(
      MountSettings settings, OutputSettings outputs, SessionSettings session, Opened opened)
      throws MountFailure, FsException, ShardException {
    boolean isResumed = supervision != null && supervision.isResumed();
    Readiness readiness = new Readiness(settings.bridge().readyTimeout());
    DatasetSource source = opened.add(openSource(settings, session.source()));
    OutputDirectories directories =
        opened.add(OutputDirectories.open(settings, nameOf(settings), surroundings, isResumed));
    requireSameSource(settings, source, directories);
    SessionSettings kept = session.of(source.sourceIdentity());
    ClusterOptions options = settings.cluster();
    OutputNode node =
        options == null
            ? null
            : OutputNode.of(options, nameOf(settings), directories, surroundings, isResumed);
    WritableFileSystem fileSystem;
    if (node == null || node.isOwner()) {
      WritableMount mount =
          opened.add(fileSystem(settings.source().path(), directories, kept, outputs, isResumed));
      fileSystem = mount;
      if (node != null) {
        opened.add(node);
        node.answer(mount, readiness);
      }
    } else {
      opened.add(node);
      fileSystem =
          opened.add(
              node.join(
                  kept.id(), isResumed, settings.source().path(), places(directories), readiness));
    }
    begin(directories, kept);
    Bridge bridge =
        KernelBridge.ofWritable(
            fileSystem,
            new MountSpec(
                settings.mountpoint(),
                settings.source().path().toString(),
                settings.bridge().allowOther(),
                true,
                surroundings.forbidsExecution(),
                node == null ? KERNEL_TIMEOUT : Duration.ZERO),
            WORKERS,
            MOST_WORKERS,
            supervision == null ? null : supervision.session(),
            kernelFlags);
    KernelSession kernel =
        KernelSession.open(
            settings, bridge, "the only one for writable mounts", isResumed, inode -> null, opened);
    opened.release(directories); // closed last, after its marks are cleared
    ServedOutputs served =
        new ServedOutputs(
            kernel,
            source,
            directories,
            node == null ? null : node.cluster(),
            fileSystem,
            readiness,
            opened);
    if (surroundings.variable(TransientCopies.VARIABLE) != null) {
      served.purge();
    }
    return served;
  }

  /**
   * The parts of an ended mount's changes.
   *
   * @param opened parts to close before the directories
   */
  public record LeftParts(
      OutputDirectories directories, WritableFileSystem outputs, Opened opened) {}

  /** Opens the changes that an ended mount left; the parts belong to {@code opened}. */
  public LeftParts openLeft(
      MountSettings settings, OutputSettings outputs, SessionSettings session, Opened opened)
      throws MountFailure, FsException, ShardException {
    DatasetSource source = opened.add(openSource(settings, null));
    OutputDirectories directories =
        opened.add(OutputDirectories.open(settings, nameOf(settings), surroundings, false));
    requireSameSource(settings, source, directories);
    WritableFileSystem fileSystem =
        opened.add(fileSystem(settings.source().path(), directories, session, outputs, false));
    opened.release(directories);
    return new LeftParts(directories, fileSystem, opened);
  }

  /**
   * Opens the mount with the pending changes of the last one.
   *
   * @param isResumed whether the kernel's session continues, and it may repeat requests
   */
  private WritableMount fileSystem(
      Path source,
      OutputDirectories directories,
      SessionSettings session,
      OutputSettings settings,
      boolean isResumed)
      throws FsException, MountFailure {
    Path left = NodeFiles.left(places(directories), "");
    if (left != null) {
      throw new MountFailure(ExitStatus.USAGE, NodeFiles.leftReason(left));
    }
    return WritableMount.open(
        new WritableSettings(
            source,
            directories.state(),
            places(directories),
            session.id(),
            isResumed,
            settings.drainBytesPerSecond(),
            settings.syncsAtSource(),
            surroundings.hostName(),
            OUTPUT_STATE_BYTES,
            WritableSettings.COPIERS,
            WritableSettings.PIECE_MILLIS,
            WritableSettings.FRESH_MILLIS,
            WritableSettings.KEPT_NAMES,
            WritableSettings.MOMENT_MILLIS,
            settings.sourcePatience().toMillis()),
        new LinuxOutputCalls());
  }

  private static List<Place> places(OutputDirectories directories) {
    return directories.places().stream()
        .map(
            place ->
                new Place(
                    place.name(), place.directory(), place.capacityBytes(), place.keepFreeBytes()))
        .toList();
  }

  private static DatasetSource openSource(MountSettings settings, @Nullable SourceIdentity began)
      throws FsException, ShardException {
    SourceSettings asDirectory =
        new SourceSettings(
            settings.source().path(),
            "directory",
            false,
            settings.source().metadataThreads(),
            null);
    return began == null
        ? DatasetSource.open(asDirectory)
        : DatasetSource.reopen(asDirectory, began);
  }

  /**
   * Distinguishes the directories of a writable mount from those of a read-only mount of the same
   * source.
   */
  static String nameOf(MountSettings settings) {
    Path source = settings.source().path();
    return DatasetWiring.datasetName(source, source + "//writable");
  }

  /** Pending changes must not be written into another directory, such as an empty mount point. */
  private static void requireSameSource(
      MountSettings settings, DatasetSource source, OutputDirectories directories)
      throws MountFailure {
    SessionSettings earlier = directories.isUnsaved() ? directories.earlier() : null;
    SourceIdentity before = earlier == null ? null : earlier.source();
    if (before != null && !before.root().equals(source.sourceIdentity().root())) {
      throw new MountFailure(
          ExitStatus.USAGE,
          "%s: source: not the directory that was mounted (%s instead of %s), and %s still holds files for that one; check that its file system is mounted"
              .formatted(
                  settings.source().path(),
                  source.sourceIdentity().root(),
                  before.root(),
                  directories.state()));
    }
  }

  private static void begin(OutputDirectories directories, SessionSettings session)
      throws MountFailure {
    try {
      directories.begin(session);
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.FAILED, directories.state() + ": state: " + Reason.of(e), e);
    }
  }
}
