package io.pmfs.tier;

import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.UUID;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * The entries of a pool's allocations, one processor cache line each. An entry is valid if its
 * checksum matches; one store to its number invalidates it. The table is its own index: an
 * allocation's number contains the slot of its entry.
 */
final class PoolTable {
  static final int ENTRY_BYTES = 64;

  private static final int SLOT_BITS = 28;
  static final long MOST_ENTRIES = 1L << SLOT_BITS;

  /** Serial numbers wrap around after 34 billion allocations. */
  static final long SERIAL_MASK = (1L << (63 - SLOT_BITS)) - 1;

  private static final int SCANNED_ENTRIES = 16 << 10;

  private static final int OFFSET = 8;
  private static final int LENGTH = 16;
  private static final int SIZE = 24;
  private static final int KIND = 32;
  private static final int CHECKSUM = ENTRY_BYTES - 4;

  private final MappedMemory memory;
  private final PoolSuperblock pool;
  private final byte[] salt;

  PoolTable(MappedMemory memory, PoolSuperblock pool) {
    this.memory = memory;
    this.pool = pool;
    UUID id = pool.id();
    this.salt =
        ByteBuffer.allocate(16)
            .putLong(id.getMostSignificantBits())
            .putLong(id.getLeastSignificantBits())
            .array();
  }

  int slots() {
    return Math.toIntExact(pool.entryCount());
  }

  /** A serial number, from 1; the first follows the last. */
  static long serial(long count) {
    return Math.max(1, count & SERIAL_MASK);
  }

  static long number(long serial, int slot) {
    return (serial & SERIAL_MASK) << SLOT_BITS | slot;
  }

  static int slot(long number) {
    return (int) (number & (MOST_ENTRIES - 1));
  }

  /** The allocation with this number; null if there is none. */
  @Nullable Allocation find(long number) {
    int slot = slot(number);
    Allocation found = slot < slots() ? decode(slot) : null;
    return found != null && found.number() == number ? found : null;
  }

  /** The allocation in a slot; null if the slot is free or its content is not trustworthy. */
  @Nullable Allocation decode(int slot) {
    ByteBuffer entry = entry(slot);
    long number = entry.getLong(0);
    if (number <= 0 || slot(number) != slot || entry.getInt(CHECKSUM) != checksum(entry, number)) {
      return null;
    }
    Allocation found =
        new Allocation(
            number,
            entry.getLong(OFFSET),
            entry.getLong(LENGTH),
            entry.getLong(SIZE),
            entry.getInt(KIND) == 1);
    return isPossible(found) ? found : null;
  }

  private boolean isPossible(Allocation found) {
    return found.offset() >= pool.dataOffset()
        && found.offset() % PoolSuperblock.UNIT_BYTES == 0
        && found.length() >= 0
        && found.length() % PoolSuperblock.UNIT_BYTES == 0
        && found.length() <= pool.sizeBytes() - found.offset()
        && found.size() >= 0
        && found.size() <= found.length();
  }

  /** Writes an entry and persists it; the allocation's bytes must have been persisted before. */
  void write(Allocation allocation) {
    int slot = slot(allocation.number());
    ByteBuffer entry = entry(slot);
    entry.putLong(0, 0);
    entry.putLong(OFFSET, allocation.offset());
    entry.putLong(LENGTH, allocation.length());
    entry.putLong(SIZE, allocation.size());
    entry.putInt(KIND, allocation.isBundle() ? 1 : 0);
    entry.put(KIND + 4, new byte[CHECKSUM - KIND - 4]);
    entry.putInt(CHECKSUM, checksum(entry, allocation.number()));
    VarHandle.releaseFence();
    entry.putLong(0, allocation.number());
    persist(slot);
  }

  /** Invalidates an entry and persists that. */
  void erase(int slot) {
    entry(slot).putLong(0, 0);
    persist(slot);
  }

  /** The next slot with any content, valid or not; -1 if there is none. */
  int nextUsed(int from) {
    for (int slot = from; slot < slots(); slot += SCANNED_ENTRIES) {
      int count = Math.min(SCANNED_ENTRIES, slots() - slot);
      ByteBuffer entries = memory.slice(offset(slot), count * ENTRY_BYTES);
      for (int i = 0; i < count; i++) {
        if (entries.getLong(i * ENTRY_BYTES) != 0) {
          return slot + i;
        }
      }
    }
    return -1;
  }

  private ByteBuffer entry(int slot) {
    return memory.slice(offset(slot), ENTRY_BYTES).order(ByteOrder.LITTLE_ENDIAN);
  }

  private void persist(int slot) {
    memory.persist(offset(slot), ENTRY_BYTES);
  }

  private long offset(int slot) {
    return pool.tableOffset() + (long) slot * ENTRY_BYTES;
  }

  /** The checksum includes the pool's identifier: entries of an earlier pool do not match. */
  private int checksum(ByteBuffer entry, long number) {
    CRC32C crc = new CRC32C();
    crc.update(salt);
    crc.update(
        ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(0, number).array());
    crc.update(entry.duplicate().position(OFFSET).limit(CHECKSUM));
    return (int) crc.getValue();
  }

  /**
   * A range of a pool that belongs to one copy, or to a bundle of many.
   *
   * @param number from 1, not reused
   * @param offset the offset in the pool
   * @param length bytes of the pool that it uses, in whole units
   * @param size bytes of the copy; 0 for a bundle
   */
  record Allocation(long number, long offset, long length, long size, boolean isBundle) {
    Allocation with(long newLength, long newSize) {
      return new Allocation(number, offset, newLength, newSize, isBundle);
    }
  }
}
