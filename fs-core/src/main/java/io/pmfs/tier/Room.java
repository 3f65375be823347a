package io.pmfs.tier;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What copies take of a tier's capacity, and what was reserved for those in the making. Safe for
 * use by many threads.
 */
final class Room {
  /** Room is counted in the allocation unit that ext4 and XFS use. */
  static final long UNIT_BYTES = 4096;

  private final long capacityBytes;
  private final long keepFreeBytes;
  private final Disk disk;

  /** Reservations included. INVARIANT: not above the capacity, but for what is {@link #move}d. */
  private final AtomicLong usedBytes = new AtomicLong();

  /** Whether the disk had nothing more to give when room was asked for last. */
  private volatile boolean diskWasFull;

  /** The part of {@link #usedBytes} that is perhaps not on the disk yet. */
  private final AtomicLong reservedBytes = new AtomicLong();

  /** What the tier lies on, which others use as well. */
  interface Disk {
    /** Nobody else uses it. */
    Disk OWN = () -> Long.MAX_VALUE;

    /** Bytes that are free. */
    long usableBytes() throws IOException;
  }

  /**
   * Room of which nothing is used.
   *
   * @param keepFreeBytes what is left free on the disk, whoever uses the rest
   */
  Room(long capacityBytes, long keepFreeBytes, Disk disk) {
    this.capacityBytes = capacityBytes;
    this.keepFreeBytes = keepFreeBytes;
    this.disk = disk;
  }

  /** What a file of that size takes. */
  static long charge(long sizeBytes) {
    return Math.addExact(sizeBytes, UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
  }

  /** Whether a file of that size could ever fit. */
  boolean couldHold(long sizeBytes) {
    return sizeBytes <= capacityBytes && charge(sizeBytes) <= capacityBytes;
  }

  long used() {
    return usedBytes.get();
  }

  /** Whether the disk has more than what is to be left free, and a little. */
  boolean isDiskFree() throws IOException {
    return disk.usableBytes() > keepFreeBytes + UNIT_BYTES;
  }

  /** Whether it had not when room was asked for last; asks no disk, which may hang. */
  boolean wasDiskFull() {
    return diskWasFull;
  }

  /** Sets bytes aside; false if there are not so many. */
  boolean reserve(long bytes) throws IOException {
    long used;
    do {
      used = usedBytes.get();
      if (bytes > capacityBytes - used) {
        return false;
      }
    } while (!usedBytes.compareAndSet(used, used + bytes));
    return reserveOnDisk(bytes);
  }

  /** The same, for something that will make as much room elsewhere: the capacity is no limit. */
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

  /** What was reserved is not needed. */
  void release(long bytes) {
    reservedBytes.addAndGet(-bytes);
    usedBytes.addAndGet(-bytes);
  }

  /** What was reserved is on the disk. */
  void settle(long bytes) {
    reservedBytes.addAndGet(-bytes);
  }

  /** So much was found on the disk. */
  void found(long bytes) {
    usedBytes.addAndGet(bytes);
  }

  /** So much went from the disk. */
  void free(long bytes) {
    usedBytes.addAndGet(-bytes);
  }
}
