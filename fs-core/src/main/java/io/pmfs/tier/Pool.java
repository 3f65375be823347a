package io.pmfs.tier;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.tier.PoolTable.Allocation;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Allocations in a mapped memory that survive any crash: an allocation exists from when its entry
 * is persisted until the entry is invalidated, which is one store.
 *
 * <p>INVARIANT: valid entries and reserved allocations never overlap. Memory becomes free only
 * after the invalidated entry was persisted and {@link #release} was called. Thread-safe.
 */
final class Pool {
  private static final Logger log = LoggerFactory.getLogger(Pool.class);

  /** How many bytes at each end must be zero for a memory to count as empty. */
  static final int EMPTY_BYTES = 1 << 20;

  /** Serial numbers that a session may use before it records more in the superblock. */
  private static final long SERIALS = 1L << 20;

  private final MappedMemory memory;
  private final PoolTable table;
  private final PoolSpace space; // GUARDED_BY(this)
  private final BitSet slots = new BitSet(); // GUARDED_BY(this); slots in use

  private final UUID id;
  private PoolSuperblock superblock; // GUARDED_BY(this)
  private long nextSerial; // GUARDED_BY(this)
  private int nextSlot; // GUARDED_BY(this)

  private Pool(MappedMemory memory, PoolSuperblock superblock) {
    this.memory = memory;
    this.id = superblock.id();
    this.superblock = superblock;
    this.nextSerial = superblock.nextSerial();
    this.table = new PoolTable(memory, superblock);
    this.space = new PoolSpace(superblock.dataOffset(), superblock.dataBytes());
  }

  /**
   * Opens a pool, or creates one in empty memory.
   *
   * @param dataset the dataset whose copies it holds
   * @param random for the identifier of a new pool
   * @throws PoolException if the memory holds something else, and must not be written to
   */
  static Pool open(MappedMemory memory, String dataset, RandomGenerator random) throws IOException {
    PoolSuperblock found = find(memory);
    if (found == null) {
      found = initialise(memory, dataset, random);
    } else if (!found.dataset().equals(dataset)) {
      throw new PoolException(
          ("holds copies of another dataset, %s; name another pool,"
                  + " or overwrite this one with --format")
              .formatted(found.dataset()));
    } else if (found.sizeBytes() > memory.size()) {
      throw new PoolException(
          "has %d bytes instead of the %d it was created with; restore its size, or overwrite it"
                  .formatted(memory.size(), found.sizeBytes())
              + " with --format");
    }
    memory.fill();
    Pool pool = new Pool(memory, found);
    pool.noteSerials();
    pool.readTable();
    return pool;
  }

  /** Finds the superblock of the memory; null if the memory is empty. */
  private static @Nullable PoolSuperblock find(MappedMemory memory) throws PoolException {
    if (memory.size() < EMPTY_BYTES) {
      throw new PoolException(
          "has %d bytes, too few for a pool; it needs at least 8MiB".formatted(memory.size()));
    }
    PoolSuperblock latest = null;
    boolean isPool = false;
    int version = PoolSuperblock.VERSION;
    for (long place : PoolSuperblock.PLACES) {
      ByteBuffer bytes = memory.slice(place, PoolSuperblock.SIZE);
      if (PoolSuperblock.hasMagic(bytes)) {
        isPool = true;
        version = PoolSuperblock.version(bytes);
      }
      PoolSuperblock block = PoolSuperblock.decode(bytes);
      if (block != null && (latest == null || block.update() > latest.update())) {
        latest = block;
      }
    }
    if (latest != null || (!isPool && isEmpty(memory))) {
      return latest;
    }
    if (!isPool) {
      throw new PoolException(
          "is neither empty nor a pool, so it is left unchanged; --format overwrites its content");
    }
    throw new PoolException(
        version == PoolSuperblock.VERSION
            ? "is a damaged pool; --format makes it an empty one"
            : "is a pool of format %d, and this version reads %d; use the version that made it, or"
                    .formatted(version, PoolSuperblock.VERSION)
                + " overwrite it with --format");
  }

  private static boolean isEmpty(MappedMemory memory) {
    return isZero(memory.slice(0, EMPTY_BYTES))
        && isZero(memory.slice(memory.size() - EMPTY_BYTES, EMPTY_BYTES));
  }

  private static boolean isZero(ByteBuffer bytes) {
    for (int at = 0; at < bytes.limit(); at += Long.BYTES) {
      if (bytes.getLong(at) != 0) {
        return false;
      }
    }
    return true;
  }

  private static PoolSuperblock initialise(
      MappedMemory memory, String dataset, RandomGenerator random) throws IOException {
    if (dataset.getBytes(UTF_8).length > PoolSuperblock.LARGEST_NAME_BYTES) {
      throw new IllegalArgumentException(dataset);
    }
    // Records of an earlier pool, if any, must not match allocations of this one.
    long serial = 1 + (random.nextLong() & (PoolTable.SERIAL_MASK >>> 1));
    PoolSuperblock made =
        PoolSuperblock.of(
            new UUID(random.nextLong(), random.nextLong()), dataset, memory.size(), serial);
    if (made == null) {
      throw new PoolException(
          "has %d bytes, too few for a pool; it needs at least 8MiB".formatted(memory.size()));
    }
    memory.fill();
    write(memory, made);
    return made;
  }

  /** Writes the two superblocks one after the other: at a power failure, one of them is intact. */
  private static void write(MappedMemory memory, PoolSuperblock block) throws IOException {
    for (long place : PoolSuperblock.PLACES) {
      block.encode(memory.slice(place, PoolSuperblock.SIZE));
      memory.sync(place, PoolSuperblock.SIZE);
    }
  }

  /**
   * Makes the next {@link #open} treat the memory as empty, whatever its content.
   *
   * @throws IOException if writing failed
   */
  static void wipe(MappedMemory memory) throws IOException {
    for (long offset : new long[] {0, Math.max(0, memory.size() - EMPTY_BYTES)}) {
      int size = (int) Math.min(EMPTY_BYTES, memory.size() - offset);
      memory.slice(offset, size).put(new byte[size]);
      memory.sync(offset, size);
    }
  }

  private synchronized void noteSerials() throws IOException {
    superblock = superblock.next(PoolTable.serial(nextSerial + SERIALS));
    write(memory, superblock);
  }

  /**
   * Checks that the memory still holds this pool.
   *
   * @throws IOException if it does not, because another program formatted it
   */
  synchronized void check() throws IOException {
    memory.check(0, PoolSuperblock.PLACES[1] + PoolSuperblock.SIZE, false);
    for (long place : PoolSuperblock.PLACES) {
      PoolSuperblock found = PoolSuperblock.decode(memory.slice(place, PoolSuperblock.SIZE));
      if (found != null && found.id().equals(id)) {
        return;
      }
    }
    throw new IOException("the memory no longer holds this pool: another program wrote to it");
  }

  private synchronized void readTable() {
    long dropped = 0;
    for (int slot = table.nextUsed(0); slot >= 0; slot = table.nextUsed(slot + 1)) {
      Allocation found = table.decode(slot);
      if (found != null && space.take(found.offset(), found.length())) {
        slots.set(slot);
      } else {
        // An incomplete entry, or one of an earlier pool, is not worth a message.
        dropped += found == null ? 0 : 1;
        table.erase(slot);
      }
    }
    if (dropped > 0) {
      log.warn("dropped {} allocations of the pool that overlap others", dropped);
    }
  }

  /** The number of bytes for allocations. */
  synchronized long dataBytes() {
    return superblock.dataBytes();
  }

  /** Whether nothing is allocated or reserved. */
  synchronized boolean isEmpty() {
    return slots.isEmpty();
  }

  /**
   * Reserves an allocation, which is lost with the process until it is {@link #publish published}.
   *
   * @param isSmall whether to place it among the small ones
   * @return null if there is no room for the allocation or for its entry
   */
  synchronized @Nullable Allocation reserve(long bytes, boolean isSmall, boolean isBundle)
      throws IOException {
    int slot = slots.nextClearBit(nextSlot);
    if (slot >= table.slots()) {
      slot = slots.nextClearBit(0);
    }
    long offset = slot < table.slots() ? space.take(bytes, isSmall) : -1;
    if (offset < 0) {
      return null;
    }
    slots.set(slot);
    nextSlot = slot + 1;
    if (nextSerial == superblock.nextSerial()) {
      noteSerials();
    }
    long number = PoolTable.number(nextSerial, slot);
    nextSerial = PoolTable.serial(nextSerial + 1);
    return new Allocation(number, offset, Room.charge(bytes), 0, isBundle);
  }

  /** Releases the part of a reservation beyond this size. */
  synchronized Allocation shrink(Allocation reserved, long bytes) {
    long length = Room.charge(bytes);
    space.free(reserved.offset() + length, reserved.length() - length);
    return reserved.with(length, reserved.size());
  }

  /** Makes an allocation permanent; its bytes must have been written and persisted. */
  void publish(Allocation allocation) {
    table.write(allocation);
  }

  /** Invalidates an allocation; its memory is not reused until {@link #release}. */
  void withdraw(Allocation allocation) {
    table.erase(PoolTable.slot(allocation.number()));
  }

  /** Makes the memory of a withdrawn or unpublished allocation reusable. */
  synchronized void release(Allocation allocation) {
    slots.clear(PoolTable.slot(allocation.number()));
    space.free(allocation.offset(), allocation.length());
  }

  /** The published allocation with this number; null if there is none. */
  @Nullable Allocation find(long number) {
    return table.find(number);
  }

  /** Passes all published allocations to the visitor. */
  void forEach(Consumer<Allocation> visitor) {
    int slot = 0;
    while ((slot = nextTaken(slot)) >= 0) {
      Allocation found = table.decode(slot);
      if (found != null) {
        visitor.accept(found);
      }
      slot++;
    }
  }

  private synchronized int nextTaken(int from) {
    return slots.nextSetBit(from);
  }
}
