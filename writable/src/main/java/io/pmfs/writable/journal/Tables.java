package io.pmfs.writable.journal;

import io.pmfs.metadata.FileName;
import io.pmfs.table.TableStore.Table;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;

/** The tables of a writable mount and their keys; numbers are big-endian, so that they sort. */
public final class Tables {
  public static final Table FACTS = new Table("facts", false);

  /** {@link Inode} by number. */
  public static final Table INODES = new Table("inodes", false);

  /** {@link NameRow} by directory, position and name. */
  public static final Table NAMES = new Table("names", true);

  /** {@link Change} by sequence number. */
  public static final Table JOURNAL = new Table("journal", false);

  /**
   * Deferred changes by sequence number: the {@link Refusal}; empty if the change only depends on
   * another one.
   */
  public static final Table DEFERRED = new Table("deferred", false);

  /** Inode numbers by device and inode number at the source. */
  public static final Table SOURCES = new Table("sources", false);

  /** {@link DataRow} by inode number and generation. */
  public static final Table DATA = new Table("data", true);

  /** Obsolete data files, in the order in which they became so. */
  public static final Table GARBAGE = new Table("garbage", false);

  /** Data files that are being filled, by inode number and generation: the index of their place. */
  public static final Table COPYING = new Table("copying", false);

  /**
   * Files written since they were last announced: the inode number, {@link State#leastSize}, {@link
   * State#begun}.
   */
  public static final Table WRITING = new Table("writing", false);

  /** Inode numbers without a name. */
  public static final Table NAMELESS = new Table("nameless", false);

  /** Names at the source of files with several, by inode number, directory and name. */
  public static final Table HOMES = new Table("homes", true);

  /** Changed extended attributes by inode number and name. */
  public static final Table XATTRS = new Table("xattrs", true);

  /** Inode numbers created by requests, by the number of the request. */
  public static final Table RESULTS = new Table("results", false);

  /** What a step at the source is about to do, by the sequence number of its change. */
  public static final Table INTENTS = new Table("intents", false);

  /** Data files that the source has too, in the order in which they were drained. */
  public static final Table CLEAN = new Table("clean", false);

  /** Conflict files, by sequence number and path. */
  public static final Table CONFLICTS = new Table("conflicts", false);

  /** Directories of data files, by the place numbers in {@link DataRow}. */
  public static final Table PLACES = new Table("places", false);

  public static final List<Table> ALL =
      List.of(
          FACTS, INODES, NAMES, JOURNAL, DEFERRED, SOURCES, DATA, GARBAGE, COPYING, WRITING,
          NAMELESS, HOMES, XATTRS, RESULTS, INTENTS, CLEAN, CONFLICTS, PLACES);

  private static final long POSITION_BITS = (1L << 61) - 1;
  private static final long FIRST_POSITION = 64;

  private Tables() {}

  public static byte[] key(long number) {
    return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
  }

  public static byte[] key(long first, long second) {
    return ByteBuffer.allocate(2 * Long.BYTES).putLong(first).putLong(second).array();
  }

  public static byte[] nameKey(long directory, FileName name) {
    return key(directory, position(name), name.bytes());
  }

  public static byte[] key(long first, long second, byte[] rest) {
    return ByteBuffer.allocate(2 * Long.BYTES + rest.length)
        .putLong(first)
        .putLong(second)
        .put(rest)
        .array();
  }

  public static byte[] key(long first, FileName name) {
    byte[] rest = name.bytes();
    return ByteBuffer.allocate(Long.BYTES + rest.length).putLong(first).put(rest).array();
  }

  public static long first(byte[] key) {
    return ByteBuffer.wrap(key).getLong(0);
  }

  public static long second(byte[] key) {
    return ByteBuffer.wrap(key).getLong(Long.BYTES);
  }

  public static long third(byte[] key) {
    return ByteBuffer.wrap(key).getLong(2 * Long.BYTES);
  }

  public static FileName nameIn(byte[] key, int offset) {
    return FileName.of(Arrays.copyOfRange(key, offset, key.length));
  }

  /**
   * The position of a name in listings of its directory, at least 64: a hash, so that it does not
   * depend on other names.
   */
  public static long position(FileName name) {
    long hash = 0xcbf29ce484222325L;
    for (byte next : name.bytes()) {
      hash = (hash ^ (next & 0xff)) * 0x100000001b3L;
    }
    hash ^= hash >>> 32;
    hash *= 0xd6e8feb86659fd93L;
    hash ^= hash >>> 32;
    hash *= 0xd6e8feb86659fd93L;
    hash ^= hash >>> 32;
    return FIRST_POSITION + (hash & POSITION_BITS);
  }
}
