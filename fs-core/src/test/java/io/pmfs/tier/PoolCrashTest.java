package io.pmfs.tier;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.Extent;
import io.pmfs.posix.Requested;
import io.pmfs.source.FakeStore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;

/** Random operations on a pool, during any of which the power fails. */
final class PoolCrashTest {
  private static final int SIZE = 4 << 20;
  private static final int BUNDLE = 64 << 10;

  /** The recorded extents, and the content of each copy. */
  private final Map<Extent, Long> recorded = new HashMap<>();

  private FakeMemory memory = new FakeMemory(SIZE);
  private long contents;

  private PoolTier open(Tier.@Nullable Usage usage, Random random) throws IOException {
    return new PoolTier(
        new PoolTier.Settings("pm:test", "pm", "/test", "dataset", Long.MAX_VALUE),
        memory,
        usage,
        random);
  }

  @RepeatedTest(5)
  void operations_atRandomWithPowerCuts_loseNothingThatWasRecorded(RepetitionInfo repetition)
      throws Exception {
    Requested.assume("large", repetition.getCurrentRepetition() <= 2, "more random operations");
    long seed = new Random().nextLong();
    Random random = new Random(seed);
    PoolTier tier = open(Tier.Usage.NONE, random);
    for (int session = 0; session < 60; session++) {
      Cut cut = random.nextInt(3) == 0 ? null : new Cut(1 + random.nextInt(200), random);
      for (int steps = random.nextInt(200); steps > 0; steps--) {
        step(tier, random, cut != null);
      }
      try {
        tier = cut == null ? restart(tier, random) : crash(cut, random);
        check(tier);
      } catch (AssertionError | RuntimeException e) {
        throw new AssertionError("seed " + seed + ", session " + session, e);
      }
    }
    for (Extent extent : List.copyOf(recorded.keySet())) {
      tier.remove(1, extent, extent.size());
    }
    assertThat(tier.status().usedBytes()).as("seed %d", seed).isZero();
    assertThat(tier.status().copies()).isZero();
    long stored = 0;
    while (put(tier, BUNDLE / 2, false) != null) {
      stored += BUNDLE / 2;
    }
    assertThat(stored)
        .as("seed %d: what can be stored", seed)
        .isGreaterThan(tier.status().capacityBytes() - BUNDLE);
    tier.close();
  }

  private void step(PoolTier tier, Random random, boolean crashes) throws IOException {
    switch (random.nextInt(6)) {
      case 0, 1, 2 ->
          put(tier, 1 + random.nextInt(1 << (4 + random.nextInt(14))), random.nextInt(3) > 0);
      case 3 -> {
        if (!recorded.isEmpty()) {
          Extent extent = any(random);
          // Like an eviction: the record may be removed before or after the copy.
          recorded.remove(extent);
          tier.remove(1, extent, extent.size());
        }
      }
      case 4 -> {
        CopyWriter writer = tier.create(1, 10_000);
        if (writer != null) {
          writer.write(0, ByteBuffer.wrap(FakeStore.content(-1, 0, random.nextInt(10_000))));
          if (crashes && random.nextBoolean()) {
            // Committed, but not recorded before the process ends.
            unrecorded(tier, writer);
          }
          writer.close();
        }
      }
      default -> compact(tier);
    }
  }

  private static void unrecorded(PoolTier tier, CopyWriter writer) throws IOException {
    Extent extent = Objects.requireNonNull(writer.commit());
    if (tier.status().copies() % 2 == 0) {
      tier.remove(1, extent, extent.size());
    }
  }

  private Extent any(Random random) {
    return new ArrayList<>(recorded.keySet()).get(random.nextInt(recorded.size()));
  }

  private @Nullable Extent put(PoolTier tier, int size, boolean append) throws IOException {
    CopyWriter writer = tier.create(1, size);
    if (writer == null) {
      return null;
    }
    long content = contents++;
    ByteBuffer bytes = ByteBuffer.wrap(FakeStore.content(content, 0, size));
    if (append) {
      writer.append(bytes);
    } else {
      writer.write(0, bytes);
    }
    Extent extent = Objects.requireNonNull(writer.commit());
    assertThat(recorded.put(extent, content)).as("an extent that was there").isNull();
    writer.close();
    return extent;
  }

  private void compact(PoolTier tier) {
    for (long bundle : tier.sparseBundles()) {
      for (Extent from : List.copyOf(recorded.keySet())) {
        Extent to =
            from.bundle() == bundle ? tier.move(from, ByteBuffer.allocateDirect(1 << 20)) : null;
        if (to != null) {
          recorded.put(to, Objects.requireNonNull(recorded.remove(from)));
          tier.remove(1, from, from.size());
        }
      }
    }
  }

  private PoolTier restart(PoolTier tier, Random random) throws IOException {
    Tier.Usage usage = Objects.requireNonNull(tier.usage());
    tier.close();
    memory = memory.again();
    // Copies that were committed and not recorded stay until the records are compared.
    PoolTier next = open(usage, random);
    Recount.of(next, number -> false, recorded.keySet());
    return next;
  }

  /** The power fails during an operation; the records at that moment count. */
  private final class Cut {
    @Nullable FakeMemory left;
    Map<Extent, Long> known = Map.of();

    Cut(int persists, Random random) {
      FakeMemory now = memory;
      now.cutAtPersist(
          persists,
          () -> {
            left = now.afterPowerCut(random);
            known = Map.copyOf(recorded);
          });
    }
  }

  private PoolTier crash(Cut cut, Random random) throws IOException {
    if (cut.left != null) {
      memory = cut.left;
      recorded.clear();
      recorded.putAll(cut.known);
    } else {
      // Only the process is killed, or the power fails between two operations.
      memory = random.nextBoolean() ? memory.again() : memory.afterPowerCut(random);
    }
    PoolTier next = open(null, random);
    if (next.status().state() == TierStatus.State.RECOVERING) {
      Recount.of(next, number -> false, recorded.keySet());
    }
    return next;
  }

  /** Every record has a copy with the right bytes, and no two copies overlap. */
  private void check(PoolTier tier) throws IOException {
    for (Map.Entry<Extent, Long> copy : recorded.entrySet()) {
      Extent extent = copy.getKey();
      try (CopyReader reader = tier.open(1, extent)) {
        assertThat(reader).as("%s", extent).isNotNull();
        ByteBuffer bytes = ByteBuffer.allocate((int) extent.size());
        Objects.requireNonNull(reader).read(0, bytes.capacity()).copyTo(bytes);
        assertThat(bytes.array())
            .as("%s", extent)
            .isEqualTo(FakeStore.content(copy.getValue(), 0, (int) extent.size()));
      }
    }
    // A copy that was being moved when the power failed may be in the spare bundle.
    assertThat(tier.status().usedBytes())
        .isLessThanOrEqualTo(tier.status().capacityBytes() + BUNDLE);
  }
}
