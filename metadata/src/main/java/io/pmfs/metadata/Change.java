package io.pmfs.metadata;

import org.jspecify.annotations.Nullable;

/** One change: of a key-value pair, or of all pairs of a group. */
final class Change {
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

  static Change put(Column family, byte[] key, byte[] value) {
    return new Change(family, key, value, false);
  }

  static Change delete(Column family, byte[] key) {
    return new Change(family, key, null, false);
  }

  /** Deletes every key of a grouped family that starts with this number. */
  static Change deleteGroup(Column family, byte[] number) {
    return new Change(family, number, null, true);
  }

  Column family() {
    return family;
  }

  /** The key; for a group, its number. */
  byte[] key() {
    return key;
  }

  /** The new value; null to delete. */
  byte @Nullable [] value() {
    return value;
  }

  boolean isGroup() {
    return isGroup;
  }
}
