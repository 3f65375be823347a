package io.pmfs.tier;

import io.pmfs.memory.ReadResult;
import io.pmfs.metadata.Extent;
import io.pmfs.tier.PoolTable.Allocation;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * An unfinished copy in a {@link PoolTier}. It has an allocation, which it releases if it goes to a
 * bundle. Thread-safe.
 */
final class IncomingAllocation implements CopyWriter {
  private final PoolTier tier;
  private final Pool pool;
  private final MemoryUse memory;
  private final Bundles bundles;
  private final Room room;

  // LOCK ORDER: IncomingAllocation < PoolTier.
  private Allocation allocation; // GUARDED_BY(this)
  private boolean reserved = true; // GUARDED_BY(this); whether this holds the allocation
  private long end; // GUARDED_BY(this)
  private @Nullable Extent extent; // GUARDED_BY(this)
  private @Nullable CopyReader reader; // GUARDED_BY(this); set once committed or in a bundle
  private boolean committed; // GUARDED_BY(this)
  private boolean ended; // GUARDED_BY(this)

  /**
   * Starts an empty copy.
   *
   * @param memory entered by the caller; {@link #close} leaves it
   * @param allocation reserved in the pool and in the room; the copy now owns both
   */
  IncomingAllocation(
      PoolTier tier,
      Pool pool,
      MemoryUse memory,
      Bundles bundles,
      Room room,
      Allocation allocation) {
    this.tier = tier;
    this.pool = pool;
    this.memory = memory;
    this.bundles = bundles;
    this.room = room;
    this.allocation = allocation;
  }

  @Override
  public Tier tier() {
    return tier;
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
      tier.failed(e);
      throw e;
    }
  }

  @Override
  public synchronized void append(ByteBuffer source) throws IOException {
    checkOpen();
    // It keeps its allocation if it is too large for a bundle, or no bundle can be created.
    Extent bundled = tier.fitsBundle(source.remaining()) ? appendToBundle(source) : null;
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
      tier.failed(e);
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
    tier.countOneMore();
    return placed;
  }

  private Extent commitAlone() throws IOException { // GUARDED_BY(this)
    Allocation whole = allocation.with(allocation.length(), end);
    pool.publish(whole);
    allocation = whole;
    reader = tier.openAlone(whole);
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
      tier.keepSpare();
    } else if (!committed && extent != null) {
      bundles.drop(extent);
    }
    memory.leave();
  }
}
