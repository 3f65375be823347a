package io.pmfs.tier;

import io.pmfs.metadata.Extent;
import io.pmfs.tier.PoolTable.Allocation;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongPredicate;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies in one mapped memory, read in place: small copies together in {@link Bundles}, others in
 * an allocation each. No copy is a file; all have extents.
 *
 * <p>A copy exists once its bytes and then its entry were persisted. docs/formats.md describes what
 * happens in a crash, and the rest of the format.
 */
public final class PoolTier implements Tier {
  private static final Logger log = LoggerFactory.getLogger(PoolTier.class);

  /** A pool has about 128 bundles, or up to thousands: a few hundred bytes of heap each. */
  private static final int BUNDLES = 128;

  private static final long SMALLEST_BUNDLE_BYTES = 64 << 10;
  private static final long LARGEST_BUNDLE_BYTES = 64 << 20;

  private final Settings settings;
  private final TierStatus.Dax dax;
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

  private volatile TierStatus.State state;
  private final LongAdder errors = new LongAdder();
  private volatile @Nullable String reason;

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
    boolean opened = false;
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
      boolean isKnown = usage != null || isEmpty;
      this.state = isKnown ? TierStatus.State.ON : TierStatus.State.RECOVERING;
      this.reason = isKnown ? null : "not yet compared with the records";
      opened = true;
    } finally {
      if (!opened) {
        memory.close();
      }
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
    if (extent == null || state == TierStatus.State.FAILED) {
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
    if (extent == null || closed || state == TierStatus.State.FAILED) {
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

  private synchronized AloneReader openAlone(Allocation allocation) throws IOException {
    memory.enter();
    open.computeIfAbsent(allocation.number(), n -> new Readers()).users++;
    return new AloneReader(allocation);
  }

  @Override
  public @Nullable CopyWriter create(long number, long sizeBytes) {
    if (state != TierStatus.State.ON || !couldHold(sizeBytes)) {
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
      Allocation reserved = pool.reserve(charge, charge <= bundleBytes, false);
      if (reserved == null) {
        room.release(charge);
        return null;
      }
      memory.enter();
      return new IncomingCopy(reserved);
    } catch (IOException e) {
      failed(e);
      return null;
    }
  }

  @Override
  public synchronized void remove(long number, @Nullable Extent extent, long sizeBytes) {
    if (extent == null || closed || state == TierStatus.State.FAILED) {
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

  private void keepSpare() {
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
    return state == TierStatus.State.ON ? bundles.sparse() : Set.of();
  }

  @Override
  public @Nullable Extent move(Extent extent, ByteBuffer through) {
    if (state != TierStatus.State.ON || extent.size() > bundleBytes) {
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
        copyCount.incrementAndGet();
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
    errors.increment();
    fail(String.valueOf(e.getMessage()));
  }

  @Override
  public long errors() {
    return errors.sum();
  }

  @Override
  public void fail(String why) {
    synchronized (this) {
      if (state == TierStatus.State.FAILED) {
        return;
      }
      reason = why;
      state = TierStatus.State.FAILED;
    }
    log.warn("tier {} is FAILED: {}; reads continue from the next tier", name(), why);
  }

  @Override
  public boolean hasFailed() {
    return state == TierStatus.State.FAILED;
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
        if (state == TierStatus.State.RECOVERING) {
          reason = null;
          state = TierStatus.State.ON;
        }
        keepSpare();
      }
    }
  }

  @Override
  public synchronized @Nullable Usage usage() {
    return state == TierStatus.State.ON ? new Usage(0, copyCount.get()) : null;
  }

  @Override
  public TierStatus status() {
    return new TierStatus(
        name(),
        settings.kind(),
        settings.path(),
        state,
        reason,
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

  /** An unfinished copy, with an allocation that it releases if it goes to a bundle. */
  private final class IncomingCopy implements CopyWriter {
    private Allocation allocation; // GUARDED_BY(this)
    private boolean reserved = true; // GUARDED_BY(this); whether this holds the allocation
    private long end; // GUARDED_BY(this)
    private @Nullable Extent extent; // GUARDED_BY(this)
    private @Nullable CopyReader reader; // GUARDED_BY(this); set once committed or in a bundle
    private boolean committed; // GUARDED_BY(this)
    private boolean ended; // GUARDED_BY(this)

    IncomingCopy(Allocation allocation) {
      this.allocation = allocation;
    }

    @Override
    public Tier tier() {
      return PoolTier.this;
    }

    @Override
    public void write(long offset, ByteBuffer source) throws IOException {
      Allocation target;
      synchronized (this) {
        checkOpen();
        target = allocation;
        end = Math.max(end, offset + source.remaining());
      }
      try {
        memory.write(target, offset, source);
      } catch (IOException e) {
        failed(e);
        throw e;
      }
    }

    @Override
    public synchronized void append(ByteBuffer source) throws IOException {
      checkOpen();
      // It gets its own allocation if it is too large for a bundle, or there is no room for another
      // bundle.
      Extent bundled = source.remaining() > bundleBytes ? null : appendToBundle(source);
      if (bundled == null) {
        write(0, source);
        return;
      }
      pool.release(allocation);
      reserved = false;
      extent = bundled;
      reader = bundles.open(bundled);
    }

    private @Nullable Extent appendToBundle(ByteBuffer source) throws IOException {
      // GUARDED_BY(this)
      try {
        return bundles.append(source, allocation.length());
      } catch (IOException e) {
        failed(e);
        throw e;
      }
    }

    @Override
    public synchronized ReadResult read(long offset, int size) throws IOException {
      checkOpen();
      CopyReader open = reader;
      return open == null ? memory.read(allocation, offset, size) : open.read(offset, size);
    }

    private synchronized void checkOpen() throws IOException {
      if (ended) {
        throw new IOException("the copy was closed");
      }
    }

    @Override
    public synchronized void shrink(long sizeBytes) {
      long surplus = allocation.length() - Room.charge(sizeBytes);
      if (surplus > 0 && reserved && !ended) {
        allocation = pool.shrink(allocation, sizeBytes);
        room.release(surplus);
      }
    }

    @Override
    public synchronized Extent commit() throws IOException {
      checkOpen();
      Extent placed = extent;
      if (placed == null) {
        placed = commitAlone();
        extent = placed;
      }
      committed = true;
      copyCount.incrementAndGet();
      return placed;
    }

    private Extent commitAlone() throws IOException { // GUARDED_BY(this)
      Allocation whole = allocation.with(allocation.length(), end);
      pool.publish(whole);
      allocation = whole;
      reader = openAlone(whole);
      reserved = false;
      room.settle(whole.length());
      return new Extent(whole.number(), 0, end);
    }

    @Override
    public synchronized void close() {
      if (ended) {
        return;
      }
      ended = true;
      if (reader != null) {
        reader.close();
      }
      if (reserved) {
        pool.release(allocation);
        room.release(allocation.length());
        keepSpare();
      } else if (!committed && extent != null) {
        bundles.drop(extent);
      }
      memory.leave();
    }
  }
}
