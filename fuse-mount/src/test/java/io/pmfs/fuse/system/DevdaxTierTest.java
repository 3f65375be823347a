package io.pmfs.fuse.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.tier.PersistentMemory;
import io.pmfs.tier.PoolTier;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierContract;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The contract of tiers with a pool that is a devdax device, which {@code PMEM_DEVICE} names. */
@Tag("fsdax")
final class DevdaxTierTest extends TierContract {
  @Override
  protected Tier newTier(long capacityBytes) throws IOException {
    Path device = PersistentMemory.device();
    try (PoolFile memory = PoolFile.open(device)) {
      PoolTier.wipe(memory);
    }
    return new PoolTier(
        new PoolTier.Settings("pm:test", "pm", device.toString(), "dataset", capacityBytes),
        PoolFile.open(device),
        Tier.Usage.NONE,
        new Random(1));
  }

  @Test
  void status_onADevice_isReal() throws Exception {
    try (Tier tier = newTier(16 << 20)) {
      assertThat(Objects.requireNonNull(tier.status().dax()).real()).isTrue();
    }
  }
}
