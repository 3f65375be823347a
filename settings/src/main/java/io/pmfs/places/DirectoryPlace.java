package io.pmfs.places;

import io.pmfs.fuse.system.LinuxDaxFiles;
import io.pmfs.machine.ByteSize;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.tier.DaxFiles;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierSettings;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The place of a tier that is a directory, with a subdirectory for each dataset. */
final class DirectoryPlace implements TierPlace {
  /** The space that the state of a few million files needs, with its log and merges. */
  private static final long STATE_BYTES = 256L << 20;

  /** The state gets at most one part in this many of a small disk. */
  private static final long STATE_SHARE = 20;

  private final TierSpec tier;
  private final OwnDirectory directory;

  /** Maps files on persistent memory; null for a tier on a disk. */
  private final @Nullable DaxFiles daxFiles;

  private DirectoryPlace(TierSpec tier, @Nullable DaxFiles daxFiles) {
    this.tier = tier;
    this.directory = new OwnDirectory(tier.path(), tier.what());
    this.daxFiles = daxFiles;
  }

  static DirectoryPlace onDisk(TierSpec tier) {
    return new DirectoryPlace(tier, null);
  }

  static DirectoryPlace onPersistentMemory(TierSpec tier) {
    return new DirectoryPlace(tier, new LinuxDaxFiles());
  }

  @Override
  public Path directory() {
    return tier.path();
  }

  @Override
  public void check(Capacity keepFree, @Nullable String user) throws MountFailure {
    Path path = tier.path();
    if (Files.exists(path) && !Files.isDirectory(path)) {
      throw MountFailure.usage(
          path,
          tier.what(),
          "not a directory",
          "name a directory, or use the file as a pool: pm:" + path);
    }
    directory.make("choose another --tier", user);
    try {
      checkRoom(keepFree);
    } catch (IOException e) {
      throw MountFailure.usage(path, tier.what(), Reason.of(e), "choose another --tier");
    }
  }

  private void checkRoom(Capacity keepFree) throws IOException, MountFailure {
    FileStore disk = Files.getFileStore(tier.path());
    long keep = keepFree.on(disk.getTotalSpace());
    long free = disk.getUsableSpace();
    // The disk may be full of our own copies, which can still be read.
    if (free <= keep && isEmpty(tier.path())) {
      throw MountFailure.usage(
          tier.path(),
          tier.what(),
          "no room for copies: %s of %s is free, and --keep-free %s reserves %s"
              .formatted(
                  ByteSize.format(free),
                  ByteSize.format(disk.getTotalSpace()),
                  keepFree,
                  ByteSize.format(keep)),
          "lower --keep-free or choose another --tier");
    }
  }

  private static boolean isEmpty(Path directory) throws IOException {
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(directory)) {
      return !entries.iterator().hasNext();
    }
  }

  @Override
  public Examined examine(Capacity keepFree) throws MountFailure {
    return directory.examine(keepFree);
  }

  @Override
  public Tier open(Opening opening) throws IOException {
    Path copies = copies(opening.dataset()).make();
    FileStore disk = Files.getFileStore(tier.path());
    long diskBytes = disk.getTotalSpace();
    TierSettings settings =
        new TierSettings(
            tier.name(),
            tier.kind().word(),
            copies,
            tier.capacity().on(diskBytes),
            Math.max(
                opening.keepFree().on(diskBytes), roomOfState(opening.state(), disk, diskBytes)));
    DirectoryTier opened = new DirectoryTier(settings, opening.usage(), daxFiles);
    try {
      copies(opening.dataset()).label(opening.source().toString());
    } catch (IOException e) {
      opened.failed(e); // as its next copy would
    }
    return opened;
  }

  /** The room to leave for the state if it is on the same disk. */
  private static long roomOfState(@Nullable Path state, FileStore disk, long diskBytes) {
    try {
      boolean isThere =
          state != null && Files.getFileStore(DefaultTier.nearestExisting(state)).equals(disk);
      return isThere ? Math.min(STATE_BYTES, diskBytes / STATE_SHARE) : 0;
    } catch (IOException e) {
      return 0;
    }
  }

  private DatasetDirectory copies(String dataset) {
    return new DatasetDirectory(tier.path().resolve(dataset), DirectoryTier.LOCK);
  }

  @Override
  public List<StoredDataset> stored() throws IOException {
    List<StoredDataset> stored = new ArrayList<>();
    for (DatasetDirectory directory : DatasetDirectory.below(tier.path(), DirectoryTier.LOCK)) {
      stored.add(directory.stored(tier.kind().word()));
    }
    return stored;
  }

  @Override
  public boolean purge(String dataset) throws IOException {
    return copies(dataset).purge();
  }

  @Override
  public TierSpec apart(String name) {
    return tier.at(tier.path().resolve(name));
  }
}
