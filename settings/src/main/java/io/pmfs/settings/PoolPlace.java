package io.pmfs.settings;

import io.pmfs.fuse.PoolFile;
import io.pmfs.tier.MappedMemory;
import io.pmfs.tier.PoolException;
import io.pmfs.tier.PoolTier;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The place of a tier that is a pool: a dax device or a file, not a directory. What is there is
 * what it is, whatever its name; a file is made only if its name ends in {@value #SUFFIX} and its
 * capacity is given in bytes.
 */
public final class PoolPlace {
  static final String SUFFIX = ".pool";

  private static final int S_IFMT = 0170000;
  private static final int S_IFBLK = 0060000;
  private static final int S_IFCHR = 0020000;
  private static final int S_IFREG = 0100000;

  private PoolPlace() {}

  public static boolean isPool(TierSpec tier) {
    return tier.kind().equals("pm")
        && (Files.exists(tier.path())
            ? !Files.isDirectory(tier.path())
            : tier.path().toString().endsWith(SUFFIX));
  }

  /** Throws a line with a remedy if it can be none. */
  public static void check(TierSpec tier) throws MountFailure {
    Path path = tier.path();
    if (!Files.exists(path)) {
      checkNew(tier);
      return;
    }
    try {
      int type = (Integer) Files.getAttribute(path, "unix:mode") & S_IFMT;
      switch (type) {
        case S_IFCHR -> {}
        case S_IFREG -> {
          if (Files.size(path) == 0) {
            requireBytes(tier);
          }
        }
        case S_IFBLK ->
            throw usage(
                path,
                "a block device",
                "mount a file system with dax on it and name a directory there, or make it a dax"
                    + " device: ndctl create-namespace --mode=devdax");
        default -> throw usage(path, "neither a file, a dax device nor a directory", OTHER);
      }
    } catch (IOException e) {
      throw usage(path, Reason.of(e), OTHER);
    }
    if (!Files.isReadable(path) || !Files.isWritable(path)) {
      throw usage(path, "permission denied", "have root give it to you: chown, chmod");
    }
  }

  private static final String OTHER = "choose another --tier";

  private static void checkNew(TierSpec tier) throws MountFailure {
    Path parent = tier.path().getParent();
    if (parent == null || !Files.isDirectory(parent)) {
      throw usage(tier.path(), "there is no directory for it", "create it: mkdir -p " + parent);
    }
    requireBytes(tier);
  }

  private static void requireBytes(TierSpec tier) throws MountFailure {
    if (tier.capacity().isPercent()) {
      throw usage(
          tier.path(),
          "a file for a pool needs a size",
          "give it one, such as pm:%s:8G; for a directory make that first".formatted(tier.path()));
    }
  }

  private static MountFailure usage(Path path, String why, String remedy) {
    return MountFailure.usage(path + ": tier pm: " + why + "; " + remedy);
  }

  /** Opens its memory, having made the file if there is none. */
  public static MappedMemory open(TierSpec tier) throws IOException {
    Path path = tier.path();
    if (!Files.exists(path)) {
      PoolFile.create(path, tier.capacity().bytes());
    } else if (Files.isRegularFile(path) && Files.size(path) == 0) {
      PoolFile.resize(path, tier.capacity().bytes());
    }
    return PoolFile.open(path);
  }

  /** Has all pools of a mount be empty ones, whatever is in them. */
  public static void format(List<TierSpec> tiers) throws MountFailure {
    if (tiers.stream().noneMatch(PoolPlace::isPool)) {
      throw MountFailure.usage(
          "--format: no --tier is a dax device or a file, so there is no pool; leave it out");
    }
    for (TierSpec tier : tiers) {
      if (isPool(tier) && Files.exists(tier.path())) {
        try {
          wipe(tier.path());
        } catch (PoolException e) {
          throw new MountFailure(ExitStatus.FAILED, tier.path() + ": pool: " + e.getMessage(), e);
        } catch (IOException e) {
          throw new MountFailure(ExitStatus.FAILED, tier.path() + ": pool: " + Reason.of(e), e);
        }
      }
    }
  }

  /** Has a device or file be taken for an empty pool. */
  public static void wipe(Path path) throws IOException {
    if (Files.isRegularFile(path) && Files.size(path) == 0) {
      return;
    }
    try (MappedMemory memory = PoolFile.open(path)) {
      memory.fill();
      PoolTier.wipe(memory);
    }
  }
}
