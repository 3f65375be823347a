package io.pmfs.tier;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Tracks how much of a tier's capacity copies use, and how much is reserved for unfinished ones.
 * Thread-safe.
 */
final class Room {
  /** Room is counted in the allocation unit that ext4 and XFS use. */
  static final long UNIT_BYTES = 4096;

  private final long capacityBytes;
  private final long keepFreeBytes;
  private final Disk disk;

  /** Includes reservations. INVARIANT: not above the capacity, except for {@link #move}. */
  private final AtomicLong usedBytes = new AtomicLong();

  /** Whether the disk had no room when it was last checked. */
  private volatile boolean diskWasFull;

  /** The part of {@link #usedBytes} that is only reserved. */
  private final AtomicLong reservedBytes = new AtomicLong();

  /** The tier's disk, which others may use as well. */
  interface Disk {
    /** A disk that only the tier uses. */
    Disk OWN = () -> Long.MAX_VALUE;

    /** The number of free bytes. */
    long usableBytes() throws IOException;
  }

  /**
   * Starts with nothing used.
   *
   * @param keepFreeBytes bytes to leave free on the disk, regardless of other users
   */
  Room(long capacityBytes, long keepFreeBytes, Disk disk) {
    this.capacityBytes = capacityBytes;
    this.keepFreeBytes = keepFreeBytes;
    this.disk = disk;
  }

  /** The room that a file of this size uses. */
  static long charge(long sizeBytes) {
    return Math.addExact(sizeBytes, UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
  }

  /** Whether a file of this size could ever fit. */
  boolean couldHold(long sizeBytes) {
    return sizeBytes <= capacityBytes && charge(sizeBytes) <= capacityBytes;
  }

  long used() {
    return usedBytes.get();
  }

  /**
   * The bytes that more copies can use.
   *
   * @param usableBytes the number of free bytes on the disk
   */
  long available(long usableBytes) {
    long left = capacityBytes - usedBytes.get();
    long leftOnDisk = usableBytes - keepFreeBytes - reservedBytes.get();
    return Math.max(0, Math.min(left, leftOnDisk));
  }

  /** Whether the disk has a little more free than must be left. */
  boolean isDiskFree() throws IOException {
    return disk.usableBytes() > keepFreeBytes + UNIT_BYTES;
  }

  /** Whether the disk had no room when last checked. Does not access the disk, which may hang. */
  boolean wasDiskFull() {
    return diskWasFull;
  }

  /** Reserves bytes; false if there is no room. */
  boolean reserve(long bytes) throws IOException {
    return take(bytes) && reserveOnDisk(bytes);
  }

  /** Adds bytes that are on the disk already; false if the capacity has no room for them. */
  boolean take(long bytes) {
    long used;
    do {
      used = usedBytes.get();
      if (bytes > capacityBytes - used) {
        return false;
      }
    } while (!usedBytes.compareAndSet(used, used + bytes));
    return true;
  }

  /** Reserves bytes for a move that frees as many elsewhere, so the capacity is no limit. */
  boolean move(long bytes) throws IOException {
    usedBytes.addAndGet(bytes);
    return reserveOnDisk(bytes);
  }

  private boolean reserveOnDisk(long bytes) throws IOException {
    long reserved = reservedBytes.addAndGet(bytes);
    boolean fits = false;
    try {
      long usable = disk.usableBytes();
      fits = usable - reserved >= keepFreeBytes;
      diskWasFull = !fits && usable <= keepFreeBytes + UNIT_BYTES;
      return fits;
    } finally {
      if (!fits) {
        release(bytes);
      }
    }
  }

  /** Releases a reservation that is not needed. */
  void release(long bytes) {
    reservedBytes.addAndGet(-bytes);
    usedBytes.addAndGet(-bytes);
  }

  /** Converts a reservation into bytes on the disk. */
  void settle(long bytes) {
    reservedBytes.addAndGet(-bytes);
  }

  /** Adds bytes found on the disk. */
  void found(long bytes) {
    usedBytes.addAndGet(bytes);
  }

  /** Subtracts bytes removed from the disk. */
  void free(long bytes) {
    usedBytes.addAndGet(-bytes);
  }
}
