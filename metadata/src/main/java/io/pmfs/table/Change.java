package io.pmfs.table;

import com.google.common.primitives.Longs;
import org.jspecify.annotations.Nullable;

/** One change: of a key-value pair, or of all pairs of a group. */
public final class Change {
  private final Column family;
  private final byte[] key;
  private final byte @Nullable [] value;
  private final boolean isGroup;

  private Change(Column family, byte[] key, byte @Nullable [] value, boolean isGroup) {
    this.family = family;
    this.key = key;
    this.value = value;
    this.isGroup = isGroup;
  }

  public static Change put(Column family, byte[] key, byte[] value) {
    return new Change(family, key, value, false);
  }

  public static Change delete(Column family, byte[] key) {
    return new Change(family, key, null, false);
  }

  /** Deletes every key of a grouped family that starts with this number. */
  public static Change deleteGroup(Column family, byte[] number) {
    return new Change(family, number, null, true);
  }

  public Column family() {
    return family;
  }

  /** The key; for a group, its number. */
  public byte[] key() {
    return key;
  }

  /** The new value; null to delete. */
  public byte @Nullable [] value() {
    return value;
  }

  public boolean isGroup() {
    return isGroup;
  }

  /** The first key after a group. */
  byte[] endOfGroup() {
    return Longs.toByteArray(Longs.fromByteArray(key) + 1);
  }
}
