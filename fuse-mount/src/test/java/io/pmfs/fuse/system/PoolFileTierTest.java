package io.pmfs.fuse.system;

import io.pmfs.tier.PoolTier;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierContract;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.io.TempDir;

/**
 * The contract of tiers with a pool that is a file, on the file system of the temporary directory.
 */
final class PoolFileTierTest extends TierContract {
  @TempDir private Path temporary;

  @Override
  protected Tier newTier(long capacityBytes) throws IOException {
    Path path = temporary.resolve("test.pool");
    Files.deleteIfExists(path);
    PoolFile.create(path, capacityBytes + capacityBytes / 64 + (8 << 20));
    return new PoolTier(
        new PoolTier.Settings("pm:test", "pm", path.toString(), "dataset", capacityBytes),
        PoolFile.open(path),
        Tier.Usage.NONE,
        new Random(1));
  }
}
