package io.pmfs.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.memory.ReadResult;
import io.pmfs.metadata.Extent;
import io.pmfs.posix.Requested;
import io.pmfs.source.FakeStore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

final class PoolTierTest extends TierContract {
  private static final int MIB = 1 << 20;

  /** Odd: the short run meets each byte, in some of its bits, and not always in the same ones. */
  private static final int BIT_STEP = Requested.count("large", 1, 3);

  /** 6 MiB of this are data; a bundle has 64 KiB. */
  private static final int SIZE = 8 * MIB;

  private static final int BUNDLE = 64 << 10;

  private FakeMemory memory = new FakeMemory(SIZE);

  @Override
  protected PoolTier newTier(long capacityBytes) throws IOException {
    memory = new FakeMemory(Math.toIntExact(capacityBytes + capacityBytes / 64 + 8 * MIB));
    return open(memory, "dataset", capacityBytes, null);
  }

  private static PoolTier open(
      FakeMemory memory, String dataset, long capacityBytes, Tier.@Nullable Usage usage)
      throws IOException {
    return new PoolTier(
        new PoolTier.Settings("pm:test", "pm", "/test", dataset, capacityBytes),
        memory,
        usage,
        new Random(1));
  }

  private PoolTier open(Tier.@Nullable Usage usage) throws IOException {
    return open(memory, "dataset", Long.MAX_VALUE, usage);
  }

  /** Reopens the pool like a new session. */
  private PoolTier reopen(PoolTier tier, Tier.@Nullable Usage usage) throws IOException {
    tier.close();
    memory = memory.again();
    return open(usage);
  }

  private static Extent store(Tier tier, byte[] content, boolean append) throws IOException {
    CopyWriter writer = create(tier, 1, content.length);
    try {
      if (append) {
        writer.append(ByteBuffer.wrap(content));
      } else {
        writer.write(0, ByteBuffer.wrap(content));
      }
      return Objects.requireNonNull(writer.commit());
    } finally {
      writer.close();
    }
  }

  private static byte @Nullable [] read(Tier tier, Extent extent) throws IOException {
    try (CopyReader reader = tier.open(1, extent)) {
      if (reader == null) {
        return null;
      }
      ByteBuffer bytes = ByteBuffer.allocate(Math.toIntExact(reader.size()));
      reader.read(0, bytes.capacity()).copyTo(bytes);
      return bytes.array();
    }
  }

  @Test
  void read_anyCopy_isTheMemoryItself() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    for (boolean append : new boolean[] {true, false}) {
      Extent extent = store(tier, content(1, 5000), append);
      try (CopyReader reader = Objects.requireNonNull(tier.open(1, extent))) {
        ReadResult range = reader.read(100, 200);
        assertThat(range).isInstanceOf(ReadResult.Mapping.class);
        ByteBuffer got = ByteBuffer.allocate(200);
        range.copyTo(got);
        assertThat(got.array()).isEqualTo(FakeStore.content(1, 100, 200));
      }
    }
    assertThat(tier.file(1)).isNull();
    tier.close();
  }

  @Test
  void append_smallCopies_shareABundle() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    Extent first = store(tier, content(1, 100), true);
    Extent second = store(tier, content(2, 5000), true);

    assertThat(second).isEqualTo(new Extent(first.bundle(), 100, 5000));
    assertThat(tier.status().usedBytes()).isEqualTo(BUNDLE);
    assertThat(tier.status().copies()).isEqualTo(2);
    assertThat(read(tier, first)).isEqualTo(content(1, 100));
    assertThat(read(tier, second)).isEqualTo(content(2, 5000));
    tier.remove(1, first, first.size());
    tier.remove(1, second, second.size());
    assertThat(tier.status().usedBytes()).isZero();
    assertThat(tier.status().copies()).isZero();
    assertThat(read(tier, second)).isNull();
    tier.close();
  }

  @Test
  void append_copyThatDoesNotFitTheRest_beginsAnotherBundle() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    Extent first = store(tier, content(1, BUNDLE - 10), true);
    Extent second = store(tier, content(2, 11), true);
    Extent whole = store(tier, content(3, BUNDLE), true);
    Extent larger = store(tier, content(4, BUNDLE + 1), true);

    assertThat(List.of(first, second, whole, larger).stream().map(Extent::bundle).distinct())
        .hasSize(4);
    assertThat(tier.status().usedBytes()).isEqualTo(3 * BUNDLE + Room.charge(BUNDLE + 1));
    assertThat(read(tier, larger)).isEqualTo(content(4, BUNDLE + 1));
    assertThat(read(tier, whole)).isEqualTo(content(3, BUNDLE));
    tier.close();
  }

  @Test
  void append_noRoomForABundle_isAlone() throws Exception {
    PoolTier tier = newTier(8192);
    Extent extent = store(tier, content(1, 5000), true);

    assertThat(tier.status().usedBytes()).isEqualTo(8192);
    assertThat(read(tier, extent)).isEqualTo(content(1, 5000));
    tier.remove(1, extent, extent.size());
    assertThat(tier.status().usedBytes()).isZero();
    tier.close();
  }

  @Test
  void remove_readerOpen_memoryIsNotUsedAgainBeforeItLeaves() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    int capacity = (int) tier.status().capacityBytes();
    Extent all = store(tier, content(1, capacity), false);
    CopyReader reader = Objects.requireNonNull(tier.open(1, all));
    tier.remove(1, all, all.size());

    assertThat(tier.open(1, all)).isNull();
    assertThat(tier.status().usedBytes()).isZero();
    assertThat(tier.create(2, capacity)).as("memory that is read").isNull();
    ByteBuffer got = ByteBuffer.allocate(capacity);
    reader.read(0, capacity).copyTo(got);
    assertThat(got.array()).isEqualTo(content(1, capacity));
    reader.close();
    reader.close();

    Extent next = store(tier, content(2, capacity), false);
    assertThat(next.bundle()).isNotEqualTo(all.bundle());
    assertThat(read(tier, all)).isNull();
    assertThat(read(tier, next)).isEqualTo(content(2, capacity));
    tier.close();
  }

  @Test
  void remove_whileItsWriterIsRead_memoryIsNotUsedAgainBeforeItCloses() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    int capacity = (int) tier.status().capacityBytes();
    CopyWriter writer = create(tier, 1, capacity);
    writer.write(0, ByteBuffer.wrap(content(1, capacity)));
    Extent extent = Objects.requireNonNull(writer.commit());
    tier.remove(1, extent, extent.size());

    assertThat(tier.create(2, 1)).isNull();
    ByteBuffer got = ByteBuffer.allocate(10);
    writer.read(capacity - 10, 10).copyTo(got);
    assertThat(got.array()).isEqualTo(FakeStore.content(1, capacity - 10, 10));
    writer.close();
    assertThat(store(tier, content(2, capacity), false).size()).isEqualTo(capacity);
    tier.close();
  }

  @Test
  void close_readersOpen_unmapsWhenTheLastHasLeft() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    Extent alone = store(tier, content(1, 100_000), false);
    Extent bundled = store(tier, content(2, 100), true);
    CopyReader first = Objects.requireNonNull(tier.open(1, alone));
    CopyReader second = Objects.requireNonNull(tier.open(1, bundled));
    tier.close();
    tier.close();

    assertThat(tier.open(1, alone)).isNull();
    assertThat(tier.open(1, bundled)).isNull();
    assertThat(memory.isClosed()).isFalse();
    ByteBuffer got = ByteBuffer.allocate(100);
    second.read(0, 100).copyTo(got);
    assertThat(got.array()).isEqualTo(content(2, 100));
    first.close();
    assertThat(memory.isClosed()).isFalse();
    second.close();
    assertThat(memory.isClosed()).isTrue();
  }

  @Test
  void reopen_afterCleanStop_keepsCopiesAndCounts() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    Extent alone = store(tier, content(1, 100_000), false);
    Extent bundled = store(tier, content(2, 100), true);
    Extent removed = store(tier, content(3, 100_000), false);
    tier.remove(1, removed, removed.size());
    TierStatus before = tier.status();
    Tier.Usage usage = Objects.requireNonNull(tier.usage());

    tier = reopen(tier, usage);
    assertThat(tier.status()).isEqualTo(before);
    assertThat(read(tier, alone)).isEqualTo(content(1, 100_000));
    assertThat(read(tier, bundled)).isEqualTo(content(2, 100));
    assertThat(read(tier, removed)).isNull();
    Extent next = store(tier, content(4, 100), true);
    assertThat(next.bundle())
        .as("nothing says where the old one ends")
        .isNotEqualTo(bundled.bundle());
    assertThat(read(tier, bundled)).isEqualTo(content(2, 100));
    tier.close();
  }

  @Test
  void reopen_whateverWasCounted_roomIsWhatTheTableSays() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    Extent alone = store(tier, content(1, 100_000), false);
    Extent bundled = store(tier, content(2, 100), true);
    TierStatus before = tier.status();
    for (Tier.Usage kept : List.of(new Tier.Usage(4096, 9), Tier.Usage.NONE)) {
      tier = reopen(tier, kept);
      assertThat(tier.status().state()).isEqualTo(TierStatus.State.ON);
      assertThat(tier.status().usedBytes()).isEqualTo(before.usedBytes());
      Recount.of(tier, alone, bundled);
      assertThat(tier.status()).isEqualTo(before);
    }
    tier.close();
  }

  @Test
  void recover_afterUncleanStop_freesWhatNoRecordNames() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    Extent alone = store(tier, content(1, 100_000), false);
    Extent lost = store(tier, content(2, 200_000), false);
    Extent bundled = store(tier, content(3, BUNDLE), true);
    Extent lostBundle = store(tier, content(4, BUNDLE), true);
    Extent gone = store(tier, content(5, 100_000), false);
    tier.remove(1, gone, gone.size());

    tier = reopen(tier, null);
    assertThat(tier.status().state()).isEqualTo(TierStatus.State.RECOVERING);
    assertThat(read(tier, alone)).isEqualTo(content(1, 100_000));
    assertThat(tier.create(1, 1)).isNull();
    assertThat(tier.usage()).isNull();
    Recount.of(tier, alone, bundled, gone, new Extent(77, 0, 10));

    assertThat(tier.status().state()).isEqualTo(TierStatus.State.ON);
    assertThat(tier.status().copies()).isEqualTo(2);
    assertThat(tier.status().usedBytes()).isEqualTo(Room.charge(100_000) + BUNDLE);
    assertThat(read(tier, lost)).isNull();
    assertThat(read(tier, lostBundle)).isNull();
    assertThat(read(tier, bundled)).isEqualTo(content(3, BUNDLE));
    tier.remove(1, alone, alone.size());
    tier.remove(1, bundled, bundled.size());
    int capacity = (int) tier.status().capacityBytes();
    assertThat(read(tier, store(tier, content(6, capacity), false))).hasSize(capacity);
    tier.close();
  }

  @Test
  void take_copiesComeAndGoMeanwhile_countsWhatIsLeft() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    Extent alone = store(tier, content(1, 100_000), false);
    Extent bundled = store(tier, content(2, 100), true);
    PoolTier found = reopen(tier, new Tier.Usage(0, 2));
    Tier.Census census = found.census();
    census.add(alone, alone.size());
    census.add(bundled, bundled.size());
    found.remove(1, alone, alone.size());
    census.subtract(alone, alone.size());
    Extent next = store(found, content(3, 200_000), false);
    census.add(next, next.size());
    census.take();

    assertThat(found.status().copies()).isEqualTo(2);
    assertThat(found.status().usedBytes()).isEqualTo(BUNDLE + Room.charge(200_000));
    assertThat(read(found, next)).isEqualTo(content(3, 200_000));
    found.close();
  }

  @Test
  void has_entryErased_isFalse() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    Extent alone = store(tier, content(1, 100_000), false);
    Extent bundled = store(tier, content(2, 100), true);
    assertThat(tier.has(1, alone, alone.size())).isTrue();
    assertThat(tier.has(1, bundled, bundled.size())).isTrue();
    assertThat(tier.has(1, new Extent(bundled.bundle(), 0, BUNDLE + 1), 1)).isFalse();
    assertThat(tier.has(1, new Extent(alone.bundle(), 0, 99_999), 1)).isFalse();
    memory.slice(64 << 10, 256 * 64).put(new byte[256 * 64]);

    assertThat(tier.has(1, alone, alone.size())).isFalse();
    assertThat(tier.has(1, bundled, bundled.size())).isFalse();
    assertThat(tier.hasFailed()).isFalse();
    tier.close();
  }

  @Test
  void has_formattedByAnotherProgram_failsThePool() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    Extent alone = store(tier, content(1, 100_000), false);
    PoolTier.wipe(memory);

    assertThatThrownBy(() -> tier.has(1, alone, alone.size()))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("no longer holds this pool");
    assertThat(tier.hasFailed()).isTrue();
    assertThat(tier.create(1, 10)).isNull();
    tier.close();
  }

  @Test
  void sparseBundles_fullPool_canBeMovedAndMakeRoom() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    List<Extent> extents = new ArrayList<>();
    for (CopyWriter writer = tier.create(1, 8192); writer != null; writer = tier.create(1, 8192)) {
      writer.append(ByteBuffer.wrap(content(extents.size(), 8192)));
      extents.add(Objects.requireNonNull(writer.commit()));
      writer.close();
    }
    assertThat(extents).hasSizeGreaterThan(500);
    // One copy in eight is left of the first 40 bundles.
    for (int i = 0; i < 320; i++) {
      if (i % 8 != 0) {
        tier.remove(1, extents.get(i), extents.get(i).size());
      }
    }
    assertThat(tier.create(1, 100_000)).isNull();
    int moved = 0;
    while (!tier.sparseBundles().isEmpty()) {
      var sparse = tier.sparseBundles();
      for (int i = 0; i < extents.size(); i++) {
        Extent from = extents.get(i);
        if (sparse.contains(from.bundle()) && read(tier, from) != null) {
          Extent to = Objects.requireNonNull(tier.move(from, ByteBuffer.allocateDirect(1 << 20)));
          tier.remove(1, from, from.size());
          extents.set(i, to);
          moved++;
        }
      }
    }

    assertThat(moved).isEqualTo(40);
    for (int i = 0; i < extents.size(); i++) {
      byte[] got = read(tier, extents.get(i));
      assertThat(got).isEqualTo(i < 320 && i % 8 != 0 ? null : content(i, 8192));
    }
    assertThat(tier.status().usedBytes()).isLessThanOrEqualTo(tier.status().capacityBytes());
    assertThat(read(tier, store(tier, content(1, 100_000), false))).hasSize(100_000);
    tier.close();
  }

  @Test
  void create_tableFull_hasNoRoom() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    List<Extent> extents = new ArrayList<>();
    // There is one entry per 32 KiB of the pool; the spare bundle has one of them.
    for (int i = 0; i < SIZE / (32 << 10) - 1; i++) {
      extents.add(store(tier, content(i, 10), false));
    }
    assertThat(tier.status().usedBytes()).isLessThan(SIZE / 4);
    assertThat(tier.create(1, 1)).isNull();
    assertThat(tier.hasFailed()).isFalse();
    tier.remove(1, extents.get(3), extents.get(3).size());
    Extent last = store(tier, content(1, 10), false);
    assertThat(last.bundle()).isNotEqualTo(extents.get(3).bundle());
    assertThat(read(tier, last)).isEqualTo(content(1, 10));
    tier.close();
  }

  @Test
  void open_entryDamaged_isAMissAndItsMemoryIsFree() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    List<Extent> extents = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      extents.add(store(tier, content(i, 10_000), false));
    }
    tier.close();
    for (int bit = 0; bit < 64 * 8; bit += BIT_STEP) {
      FakeMemory damaged = memory.again();
      // The spare bundle has the first slot.
      long at = (64 << 10) + 64L * (1 + bit % 8) + bit / 8;
      ByteBuffer entry = damaged.slice(at, 1);
      entry.put(0, (byte) (entry.get(0) ^ (1 << bit % 8)));
      PoolTier found = open(damaged, "dataset", Long.MAX_VALUE, null);
      int there = 0;
      for (int i = 0; i < 8; i++) {
        byte[] got = read(found, extents.get(i));
        assertThat(got == null || java.util.Arrays.equals(got, content(i, 10_000))).isTrue();
        there += got == null ? 0 : 1;
      }
      assertThat(there).isEqualTo(7);
      Recount.of(found);
      assertThat(found.status().usedBytes()).isZero();
      found.close();
    }
  }

  @Test
  void open_entriesThatOverlap_oneIsDropped() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    Extent first = store(tier, content(1, 10_000), false);
    tier.close();
    FakeMemory damaged = memory.again();
    PoolSuperblock block =
        Objects.requireNonNull(PoolSuperblock.decode(damaged.slice(0, PoolSuperblock.SIZE)));
    PoolTable table = new PoolTable(damaged, block);
    PoolTable.Allocation known = Objects.requireNonNull(table.find(first.bundle()));
    int slot = PoolTable.slot(first.bundle()) + 5;
    table.write(
        new PoolTable.Allocation(
            PoolTable.number(99, slot), known.offset() + 4096, 8192, 8192, false));
    table.write(
        new PoolTable.Allocation(
            PoolTable.number(99, slot + 1), block.sizeBytes(), 4096, 4096, false));

    PoolTier found = open(damaged, "dataset", Long.MAX_VALUE, null);
    assertThat(read(found, first)).isEqualTo(content(1, 10_000));
    assertThat(found.open(1, new Extent(PoolTable.number(99, slot), 0, 8192))).isNull();
    assertThat(found.open(1, new Extent(PoolTable.number(99, slot + 1), 0, 4096))).isNull();
    Recount.of(found, first);
    assertThat(found.status().usedBytes()).isEqualTo(Room.charge(10_000));
    found.close();
  }

  @Test
  void open_oneSuperblockDamaged_isThePool() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    Extent extent = store(tier, content(1, 10_000), false);
    tier.close();
    for (long place : PoolSuperblock.PLACES) {
      FakeMemory damaged = memory.again();
      damaged.slice(place, PoolSuperblock.SIZE).put(new byte[PoolSuperblock.SIZE]);
      PoolTier found = open(damaged, "dataset", Long.MAX_VALUE, null);
      assertThat(read(found, extent)).isEqualTo(content(1, 10_000));
      found.close();
    }
  }

  @Test
  void open_somethingElse_isRefusedAndLeftAsItIs() throws Exception {
    open(Tier.Usage.NONE).close();
    Map<String, Consumer<FakeMemory>> changes =
        Map.of(
            "is neither empty nor a pool",
            m -> {
              m.slice(0, 8192).put(new byte[8192]);
              m.slice(MIB - 1, 1).put((byte) 1);
            },
            "is a damaged pool",
            m -> {
              for (long place : PoolSuperblock.PLACES) {
                m.slice(place + 100, 1).put((byte) 1);
              }
            },
            "is a pool of format 2, and this version reads 1",
            m -> {
              for (long place : PoolSuperblock.PLACES) {
                m.slice(place, 512).order(ByteOrder.LITTLE_ENDIAN).putInt(8, 2);
              }
            });
    changes.forEach(
        (message, change) -> {
          FakeMemory changed = memory.again();
          change.accept(changed);
          FakeMemory before = changed.again();
          assertThatThrownBy(() -> open(changed, "dataset", Long.MAX_VALUE, null))
              .isInstanceOf(PoolException.class)
              .hasMessageContaining(message)
              .hasMessageContaining("--format");
          assertThat(changed.isClosed()).isTrue();
          assertThat(changed.again().slice(0, SIZE)).isEqualTo(before.slice(0, SIZE));
        });
  }

  @Test
  void open_anotherDatasetsPool_isRefusedUntilItIsWiped() throws Exception {
    PoolTier tier = open(Tier.Usage.NONE);
    Extent extent = store(tier, content(1, 10_000), false);
    tier.close();
    assertThatThrownBy(() -> open(memory.again(), "other", Long.MAX_VALUE, null))
        .isInstanceOf(PoolException.class)
        .hasMessageContaining("another dataset, dataset")
        .hasMessageContaining("--format");

    FakeMemory wiped = memory.again();
    PoolTier.wipe(wiped);
    PoolTier other = open(wiped, "other", Long.MAX_VALUE, null);
    assertThat(other.status().state()).isEqualTo(TierStatus.State.ON);
    assertThat(other.status().usedBytes()).isZero();
    assertThat(read(other, extent)).isNull();
    other.close();
  }

  @Test
  void open_cutShort_isRefused() throws Exception {
    open(Tier.Usage.NONE).close();
    FakeMemory shorter = new FakeMemory(SIZE - 4096);
    shorter.slice(0, SIZE - 4096).put(memory.again().slice(0, SIZE - 4096));
    assertThatThrownBy(() -> open(shorter, "dataset", Long.MAX_VALUE, null))
        .isInstanceOf(PoolException.class)
        .hasMessageContaining("8384512 bytes instead of the 8388608");
    assertThatThrownBy(() -> open(new FakeMemory(MIB), "dataset", Long.MAX_VALUE, null))
        .isInstanceOf(PoolException.class)
        .hasMessageContaining("too few");
    assertThatThrownBy(() -> open(new FakeMemory(100), "dataset", Long.MAX_VALUE, null))
        .isInstanceOf(PoolException.class)
        .hasMessageContaining("too few");
  }

  @Test
  void superblock_layout_isAsDocumented() {
    ByteBuffer bytes = ByteBuffer.allocate(512);
    Objects.requireNonNull(PoolSuperblock.of(new java.util.UUID(1, 2), "d", SIZE, 0x1234))
        .encode(bytes);
    bytes.order(ByteOrder.LITTLE_ENDIAN);
    assertThat(new String(bytes.array(), 0, 8, java.nio.charset.StandardCharsets.US_ASCII))
        .isEqualTo("pmfspool");
    assertThat(bytes.getInt(8)).isEqualTo(1);
    assertThat(bytes.getInt(12)).isEqualTo(4096);
    assertThat(bytes.getLong(16)).isEqualTo(1);
    assertThat(bytes.getLong(24)).isEqualTo(2);
    assertThat(bytes.getLong(40)).isEqualTo(SIZE);
    assertThat(bytes.getLong(48)).isEqualTo(64 << 10);
    assertThat(bytes.getLong(56)).isEqualTo(256);
    assertThat(bytes.getLong(64)).isEqualTo(2 << 20);
    assertThat(bytes.getLong(72)).isEqualTo(0x1234);
    assertThat(bytes.getInt(80)).isEqualTo(1);
    assertThat(bytes.get(84)).isEqualTo((byte) 'd');
    java.util.zip.CRC32C crc = new java.util.zip.CRC32C();
    crc.update(bytes.array(), 0, 508);
    assertThat(bytes.getInt(508)).isEqualTo((int) crc.getValue());
  }
}
