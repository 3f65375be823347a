package io.pmfs.tier;

import io.pmfs.memory.ReadResult;
import io.pmfs.metadata.Extent;
import io.pmfs.tier.PoolTable.Allocation;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongPredicate;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;

/**
 * Copies in one mapped memory, read in place: small copies together in {@link Bundles}, others in
 * an allocation each. No copy is a file; all have extents.
 *
 * <p>A copy exists once its bytes and then its entry were persisted. docs/formats.md describes what
 * happens in a crash, and the rest of the format.
 */
public final class PoolTier implements Tier {
  /** A pool has about 128 bundles, or up to thousands: a few hundred bytes of heap each. */
  private static final int BUNDLES = 128;

  private static final long SMALLEST_BUNDLE_BYTES = 64 << 10;
  private static final long LARGEST_BUNDLE_BYTES = 64 << 20;

  private final Settings settings;
  private final DaxVerdict dax;
  private final MemoryUse memory;
  private final Pool pool;
  private final long bundleBytes;
  private final long capacityBytes;
  private final Room room;
  private final PoolBundles spares;
  private final Bundles bundles;

  private final AtomicLong copyCount = new AtomicLong();

  // LOCK ORDER: PoolTier < Bundles < PoolBundles < Pool.
  private final Map<Long, Readers> open = new HashMap<>(); // GUARDED_BY(this)
  private boolean closed; // GUARDED_BY(this)

  private final TierHealth health;

  /**
   * The settings of a pool.
   *
   * @param name the tier's name, for example {@code pm:/dev/dax0.0}
   * @param kind the kind of tier, for users
   * @param path the path of the device or file, shown to users
   * @param dataset the dataset whose copies it holds: at most 256 bytes of UTF-8
   * @param capacityBytes the most bytes that copies may use; less if the pool is smaller
   */
  public record Settings(
      String name, String kind, String path, String dataset, long capacityBytes) {}

  /**
   * Opens a pool, or creates one if the memory is empty.
   *
   * @param memory taken over; closed when this and the last reader are
   * @param usage the counts of the last clean stop, with which the tier accepts copies at once;
   *     null if unknown: it then accepts none before a {@link Tier.Census} was taken
   * @throws PoolException if the memory must not be written to; the message gives the reason
   * @throws IOException if writing failed
   */
  public PoolTier(
      Settings settings, MappedMemory memory, @Nullable Usage usage, RandomGenerator random)
      throws IOException {
    try {
      this.settings = settings;
      this.dax = memory.dax();
      this.pool = Pool.open(memory, settings.dataset(), random);
      this.memory = new MemoryUse(memory);
      this.bundleBytes = bundleBytes(pool.dataBytes());
      this.capacityBytes =
          Math.max(0, Math.min(settings.capacityBytes(), pool.dataBytes() - bundleBytes));
      this.room = new Room(capacityBytes, 0, Room.Disk.OWN);
      this.spares = new PoolBundles(pool, this.memory, room, bundleBytes);
      boolean isEmpty = pool.isEmpty();
      this.bundles = new Bundles(spares, bundleBytes, room);
      spares.keepSpare();
      room.found(aloneBytes());
      copyCount.set(usage == null || isEmpty ? 0 : usage.copies());
      this.health = new TierHealth(settings.name(), usage != null || isEmpty);
    } catch (Throwable e) {
      memory.close();
      throw e;
    }
  }

  /** Makes the next open treat the memory as an empty pool, whatever its content. */
  public static void wipe(MappedMemory memory) throws IOException {
    Pool.wipe(memory);
  }

  private static long bundleBytes(long dataBytes) {
    long bytes = Math.max(SMALLEST_BUNDLE_BYTES, dataBytes / BUNDLES);
    return Room.charge(Math.min(bytes, LARGEST_BUNDLE_BYTES));
  }

  private long aloneBytes() {
    long[] bytes = {0};
    pool.forEach(allocation -> bytes[0] += allocation.isBundle() ? 0 : allocation.length());
    return bytes[0];
  }

  @Override
  public String name() {
    return settings.name();
  }

  @Override
  public @Nullable CopyReader open(long number, @Nullable Extent extent) throws IOException {
    if (extent == null || health.hasFailed()) {
      return null;
    }
    synchronized (this) {
      Allocation allocation = closed ? null : pool.find(extent.bundle());
      if (allocation == null) {
        checkPool();
        return null;
      }
      if (!allocation.isBundle()) {
        return extent.offset() == 0 ? openAlone(allocation) : null;
      }
    }
    return bundles.open(extent);
  }

  @Override
  public synchronized boolean has(long number, @Nullable Extent extent, long sizeBytes)
      throws IOException {
    if (extent == null || closed || health.hasFailed()) {
      return false;
    }
    Allocation allocation = pool.find(extent.bundle());
    if (allocation == null) {
      checkPool();
      return false;
    }
    return allocation.isBundle()
        ? bundles.has(extent)
        : extent.offset() == 0 && allocation.size() == extent.size();
  }

  /** Called when a copy is missing: throws if the whole pool is. */
  private void checkPool() throws IOException { // GUARDED_BY(this)
    try {
      if (!closed) {
        pool.check();
      }
    } catch (IOException e) {
      failed(e);
      throw e;
    }
  }

  /** Opens a copy with its own allocation. */
  synchronized CopyReader openAlone(Allocation allocation) throws IOException {
    memory.enter();
    open.computeIfAbsent(allocation.number(), n -> new Readers()).users++;
    return new AloneReader(allocation);
  }

  @Override
  public @Nullable CopyWriter create(long number, long sizeBytes) {
    if (!health.isOn() || !couldHold(sizeBytes)) {
      return null;
    }
    long charge = Room.charge(sizeBytes);
    try {
      synchronized (this) {
        checkPool();
      }
      if (!room.reserve(charge)) {
        return null;
      }
      Allocation reserved = pool.reserve(charge, fitsBundle(charge), false);
      if (reserved == null) {
        room.release(charge);
        return null;
      }
      memory.enter();
      return new IncomingAllocation(this, pool, memory, bundles, room, reserved);
    } catch (IOException e) {
      failed(e);
      return null;
    }
  }

  @Override
  public synchronized void remove(long number, @Nullable Extent extent, long sizeBytes) {
    if (extent == null || closed || health.hasFailed()) {
      return;
    }
    copyCount.updateAndGet(count -> Math.max(0, count - 1));
    Allocation allocation = pool.find(extent.bundle());
    if (allocation == null) {
      return;
    }
    if (allocation.isBundle()) {
      bundles.drop(extent);
    } else {
      withdraw(allocation);
      room.free(allocation.length());
    }
    keepSpare();
  }

  private void withdraw(Allocation allocation) { // GUARDED_BY(this)
    pool.withdraw(allocation);
    Readers readers = open.get(allocation.number());
    if (readers == null) {
      pool.release(allocation);
    } else {
      readers.withdrawn = true;
    }
  }

  /** Counts a copy that was committed. */
  void countOneMore() {
    copyCount.incrementAndGet();
  }

  /** Whether a copy of this size can go to a bundle. */
  boolean fitsBundle(long sizeBytes) {
    return sizeBytes <= bundleBytes;
  }

  /** Reserves a spare bundle, if there is none and there is memory for one. */
  void keepSpare() {
    try {
      spares.keepSpare();
    } catch (IOException e) {
      failed(e);
    }
  }

  private synchronized void leave(Allocation allocation) {
    Readers readers = open.get(allocation.number());
    if (readers != null && --readers.users == 0) {
      open.remove(allocation.number());
      if (readers.withdrawn) {
        pool.release(allocation);
      }
    }
    memory.leave();
  }

  @Override
  public Set<Long> sparseBundles() {
    return health.isOn() ? bundles.sparse() : Set.of();
  }

  @Override
  public @Nullable Extent move(Extent extent, ByteBuffer through) {
    if (!health.isOn() || !fitsBundle(extent.size())) {
      return null;
    }
    try (CopyReader reader = bundles.open(extent)) {
      if (reader == null || reader.size() != extent.size()) {
        return null;
      }
      reader.read(0, Math.toIntExact(extent.size())).copyTo(through.clear());
      Extent moved = bundles.append(through.flip(), 0);
      if (moved == null && spares.useSpare()) {
        moved = bundles.append(through, 0);
      }
      if (moved != null) {
        countOneMore();
      }
      return moved;
    } catch (IOException e) {
      failed(e);
      return null;
    }
  }

  @Override
  public boolean couldHold(long sizeBytes) {
    return room.couldHold(sizeBytes);
  }

  @Override
  public void failed(IOException e) {
    health.countError();
    fail(String.valueOf(e.getMessage()));
  }

  @Override
  public long errors() {
    return health.errors();
  }

  @Override
  public void fail(String why) {
    health.fail(why);
  }

  @Override
  public boolean hasFailed() {
    return health.hasFailed();
  }

  @Override
  public Census census() {
    return new Count();
  }

  /** Counts the wanted allocations. */
  private final class Count implements Census {
    private long copies;
    private final BitSet slots = new BitSet();
    private final Map<Long, Long> wanted = new HashMap<>();

    /** No copy is a file. */
    @Override
    public void forEachFile(LongPredicate visitor) {}

    @Override
    public void discard(long number) {}

    @Override
    public void add(@Nullable Extent extent, long sizeBytes) {
      count(extent, 1);
    }

    @Override
    public void subtract(@Nullable Extent extent, long sizeBytes) {
      count(extent, -1);
    }

    /** An allocation that is not a bundle has one copy, so its slot tells whether it is wanted. */
    private void count(@Nullable Extent extent, int by) {
      if (extent == null) {
        return;
      }
      copies += by;
      Allocation allocation = pool.find(extent.bundle());
      if (allocation == null) {
        return;
      }
      if (allocation.isBundle()) {
        wanted.merge(extent.bundle(), by * extent.size(), Long::sum);
      } else {
        slots.set(PoolTable.slot(extent.bundle()), by > 0);
      }
    }

    @Override
    public void take() throws IOException {
      synchronized (PoolTier.this) {
        if (closed || hasFailed()) {
          return;
        }
        checkPool();
        pool.forEach(
            allocation -> {
              if (!allocation.isBundle() && !slots.get(PoolTable.slot(allocation.number()))) {
                withdraw(allocation);
                room.free(allocation.length());
              }
            });
        bundles.count(wanted);
        copyCount.set(copies);
        health.counted();
        keepSpare();
      }
    }
  }

  @Override
  public synchronized @Nullable Usage usage() {
    return health.isCounted() ? new Usage(0, copyCount.get()) : null;
  }

  @Override
  public TierStatus status() {
    return new TierStatus(
        name(),
        settings.kind(),
        settings.path(),
        health.state(),
        health.reason(),
        dax,
        capacityBytes,
        room.used(),
        copyCount.get());
  }

  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    bundles.close();
    memory.leave();
  }

  /** The readers of an allocation. */
  private static final class Readers {
    int users;
    boolean withdrawn;
  }

  /** A copy with its own allocation. */
  private final class AloneReader implements CopyReader {
    private final Allocation allocation;
    private boolean left; // GUARDED_BY(this)

    AloneReader(Allocation allocation) {
      this.allocation = allocation;
    }

    @Override
    public long size() {
      return allocation.size();
    }

    @Override
    public ReadResult read(long offset, int size) {
      return memory.read(allocation, offset, size);
    }

    @Override
    public void close() {
      synchronized (this) {
        if (left) {
          return;
        }
        left = true;
      }
      leave(allocation);
    }
  }
}
