package io.pmfs.places;

import io.pmfs.fuse.system.PoolFile;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.tier.MappedMemory;
import io.pmfs.tier.PoolException;
import io.pmfs.tier.PoolTier;
import io.pmfs.tier.Tier;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import org.jspecify.annotations.Nullable;

/**
 * The place of a tier that is a pool: a dax device or a file, not a directory. An existing device
 * or file may have any name; pmfs creates a file only if its name ends in {@value #SUFFIX} and its
 * capacity is given in bytes.
 */
final class PoolPlace implements TierPlace {
  private static final String OTHER = "choose another --tier";

  static final String SUFFIX = ".pool";

  private static final int S_IFMT = 0170000;
  private static final int S_IFBLK = 0060000;
  private static final int S_IFCHR = 0020000;
  private static final int S_IFREG = 0100000;

  private final TierSpec tier;
  private final Path path;

  PoolPlace(TierSpec tier) {
    this.tier = tier;
    this.path = tier.path();
  }

  static boolean isAt(Path path) {
    return Files.exists(path) ? !Files.isDirectory(path) : path.toString().endsWith(SUFFIX);
  }

  @Override
  public void check(Capacity keepFree, @Nullable String user) throws MountFailure {
    check();
  }

  @Override
  public Examined examine(Capacity keepFree) throws MountFailure {
    check();
    return new Examined(true, path + ": a pool");
  }

  private void check() throws MountFailure {
    try {
      OwnPath.ofProcess().file(path);
    } catch (IOException e) {
      throw usage(Reason.of(e), OTHER);
    }
    if (!Files.exists(path)) {
      checkNew();
      return;
    }
    try {
      int type = (Integer) Files.getAttribute(path, "unix:mode") & S_IFMT;
      switch (type) {
        case S_IFCHR -> {}
        case S_IFREG -> {
          if (Files.size(path) == 0) {
            requireBytes();
          }
        }
        case S_IFBLK ->
            throw usage(
                "a block device",
                "mount a file system with dax on it and name a directory there, or make it a dax"
                    + " device: ndctl create-namespace --mode=devdax");
        default -> throw usage("neither a file, a dax device nor a directory", OTHER);
      }
    } catch (IOException e) {
      throw usage(Reason.of(e), OTHER);
    }
    if (!Files.isReadable(path) || !Files.isWritable(path)) {
      throw usage("permission denied", "ask root for read and write access: chown, chmod");
    }
  }

  private void checkNew() throws MountFailure {
    Path parent = path.getParent();
    if (parent == null || !Files.isDirectory(parent)) {
      throw usage("its directory does not exist", "create it: mkdir -p " + parent);
    }
    requireBytes();
  }

  private void requireBytes() throws MountFailure {
    if (tier.capacity().isPercent()) {
      throw usage(
          "the file of a pool needs a size",
          "add one, such as pm:%s:8G; to use a directory, create it first".formatted(path));
    }
  }

  private MountFailure usage(String why, String remedy) {
    return MountFailure.usage(path, tier.what(), why, remedy);
  }

  /** Creates the file if it is missing, and opens the pool. */
  @Override
  public Tier open(Opening opening) throws IOException, MountFailure {
    OwnPath.ofProcess().file(path);
    try {
      if (!Files.exists(path)) {
        PoolFile.create(path, tier.capacity().bytes());
      } else if (Files.isRegularFile(path) && Files.size(path) == 0) {
        PoolFile.resize(path, tier.capacity().bytes());
      }
      MappedMemory memory = PoolFile.open(path);
      return new PoolTier(
          new PoolTier.Settings(
              tier.name(),
              tier.kind().word(),
              path.toString(),
              opening.dataset(),
              tier.capacity().on(memory.size())),
          memory,
          opening.usage(),
          new SecureRandom());
    } catch (PoolException e) {
      throw new MountFailure(ExitStatus.FAILED, path + ": pool: " + e.getMessage(), e);
    }
  }

  /** Empties the whole pool, which holds only one dataset. */
  @Override
  public boolean purge(String dataset) throws IOException {
    if (Files.exists(path)) {
      wipe();
    }
    return true;
  }

  @Override
  public boolean format() throws MountFailure {
    if (!Files.exists(path)) {
      return true;
    }
    try {
      wipe();
      return true;
    } catch (PoolException e) {
      throw new MountFailure(ExitStatus.FAILED, path + ": pool: " + e.getMessage(), e);
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, path + ": pool: " + Reason.of(e), e);
    }
  }

  /** Makes the next open find an empty pool. */
  private void wipe() throws IOException {
    OwnPath.ofProcess().file(path);
    if (Files.isRegularFile(path) && Files.size(path) == 0) {
      return;
    }
    try (MappedMemory memory = PoolFile.open(path)) {
      memory.fill();
      PoolTier.wipe(memory);
    }
  }

  @Override
  public TierSpec apart(String name) throws MountFailure {
    throw new MountFailure(
        ExitStatus.FAILED,
        path
            + ": another mount uses this pool, and a pool serves one mount at a time; give this run"
            + " its own --tier");
  }
}
