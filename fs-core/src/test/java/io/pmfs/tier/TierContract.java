package io.pmfs.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.memory.ReadResult;
import io.pmfs.metadata.Extent;
import io.pmfs.source.FakeStore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What every tier must do. Room is counted in units of 4 KiB. */
public abstract class TierContract {
  /** An empty tier of this capacity that accepts copies; the test closes it. */
  protected abstract Tier newTier(long capacityBytes) throws Exception;

  /** A tier with enough room. */
  private Tier newTier() throws Exception {
    return newTier(64 << 20);
  }

  protected static byte[] content(long seed, int size) {
    return FakeStore.content(seed, 0, size);
  }

  protected static CopyWriter create(Tier tier, long number, long size) {
    return Objects.requireNonNull(tier.create(number, size), "no room");
  }

  /** The extents of copies that are not files, as in the records. */
  private final Map<Long, Extent> places = new ConcurrentHashMap<>();

  /** Stores a whole copy, as a file or with its own allocation. */
  protected void put(Tier tier, long number, byte[] content) throws IOException {
    CopyWriter writer = create(tier, number, content.length);
    try {
      writer.write(0, ByteBuffer.wrap(content));
      commit(tier, number, writer);
    } finally {
      writer.close();
    }
  }

  /** Commits a copy, replacing the existing one, like the owner of the records. */
  private void commit(Tier tier, long number, CopyWriter writer) throws IOException {
    synchronized (places) {
      Extent extent = writer.commit();
      Extent replaced = extent == null ? null : places.put(number, extent);
      if (replaced != null) {
        tier.remove(number, replaced, replaced.size());
      }
    }
  }

  /** Opens the copy of an inode; null if there is none. */
  protected @Nullable CopyReader open(Tier tier, long number) throws IOException {
    return tier.open(number, places.get(number));
  }

  protected void remove(Tier tier, long number) throws IOException {
    long size;
    try (CopyReader reader = open(tier, number)) {
      if (reader == null) {
        return;
      }
      size = reader.size();
    }
    tier.remove(number, places.get(number), size);
  }

  /** The whole copy of an inode; fails if there is none. */
  protected byte[] get(Tier tier, long number) throws IOException {
    try (CopyReader reader = Objects.requireNonNull(open(tier, number), "no copy")) {
      return read(reader);
    }
  }

  private static byte[] read(CopyReader reader) throws IOException {
    return bytes(reader.read(0, Math.toIntExact(reader.size())));
  }

  private static byte[] bytes(ReadResult result) throws IOException {
    ByteBuffer buffer = ByteBuffer.allocate(result.size());
    result.copyTo(buffer);
    assertThat(buffer.hasRemaining()).isFalse();
    return buffer.array();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 4095, 4096, 4097, 1_000_003})
  void commit_wholeCopy_readsBack(int size) throws Exception {
    try (Tier tier = newTier()) {
      put(tier, 7, content(1, size));

      assertThat(get(tier, 7)).isEqualTo(content(1, size));
      assertThat(tier.status().copies()).isEqualTo(1);
      assertThat(tier.status().usedBytes()).isEqualTo((size + 4095) / 4096 * 4096L);
    }
  }

  @Test
  void read_range_isThatRange() throws Exception {
    try (Tier tier = newTier()) {
      put(tier, 7, content(1, 10_000));
      try (CopyReader reader = Objects.requireNonNull(open(tier, 7))) {
        assertThat(reader.size()).isEqualTo(10_000);
        assertThat(bytes(reader.read(9_999, 1))).isEqualTo(FakeStore.content(1, 9_999, 1));
        assertThat(bytes(reader.read(4_000, 500))).isEqualTo(FakeStore.content(1, 4_000, 500));
      }
    }
  }

  @Test
  void copyTo_withinLargerBuffer_keepsItsLimit() throws Exception {
    try (Tier tier = newTier()) {
      put(tier, 7, content(1, 100));
      try (CopyReader reader = Objects.requireNonNull(open(tier, 7))) {
        ByteBuffer destination = ByteBuffer.allocateDirect(300).position(50).limit(250);
        reader.read(10, 20).copyTo(destination);

        assertThat(destination.position()).isEqualTo(70);
        assertThat(destination.limit()).isEqualTo(250);
        byte[] got = new byte[20];
        destination.get(50, got);
        assertThat(got).isEqualTo(FakeStore.content(1, 10, 20));
      }
    }
  }

  @Test
  void open_absent_null() throws Exception {
    try (Tier tier = newTier()) {
      assertThat(open(tier, 7)).isNull();
      assertThat(tier.hasFailed()).isFalse();
    }
  }

  @Test
  void remove_absent_changesNothing() throws Exception {
    try (Tier tier = newTier()) {
      put(tier, 6, content(1, 1));
      remove(tier, 7);

      assertThat(tier.status().copies()).isEqualTo(1);
      assertThat(tier.status().usedBytes()).isEqualTo(4096);
      assertThat(tier.hasFailed()).isFalse();
    }
  }

  @Test
  void write_notCommitted_isInvisible() throws Exception {
    try (Tier tier = newTier()) {
      CopyWriter writer = create(tier, 7, 5000);
      writer.write(0, ByteBuffer.wrap(content(1, 5000)));

      assertThat(open(tier, 7)).isNull();
      assertThat(tier.status().copies()).isZero();
      writer.close();
      assertThat(open(tier, 7)).isNull();
    }
  }

  @Test
  void close_notCommitted_givesRoomBackOnce() throws Exception {
    try (Tier tier = newTier(8192)) {
      CopyWriter writer = create(tier, 7, 8192);
      writer.write(0, ByteBuffer.wrap(content(1, 8192)));
      writer.close();
      writer.close();

      assertThat(tier.status().usedBytes()).isZero();
      put(tier, 8, content(2, 8192));
      assertThat(get(tier, 8)).isEqualTo(content(2, 8192));
    }
  }

  @Test
  void read_copyInTheMaking_givesWhatWasWritten() throws Exception {
    try (Tier tier = newTier()) {
      CopyWriter writer = create(tier, 7, 10_000);
      writer.write(5000, ByteBuffer.wrap(content(1, 5000)));

      assertThat(bytes(writer.read(6000, 100))).isEqualTo(FakeStore.content(1, 1000, 100));
      writer.write(0, ByteBuffer.wrap(content(2, 5000)));
      commit(tier, 7, writer);
      assertThat(bytes(writer.read(0, 5000))).isEqualTo(content(2, 5000));
      writer.close();
      assertThat(writer.tier()).isSameAs(tier);
    }
  }

  @Test
  void write_closedWriter_fails() throws Exception {
    try (Tier tier = newTier()) {
      CopyWriter writer = create(tier, 7, 10);
      writer.close();

      assertThatThrownBy(() -> writer.write(0, ByteBuffer.allocate(10)))
          .isInstanceOf(IOException.class);
    }
  }

  @Test
  void commit_copyThere_replacesIt() throws Exception {
    try (Tier tier = newTier()) {
      put(tier, 7, content(1, 5000));
      try (CopyReader old = Objects.requireNonNull(open(tier, 7))) {
        put(tier, 7, content(2, 100));

        assertThat(get(tier, 7)).isEqualTo(content(2, 100));
        assertThat(read(old)).isEqualTo(content(1, 5000));
      }
      assertThat(tier.status().copies()).isEqualTo(1);
      assertThat(tier.status().usedBytes()).isEqualTo(4096);
    }
  }

  @Test
  void remove_openReader_goesOn() throws Exception {
    try (Tier tier = newTier()) {
      put(tier, 7, content(1, 5000));
      try (CopyReader reader = Objects.requireNonNull(open(tier, 7))) {
        remove(tier, 7);

        assertThat(open(tier, 7)).isNull();
        assertThat(read(reader)).isEqualTo(content(1, 5000));
        assertThat(tier.status().usedBytes()).isZero();
        assertThat(tier.status().copies()).isZero();
      }
    }
  }

  @Test
  void create_exactlyTheCapacity_hasRoom() throws Exception {
    try (Tier tier = newTier(3 * 4096)) {
      put(tier, 7, content(1, 1));
      put(tier, 8, content(2, 4097));

      assertThat(tier.status().usedBytes()).isEqualTo(3 * 4096);
      assertThat(tier.create(9, 1)).isNull();
    }
  }

  @Test
  void create_oneByteAboveAUnit_hasNoRoom() throws Exception {
    try (Tier tier = newTier(3 * 4096)) {
      put(tier, 7, content(1, 4096));

      assertThat(tier.create(8, 2 * 4096 + 1)).isNull();
      put(tier, 8, content(1, 2 * 4096));
      assertThat(tier.status().usedBytes()).isEqualTo(3 * 4096);
    }
  }

  @Test
  void create_othersReserved_hasNoRoomUntilTheyClose() throws Exception {
    try (Tier tier = newTier(8192)) {
      CopyWriter first = create(tier, 7, 5000);
      assertThat(tier.status().usedBytes()).isEqualTo(8192);
      assertThat(tier.create(8, 1)).isNull();
      first.close();

      put(tier, 8, content(1, 1));
      assertThat(get(tier, 8)).isEqualTo(content(1, 1));
    }
  }

  @Test
  void remove_copy_makesRoom() throws Exception {
    try (Tier tier = newTier(8192)) {
      put(tier, 7, content(1, 8000));
      assertThat(tier.create(8, 1)).isNull();
      remove(tier, 7);

      put(tier, 8, content(1, 8192));
    }
  }

  @Test
  void couldHold_aroundTheCapacity_roundsUp() throws Exception {
    try (Tier tier = newTier(2 * 4096 + 4095)) {
      put(tier, 7, content(1, 8192));

      assertThat(tier.couldHold(8192)).isTrue();
      assertThat(tier.couldHold(8193)).isFalse();
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {Long.MAX_VALUE, Long.MAX_VALUE - 4096, Long.MAX_VALUE - 8192, 1L << 62})
  void create_absurdSize_hasNoRoom(long size) throws Exception {
    try (Tier tier = newTier(64 << 20)) {
      put(tier, 7, content(1, 8192));

      assertThat(tier.couldHold(size)).isFalse();
      assertThat(tier.create(8, size)).isNull();
      assertThat(tier.status().usedBytes()).isEqualTo(8192);
    }
  }

  @Test
  void fail_onceCalled_holdsNothing() throws Exception {
    try (Tier tier = newTier()) {
      put(tier, 7, content(1, 10));
      assertThat(tier.availableBytes()).isPositive();
      tier.fail("it smokes");

      assertThat(tier.availableBytes()).isZero();
      assertThat(tier.hasFailed()).isTrue();
      assertThat(open(tier, 7)).isNull();
      assertThat(tier.create(8, 1)).isNull();
      remove(tier, 7);
      assertThat(tier.status().state()).isEqualTo(TierStatus.State.FAILED);
      assertThat(tier.status().reason()).isEqualTo("it smokes");
    }
  }

  @Test
  void write_manyThreadsOneCopy_eachBlockIsWhereItBelongs() throws Exception {
    int block = 50_000;
    int count = 16;
    try (Tier tier = newTier();
        Threads threads = new Threads(8)) {
      CopyWriter writer = create(tier, 7, (long) block * count);
      for (int i = 0; i < count; i++) {
        int at = i * block;
        threads.run(
            () -> {
              writer.write(at, ByteBuffer.wrap(FakeStore.content(1, at, block)));
              assertThat(bytes(writer.read(at, block))).isEqualTo(FakeStore.content(1, at, block));
            });
      }
      threads.join();
      commit(tier, 7, writer);
      writer.close();

      assertThat(get(tier, 7)).isEqualTo(content(1, block * count));
    }
  }

  @Test
  void commit_manyThreadsSameNumber_countsOneCopy() throws Exception {
    try (Tier tier = newTier();
        Threads threads = new Threads(8)) {
      for (int i = 0; i < 200; i++) {
        int seed = i;
        threads.run(() -> put(tier, 7, content(seed, 5000)));
      }
      threads.join();

      assertThat(tier.status().copies()).isEqualTo(1);
      assertThat(tier.status().usedBytes()).isEqualTo(8192);
    }
  }

  @Test
  void operations_manyThreads_neverAboveTheCapacityAndExactAtTheEnd() throws Exception {
    long capacity = 40 * 4096;
    try (Tier tier = newTier(capacity);
        Threads threads = new Threads(8)) {
      for (int thread = 0; thread < 8; thread++) {
        long first = thread * 50L + 1;
        threads.run(
            () -> {
              for (int i = 0; i < 300; i++) {
                long number = first + i % 10;
                int size = 3000 + i * 20;
                CopyWriter writer = tier.create(number, size);
                if (writer != null) {
                  writer.write(0, ByteBuffer.wrap(content(number, size)));
                  if (i % 3 > 0) {
                    commit(tier, number, writer);
                  }
                  writer.close();
                }
                if (i % 5 == 0) {
                  remove(tier, number - 1);
                }
                assertThat(tier.status().usedBytes()).isBetween(0L, capacity);
              }
              for (int i = 0; i < 10; i++) {
                remove(tier, first + i);
              }
              remove(tier, first - 1);
            });
      }
      threads.join();

      assertThat(tier.status().usedBytes()).isZero();
      assertThat(tier.status().copies()).isZero();
      assertThat(tier.hasFailed()).isFalse();
    }
  }

  /** Runs tasks on a few threads; {@link #join} throws their failures. */
  protected static final class Threads implements AutoCloseable {
    private final ExecutorService threads;
    private final List<Future<?>> running = new ArrayList<>();

    Threads(int count) {
      threads = Executors.newFixedThreadPool(count);
    }

    interface Task {
      void run() throws Exception;
    }

    void run(Task task) {
      running.add(
          threads.submit(
              () -> {
                task.run();
                return true;
              }));
    }

    void join() throws Exception {
      for (Future<?> task : running) {
        task.get();
      }
    }

    @Override
    public void close() {
      threads.shutdownNow();
    }
  }
}
