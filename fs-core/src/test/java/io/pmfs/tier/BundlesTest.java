package io.pmfs.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.memory.ReadResult;
import io.pmfs.metadata.Extent;
import io.pmfs.source.FakeStore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A tier's small copies in bundles, which are full at 64 KiB with these capacities. */
final class BundlesTest {
  private static final long CAPACITY = 1 << 20;
  private static final int FULL = 64 << 10;

  @TempDir private Path temporary;
  private @Nullable DirectoryTier opened;

  @AfterEach
  void close() {
    if (opened != null) {
      opened.close();
    }
  }

  private DirectoryTier open(Tier.@Nullable Usage usage) throws IOException {
    close();
    opened =
        new DirectoryTier(
            new TierSettings("ssd:test", "ssd", temporary.resolve("tier"), CAPACITY, 0),
            usage,
            null);
    return opened;
  }

  private DirectoryTier newTier() throws IOException {
    return open(Tier.Usage.NONE);
  }

  private static byte[] content(long seed, int size) {
    return FakeStore.content(seed, 0, size);
  }

  private static Extent put(Tier tier, long number, byte[] content) throws IOException {
    CopyWriter writer = Objects.requireNonNull(tier.create(number, content.length), "no room");
    try {
      writer.append(ByteBuffer.wrap(content));
      assertThat(bytes(writer.read(0, content.length))).isEqualTo(content);
      return Objects.requireNonNull(writer.commit());
    } finally {
      writer.close();
    }
  }

  private static byte[] get(Tier tier, Extent extent) throws IOException {
    try (CopyReader reader = Objects.requireNonNull(tier.open(1, extent), "no copy")) {
      return bytes(reader.read(0, Math.toIntExact(reader.size())));
    }
  }

  private static byte[] bytes(ReadResult result) throws IOException {
    ByteBuffer buffer = ByteBuffer.allocate(result.size());
    result.copyTo(buffer);
    return buffer.array();
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> all = Files.list(temporary.resolve("tier/bundles"))) {
      return all.sorted().toList();
    }
  }

  @Test
  void append_smallCopies_lieOneBehindTheOther() throws Exception {
    DirectoryTier tier = newTier();
    Extent first = put(tier, 7, content(1, 100));
    Extent second = put(tier, 8, content(2, 5000));

    assertThat(first).isEqualTo(new Extent(1, 0, 100));
    assertThat(second).isEqualTo(new Extent(1, 100, 5000));
    assertThat(get(tier, first)).isEqualTo(content(1, 100));
    assertThat(get(tier, second)).isEqualTo(content(2, 5000));
    assertThat(tier.status().copies()).isEqualTo(2);
    assertThat(tier.status().usedBytes()).isEqualTo(2 * 4096);
    assertThat(Files.size(files().get(0))).isEqualTo(5100);
    assertThat(tier.open(7, null)).as("it is no file").isNull();
  }

  @Test
  void append_fullBundle_beginsAnother() throws Exception {
    DirectoryTier tier = newTier();
    put(tier, 7, content(1, FULL - 1));
    Extent across = put(tier, 8, content(2, 10_000));
    Extent next = put(tier, 9, content(3, 10));

    assertThat(across).isEqualTo(new Extent(1, FULL - 1, 10_000));
    assertThat(next).isEqualTo(new Extent(2, 0, 10));
    assertThat(files()).hasSize(2);
  }

  @Test
  void read_range_isThatRangeOfTheCopy() throws Exception {
    DirectoryTier tier = newTier();
    put(tier, 7, content(1, 100));
    Extent extent = put(tier, 8, content(2, 5000));

    try (CopyReader reader = Objects.requireNonNull(tier.open(8, extent))) {
      assertThat(reader.size()).isEqualTo(5000);
      assertThat(bytes(reader.read(4000, 999))).isEqualTo(FakeStore.content(2, 4000, 999));
    }
  }

  @Test
  void remove_lastCopyOfABundle_givesItsRoomBack() throws Exception {
    DirectoryTier tier = newTier();
    Extent first = put(tier, 7, content(1, 50_000));
    Extent second = put(tier, 8, content(2, 30_000));
    Extent other = put(tier, 9, content(3, 10));
    try (CopyReader open = Objects.requireNonNull(tier.open(8, second))) {
      tier.remove(7, first, first.size());
      assertThat(tier.status().copies()).isEqualTo(2);
      assertThat(tier.status().usedBytes()).isEqualTo(21 * 4096);
      tier.remove(8, second, second.size());

      assertThat(tier.status().usedBytes()).isEqualTo(4096);
      assertThat(files()).hasSize(1);
      assertThat(tier.open(8, second)).isNull();
      assertThat(bytes(open.read(0, 30_000))).isEqualTo(content(2, 30_000));
    }
    tier.remove(9, other, other.size());
    assertThat(tier.status().usedBytes()).isZero();
    assertThat(tier.status().copies()).isZero();
    assertThat(files()).isEmpty();
    assertThat(get(tier, put(tier, 10, content(4, 10)))).isEqualTo(content(4, 10));
  }

  @Test
  void append_afterTheLastBundleWent_isNeverInAnExtentOfBefore() throws Exception {
    DirectoryTier tier = newTier();
    Extent before = put(tier, 7, content(1, 100));
    tier.remove(7, before, before.size());
    Extent after = put(tier, 8, content(2, 100));

    assertThat(after).isNotEqualTo(before);
    assertThat(tier.open(7, before)).isNull();
    assertThat(get(tier, after)).isEqualTo(content(2, 100));
  }

  @Test
  void close_notCommitted_isAsIfItWereNotThere() throws Exception {
    DirectoryTier tier = newTier();
    CopyWriter writer = Objects.requireNonNull(tier.create(7, 5000));
    writer.append(ByteBuffer.wrap(content(1, 100)));
    assertThat(tier.status().copies()).isZero();
    writer.close();
    writer.close();

    assertThat(tier.status().usedBytes()).isZero();
    assertThat(files()).isEmpty();
    assertThatThrownBy(() -> writer.append(ByteBuffer.allocate(1))).isInstanceOf(IOException.class);
    assertThatThrownBy(writer::commit).isInstanceOf(IOException.class);
  }

  @Test
  void append_lessThanReserved_givesTheRestBack() throws Exception {
    DirectoryTier tier = newTier();
    CopyWriter writer = Objects.requireNonNull(tier.create(7, CAPACITY));
    assertThat(tier.create(8, 1)).isNull();
    writer.append(ByteBuffer.wrap(content(1, 100)));
    writer.commit();
    writer.close();

    assertThat(tier.status().usedBytes()).isEqualTo(4096);
    put(tier, 8, content(2, 100));
  }

  @Test
  void create_fullOfBundles_hasNoRoom() throws Exception {
    DirectoryTier tier = newTier();
    long number = 1;
    for (CopyWriter writer = tier.create(number, 3000);
        writer != null;
        writer = tier.create(number, 3000)) {
      writer.append(ByteBuffer.wrap(content(number++, 3000)));
      writer.commit();
      writer.close();
      assertThat(tier.status().usedBytes()).isLessThanOrEqualTo(CAPACITY);
    }
    assertThat(number).isBetween(CAPACITY / 3000 - 20, CAPACITY / 3000 + 1);
  }

  @Test
  void reopen_afterCleanStop_keepsBundlesAndGoesOn() throws Exception {
    DirectoryTier tier = newTier();
    Extent kept = put(tier, 7, content(1, 40_000));
    Extent removed = put(tier, 8, content(2, 10_000));
    tier.remove(8, removed, removed.size());
    Tier.Usage usage = tier.usage();

    tier = open(usage);
    assertThat(tier.status().state()).isEqualTo(TierStatus.State.ON);
    assertThat(tier.status().usedBytes()).isEqualTo(13 * 4096);
    assertThat(tier.status().copies()).isEqualTo(1);
    assertThat(get(tier, kept)).isEqualTo(content(1, 40_000));
    Recount.of(tier, kept);
    assertThat(put(tier, 9, content(3, 10))).isEqualTo(new Extent(1, 50_000, 10));
    tier.remove(9, new Extent(1, 50_000, 10), new Extent(1, 50_000, 10).size());
    tier.remove(7, kept, kept.size());
    assertThat(tier.status().usedBytes()).isZero();
  }

  @Test
  void recover_afterUncleanStop_keepsWhatIsRecordedOnly() throws Exception {
    DirectoryTier tier = newTier();
    Extent first = put(tier, 7, content(1, FULL));
    Extent second = put(tier, 8, content(2, FULL));
    Extent third = put(tier, 9, content(3, 1000));
    Extent fourth = put(tier, 10, content(4, 1000));
    Files.write(temporary.resolve("tier/bundles/README"), new byte[1]);

    tier = open(null);
    assertThat(tier.status().state()).isEqualTo(TierStatus.State.RECOVERING);
    assertThat(get(tier, first)).isEqualTo(content(1, FULL));
    assertThat(tier.create(11, 1)).isNull();
    assertThat(tier.usage()).isNull();
    Recount.of(tier, first, fourth);

    assertThat(tier.status().state()).isEqualTo(TierStatus.State.ON);
    assertThat(tier.status().copies()).isEqualTo(2);
    assertThat(tier.status().usedBytes()).isEqualTo(FULL + 4096);
    assertThat(tier.open(8, second)).isNull();
    assertThat(tier.usage()).isEqualTo(new Tier.Usage(0, 2));
    assertThat(get(tier, fourth)).isEqualTo(content(4, 1000));
    assertThat(third.bundle()).isEqualTo(3);
    tier.remove(10, fourth, fourth.size());
    assertThat(tier.status().usedBytes()).isEqualTo(FULL);
  }

  @Test
  void open_bundleCutShortOrGone_saysSo() throws Exception {
    DirectoryTier tier = newTier();
    Extent first = put(tier, 7, content(1, 1000));
    Extent second = put(tier, 8, content(2, 1000));
    Tier.Usage usage = tier.usage();
    tier.close();
    try (FileChannel file = FileChannel.open(files().get(0), StandardOpenOption.WRITE)) {
      file.truncate(1500);
    }

    tier = open(usage);
    assertThat(get(tier, first)).isEqualTo(content(1, 1000));
    try (CopyReader reader = Objects.requireNonNull(tier.open(8, second))) {
      assertThat(reader.size()).isEqualTo(500);
    }
    try (CopyReader reader = Objects.requireNonNull(tier.open(8, new Extent(1, 1L << 60, 10)))) {
      assertThat(reader.size()).isZero();
    }
    tier.close();
    Files.delete(files().get(0));
    tier = open(usage);
    assertThat(tier.open(7, first)).isNull();
    assertThat(tier.open(7, new Extent(99, 0, 10))).isNull();
    assertThat(tier.status().usedBytes()).isZero();
    tier.remove(7, first, first.size());
    assertThat(tier.hasFailed()).isFalse();
  }

  @Test
  void has_bundleGoneOrCutShortWhileOpen_isFalse() throws Exception {
    DirectoryTier tier = newTier();
    Extent first = put(tier, 7, content(1, 1000));
    Extent second = put(tier, 8, content(2, 1000));
    assertThat(tier.has(8, second, 1000)).isTrue();
    try (FileChannel file = FileChannel.open(files().get(0), StandardOpenOption.WRITE)) {
      file.truncate(1500);
    }

    assertThat(tier.has(7, first, 1000)).isTrue();
    assertThat(tier.has(8, second, 1000)).isFalse();
    Files.delete(files().get(0));
    assertThat(tier.has(7, first, 1000)).isFalse();
    assertThat(tier.hasFailed()).isFalse();
    tier.remove(7, first, 1000);
    tier.remove(8, second, 1000);
    assertThat(tier.status().usedBytes()).isZero();
  }

  @Test
  void append_newestBundleGoneOrCutShort_goesToAnother() throws Exception {
    DirectoryTier tier = newTier();
    put(tier, 7, content(1, 1000));
    Files.delete(files().get(0));
    Extent second = put(tier, 8, content(2, 1000));
    assertThat(second).isEqualTo(new Extent(2, 0, 1000));
    assertThat(tier.has(8, second, 1000)).isTrue();
    try (FileChannel file = FileChannel.open(files().get(0), StandardOpenOption.WRITE)) {
      file.truncate(500);
    }

    assertThat(put(tier, 9, content(3, 10))).isEqualTo(new Extent(3, 0, 10));
  }

  @Test
  void append_beforeTheCount_leavesWhatWasThereAlone() throws Exception {
    DirectoryTier tier = newTier();
    Extent before = put(tier, 7, content(1, 1000));
    tier = open(tier.usage());
    Extent meanwhile = put(tier, 8, content(2, 1000));
    assertThat(meanwhile).isEqualTo(new Extent(2, 0, 1000));
    tier.remove(7, before, 1000);
    assertThat(tier.status().usedBytes()).isEqualTo(2 * 4096);
    Recount.of(tier, meanwhile);

    assertThat(tier.status().usedBytes()).isEqualTo(4096);
    assertThat(get(tier, meanwhile)).isEqualTo(content(2, 1000));
    assertThat(put(tier, 9, content(3, 10))).isEqualTo(new Extent(2, 1000, 10));
  }

  @Test
  void read_afterAnInterruptedReader_goesOn() throws Exception {
    DirectoryTier tier = newTier();
    Extent extent = put(tier, 7, content(1, 1000));
    Thread.currentThread().interrupt();
    try {
      assertThatThrownBy(() -> get(tier, extent))
          .isInstanceOf(java.nio.channels.ClosedChannelException.class);
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
    tier.failed(new java.nio.channels.ClosedChannelException());

    assertThat(get(tier, extent)).isEqualTo(content(1, 1000));
    assertThat(get(tier, put(tier, 8, content(2, 10)))).isEqualTo(content(2, 10));
    assertThat(tier.status().state()).isEqualTo(TierStatus.State.ON);
  }

  @Test
  void sparseBundles_mostlyRemoved_canBeMovedAndMakeRoom() throws Exception {
    DirectoryTier tier = newTier();
    List<Extent> extents = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      extents.add(put(tier, i + 1, content(i, 8192)));
    }
    assertThat(tier.sparseBundles()).isEmpty();
    // One copy in eight is left of the first five bundles, and all copies of the others.
    for (int i = 0; i < 40; i++) {
      if (i % 8 != 0) {
        tier.remove(i + 1, extents.get(i), 8192);
      }
    }
    long before = tier.status().usedBytes();
    assertThat(tier.sparseBundles()).isEqualTo(java.util.Set.of(1L, 2L, 3L, 4L, 5L));
    for (int i = 0; i < 40; i += 8) {
      Extent to =
          Objects.requireNonNull(tier.move(extents.get(i), ByteBuffer.allocateDirect(1 << 20)));
      tier.remove(i + 1, extents.get(i), 8192);
      assertThat(get(tier, to)).isEqualTo(content(i, 8192));
    }

    assertThat(tier.status().usedBytes()).isEqualTo(before - 5 * FULL + 5 * 8192);
    assertThat(tier.status().copies()).isEqualTo(65);
    assertThat(tier.sparseBundles()).isEmpty();
  }

  @Test
  void move_noRoomLeft_isDoneAllTheSame() throws Exception {
    DirectoryTier tier = newTier();
    Extent extent = put(tier, 1, content(1, 1000));
    CopyWriter rest = Objects.requireNonNull(tier.create(2, CAPACITY - 4096));
    Extent to = Objects.requireNonNull(tier.move(extent, ByteBuffer.allocateDirect(1 << 20)));
    assertThat(get(tier, to)).isEqualTo(content(1, 1000));
    tier.remove(1, extent, extent.size());
    rest.close();

    assertThat(tier.status().usedBytes()).isEqualTo(4096);
    assertThat(tier.move(new Extent(77, 0, 10), ByteBuffer.allocateDirect(10))).isNull();
    assertThat(tier.status().usedBytes()).isEqualTo(4096);
  }

  @Test
  void operations_manyThreads_eachReadsItsOwnAndNothingIsLeft() throws Exception {
    DirectoryTier tier = newTier();
    Map<Long, Extent> there = new ConcurrentHashMap<>();
    try (TierContract.Threads threads = new TierContract.Threads(8)) {
      for (int thread = 0; thread < 8; thread++) {
        long first = thread * 100L + 1;
        threads.run(
            () -> {
              for (int i = 0; i < 400; i++) {
                long number = first + i % 20;
                Extent old = there.remove(number);
                if (old != null) {
                  assertThat(get(tier, old))
                      .isEqualTo(content(number, Math.toIntExact(old.size())));
                  tier.remove(number, old, old.size());
                }
                CopyWriter writer = tier.create(number, 3000);
                if (writer != null) {
                  writer.append(ByteBuffer.wrap(content(number, 100 + i * 7)));
                  if (i % 5 > 0) {
                    there.put(number, Objects.requireNonNull(writer.commit()));
                  }
                  writer.close();
                }
                assertThat(tier.status().usedBytes()).isBetween(0L, CAPACITY);
              }
            });
      }
      threads.join();
    }
    for (Map.Entry<Long, Extent> copy : there.entrySet()) {
      assertThat(get(tier, copy.getValue()))
          .isEqualTo(content(copy.getKey(), Math.toIntExact(copy.getValue().size())));
      tier.remove(copy.getKey(), copy.getValue(), copy.getValue().size());
    }
    assertThat(tier.status().usedBytes()).isZero();
    assertThat(tier.status().copies()).isZero();
    assertThat(files()).isEmpty();
  }
}
