package io.pmfs.metadata;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.table.Column;
import io.pmfs.table.Family;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Encodes and decodes all keys. Numbers are big-endian, so that the byte order of keys is the order
 * of the numbers. The layout is in docs/formats.md.
 */
final class Keys {
  static final byte[] SUPERBLOCK = {1};
  static final byte[] OPENING = {2};
  static final byte[] NEXT_NUMBER = {3};
  static final byte[] CLEAN_STOP = {4};
  static final byte[] SESSION_ID = {6};
  static final byte[] SESSION_START = {7};

  private static final byte COUNTER = 5;
  private static final byte LOST_NAME = 8;
  private static final byte ACCESS_LIST = 1;

  private Keys() {}

  static byte[] counter(String name) {
    byte[] utf8 = name.getBytes(UTF_8);
    return ByteBuffer.allocate(1 + utf8.length).put(COUNTER).put(utf8).array();
  }

  /** The name of a counter; null if the key is another. */
  static @Nullable String counterName(byte[] key) {
    return key.length > 0 && key[0] == COUNTER ? new String(key, 1, key.length - 1, UTF_8) : null;
  }

  static byte[] lostName(long number) {
    return ByteBuffer.allocate(1 + Long.BYTES).put(LOST_NAME).putLong(number).array();
  }

  /** The number of an inode that lost a name; -1 if the key is another. */
  static long lostName(byte[] key) {
    return key.length > Long.BYTES && key[0] == LOST_NAME ? ByteBuffer.wrap(key).getLong(1) : -1;
  }

  /** The key of data that an inode has once, and the prefix for data that it has several times. */
  static byte[] number(long number) {
    byte[] key = new byte[Long.BYTES];
    putLong(key, 0, number);
    return key;
  }

  /** The key of an inode's access-control list, beside that of its extended attributes. */
  static byte[] accessList(long number) {
    return ByteBuffer.allocate(Long.BYTES + 1).putLong(number).put(ACCESS_LIST).array();
  }

  public static byte[] name(long directory, FileName name) {
    byte[] raw = name.raw();
    byte[] key = new byte[Long.BYTES + raw.length];
    putLong(key, 0, directory);
    System.arraycopy(raw, 0, key, Long.BYTES, raw.length);
    return key;
  }

  static byte[] position(long directory, long position) {
    return twoLongs(directory, position);
  }

  /**
   * In memory only: marks a directory whose names are all present while the state cannot record
   * that. No entry has position 0.
   */
  static byte[] listedMark(long directory) {
    return position(directory, 0);
  }

  static boolean isListedMark(Column family, byte[] key) {
    return family == Family.LISTING && key.length == 2 * Long.BYTES && second(key) == 0;
  }

  static byte[] link(FileIdentity identity) {
    return twoLongs(identity.device(), identity.inode());
  }

  static byte[] alias(long number, long directory, FileName name) {
    byte[] raw = name.raw();
    byte[] key = Arrays.copyOf(twoLongs(number, directory), 2 * Long.BYTES + raw.length);
    System.arraycopy(raw, 0, key, 2 * Long.BYTES, raw.length);
    return key;
  }

  public static byte[] copy(long number, String tier) {
    byte[] utf8 = tier.getBytes(UTF_8);
    return ByteBuffer.allocate(Long.BYTES + utf8.length).putLong(number).put(utf8).array();
  }

  static long first(byte[] key) {
    return ByteBuffer.wrap(key).getLong(0);
  }

  /** The position in a listing key, or the directory in an alias key. */
  static long second(byte[] key) {
    return ByteBuffer.wrap(key).getLong(Long.BYTES);
  }

  public static FileName name(byte[] key) {
    return FileName.wrap(Arrays.copyOfRange(key, Long.BYTES, key.length));
  }

  static FileName aliasName(byte[] key) {
    return FileName.wrap(Arrays.copyOfRange(key, 2 * Long.BYTES, key.length));
  }

  static String tier(byte[] key) {
    return new String(key, Long.BYTES, key.length - Long.BYTES, UTF_8);
  }

  private static byte[] twoLongs(long first, long second) {
    byte[] key = new byte[2 * Long.BYTES];
    putLong(key, 0, first);
    putLong(key, Long.BYTES, second);
    return key;
  }

  private static void putLong(byte[] bytes, int at, long value) {
    for (int i = 0; i < Long.BYTES; i++) {
      bytes[at + i] = (byte) (value >>> (Long.SIZE - Byte.SIZE * (i + 1)));
    }
  }
}
