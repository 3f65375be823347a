package io.pmfs.tier;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.UUID;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * The description of a pool, stored twice, so that one is intact after a power failure; the layout
 * is in docs/formats.md.
 *
 * @param update how often it was written; the higher of two is valid
 * @param dataset the dataset whose copies it holds
 * @param sizeBytes size of the whole pool
 * @param tableOffset offset of the first entry
 * @param entryCount number of entries
 * @param dataOffset offset of the first unit of data
 * @param nextSerial the first serial number that no allocation has used
 */
record PoolSuperblock(
    UUID id,
    long update,
    String dataset,
    long sizeBytes,
    long tableOffset,
    long entryCount,
    long dataOffset,
    long nextSerial) {
  static final int VERSION = 1;
  static final int SIZE = 512;

  /** The offsets of the two superblocks. */
  static final long[] PLACES = {0, 4096};

  static final int UNIT_BYTES = 4096;
  static final int LARGEST_NAME_BYTES = 256;

  private static final long MAGIC = 0x6c6f6f7073666d70L; // "pmfspool"
  private static final long TABLE_OFFSET = 64 << 10;
  private static final long BYTES_PER_ENTRY = 32 << 10;

  /** The size that the kernel maps with one entry of its page tables. */
  private static final long DATA_ALIGNMENT = 2 << 20;

  private static final long LEAST_DATA_BYTES = 1 << 20;

  private static final int ID = 16;
  private static final int UPDATE = 32;
  private static final int POOL_SIZE = 40;
  private static final int TABLE = 48;
  private static final int ENTRIES = 56;
  private static final int DATA = 64;
  private static final int NEXT_SERIAL = 72;
  private static final int NAME_SIZE = 80;
  private static final int NAME = 84;
  private static final int CHECKSUM = SIZE - 4;

  /** The superblock of a new pool; null if the memory is too small. */
  static @Nullable PoolSuperblock of(UUID id, String dataset, long memoryBytes, long nextSerial) {
    long size = memoryBytes / UNIT_BYTES * UNIT_BYTES;
    long entries = Math.min(size / BYTES_PER_ENTRY, PoolTable.MOST_ENTRIES);
    long data = roundUp(TABLE_OFFSET + entries * PoolTable.ENTRY_BYTES, DATA_ALIGNMENT);
    return data + LEAST_DATA_BYTES > size
        ? null
        : new PoolSuperblock(id, 1, dataset, size, TABLE_OFFSET, entries, data, nextSerial);
  }

  private static long roundUp(long bytes, long unit) {
    return (bytes + unit - 1) / unit * unit;
  }

  long dataBytes() {
    return sizeBytes - dataOffset;
  }

  /** The next update, with another first serial number. */
  PoolSuperblock next(long serial) {
    return new PoolSuperblock(
        id, update + 1, dataset, sizeBytes, tableOffset, entryCount, dataOffset, serial);
  }

  void encode(ByteBuffer target) {
    target.order(ByteOrder.LITTLE_ENDIAN);
    target.put(0, new byte[SIZE]);
    target.putLong(0, MAGIC);
    target.putInt(8, VERSION);
    target.putInt(12, UNIT_BYTES);
    target.putLong(ID, id.getMostSignificantBits());
    target.putLong(ID + 8, id.getLeastSignificantBits());
    target.putLong(UPDATE, update);
    target.putLong(POOL_SIZE, sizeBytes);
    target.putLong(TABLE, tableOffset);
    target.putLong(ENTRIES, entryCount);
    target.putLong(DATA, dataOffset);
    target.putLong(NEXT_SERIAL, nextSerial);
    byte[] name = dataset.getBytes(UTF_8);
    target.putInt(NAME_SIZE, name.length);
    target.put(NAME, name);
    target.putInt(CHECKSUM, checksum(target));
  }

  private static int checksum(ByteBuffer source) {
    CRC32C crc = new CRC32C();
    crc.update(source.duplicate().position(0).limit(CHECKSUM));
    return (int) crc.getValue();
  }

  static boolean hasMagic(ByteBuffer source) {
    return source.order(ByteOrder.LITTLE_ENDIAN).getLong(0) == MAGIC;
  }

  /** The format version in the superblock, whether or not it is intact. */
  static int version(ByteBuffer source) {
    return source.order(ByteOrder.LITTLE_ENDIAN).getInt(8);
  }

  /** Decodes a superblock; null if it is damaged or has impossible values. */
  static @Nullable PoolSuperblock decode(ByteBuffer source) {
    source.order(ByteOrder.LITTLE_ENDIAN);
    int nameSize = source.getInt(NAME_SIZE);
    if (!hasMagic(source)
        || version(source) != VERSION
        || source.getInt(12) != UNIT_BYTES
        || source.getInt(CHECKSUM) != checksum(source)
        || nameSize < 0
        || nameSize > LARGEST_NAME_BYTES) {
      return null;
    }
    byte[] name = new byte[nameSize];
    source.get(NAME, name);
    PoolSuperblock block =
        new PoolSuperblock(
            new UUID(source.getLong(ID), source.getLong(ID + 8)),
            source.getLong(UPDATE),
            new String(name, UTF_8),
            source.getLong(POOL_SIZE),
            source.getLong(TABLE),
            source.getLong(ENTRIES),
            source.getLong(DATA),
            source.getLong(NEXT_SERIAL));
    return block.isPossible() ? block : null;
  }

  private boolean isPossible() {
    return sizeBytes > 0
        && sizeBytes % UNIT_BYTES == 0
        && tableOffset >= PLACES[1] + SIZE
        && tableOffset % PoolTable.ENTRY_BYTES == 0
        && entryCount > 0
        && entryCount <= PoolTable.MOST_ENTRIES
        && tableOffset <= dataOffset - entryCount * PoolTable.ENTRY_BYTES
        && dataOffset % UNIT_BYTES == 0
        && dataOffset < sizeBytes
        && nextSerial >= 0;
  }
}
