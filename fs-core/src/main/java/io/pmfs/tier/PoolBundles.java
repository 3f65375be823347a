package io.pmfs.tier;

import io.pmfs.tier.PoolTable.Allocation;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Bundles as allocations of a pool, all of the same length, which is charged from the start. A
 * bundle of an earlier session is not appended to: nothing in it says where its last copy ends.
 *
 * <p>Keeps a spare bundle to which {@link Bundles} can move copies, because otherwise a full pool
 * could not be compacted. Called by one thread at a time, from {@link Bundles}.
 */
final class PoolBundles implements BundleStore {
  private final Pool pool;
  private final MemoryUse memory;
  private final Room room;
  private final long bundleBytes;
  private @Nullable Allocation spare; // GUARDED_BY(this)
  private boolean spareIsNext; // GUARDED_BY(this)

  PoolBundles(Pool pool, MemoryUse memory, Room room, long bundleBytes) {
    this.pool = pool;
    this.memory = memory;
    this.room = room;
    this.bundleBytes = bundleBytes;
  }

  @Override
  public List<StoredBundle> list() throws IOException {
    List<Allocation> found = new ArrayList<>();
    pool.forEach(
        allocation -> {
          if (allocation.isBundle()) {
            found.add(allocation);
          }
        });
    found.sort(Comparator.comparingLong(Allocation::number));
    List<StoredBundle> bundles = new ArrayList<>();
    for (Allocation allocation : found) {
      bundles.add(new PoolBundle(allocation, allocation.length()));
    }
    return bundles;
  }

  @Override
  public @Nullable StoredBundle create() throws IOException {
    Allocation allocation = takeSpare();
    if (allocation != null) {
      room.found(bundleBytes);
    } else {
      allocation = reserve();
    }
    if (allocation == null) {
      return null;
    }
    pool.publish(allocation);
    return new PoolBundle(allocation, 0);
  }

  private @Nullable Allocation reserve() throws IOException {
    if (!room.reserve(bundleBytes)) {
      return null;
    }
    Allocation allocation = pool.reserve(bundleBytes, false, true);
    if (allocation == null) {
      room.release(bundleBytes);
    } else {
      room.settle(bundleBytes);
    }
    return allocation;
  }

  private synchronized @Nullable Allocation takeSpare() {
    Allocation taken = spareIsNext ? spare : null;
    if (spareIsNext) {
      spare = null;
      spareIsNext = false;
    }
    return taken;
  }

  /** Reserves a spare bundle, if there is none and there is memory for one. */
  synchronized void keepSpare() throws IOException {
    if (spare == null) {
      spare = pool.reserve(bundleBytes, false, true);
    }
  }

  /**
   * Makes {@link #create} use the spare bundle next, beyond the capacity; false if there is none.
   */
  synchronized boolean useSpare() {
    spareIsNext = spare != null;
    return spareIsNext;
  }

  /** An existing bundle. */
  private final class PoolBundle implements StoredBundle {
    private final Allocation allocation;
    private final long size;
    private volatile boolean deleted;

    PoolBundle(Allocation allocation, long size) throws IOException {
      this.allocation = allocation;
      this.size = size;
      memory.enter();
    }

    @Override
    public long number() {
      return allocation.number();
    }

    @Override
    public long size() {
      return size;
    }

    @Override
    public long limit() {
      return allocation.length();
    }

    @Override
    public long charge(long sizeBytes) {
      return allocation.length();
    }

    @Override
    public long found() {
      return pool.find(allocation.number()) == null ? -1 : allocation.length();
    }

    @Override
    public void write(long offset, ByteBuffer source) throws IOException {
      memory.write(allocation, offset, source);
    }

    @Override
    public Ranges open() {
      return (offset, count) -> memory.read(allocation, offset, count);
    }

    @Override
    public void delete() {
      deleted = true;
      pool.withdraw(allocation);
    }

    @Override
    public void close() {
      if (deleted) {
        pool.release(allocation);
      }
      memory.leave();
    }
  }
}
