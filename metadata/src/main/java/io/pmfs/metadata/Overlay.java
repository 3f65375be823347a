package io.pmfs.metadata;

import io.pmfs.table.Change;
import io.pmfs.table.Column;
import io.pmfs.table.Family;
import io.pmfs.table.RocksStore;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Changes in memory that are not in the state. Reads look here first and then in the state, if
 * there is one. The byte 1 precedes a value. The byte 0 stands for a deleted pair; under a group's
 * number alone it deletes the whole group in the state.
 */
final class Overlay implements AutoCloseable {
  private static final byte[] DELETED = {0};
  private static final int POURED_AT_ONCE = 1024;

  private final RocksStore memory;

  Overlay(RocksStore memory) {
    this.memory = memory;
  }

  /** The overlay's value for a key; null if it has none. */
  byte @Nullable [] find(Column family, byte[] key) {
    byte[] found = memory.get(family, key);
    if (found == null && family.grouped() && isGroupGone(family, key)) {
      return DELETED;
    }
    return found;
  }

  /** Whether the group was deleted from the state, so that only the overlay counts. */
  boolean isGroupGone(Column family, byte[] key) {
    return memory.get(family, Arrays.copyOf(key, Long.BYTES)) != null;
  }

  /** Decodes a found value; null if it was deleted. */
  static byte @Nullable [] value(byte[] found) {
    return found[0] == 0 ? null : Arrays.copyOfRange(found, 1, found.length);
  }

  RocksStore.Cursor cursor(Column family, byte[] from, boolean inGroup) {
    return memory.cursor(family, from, inGroup);
  }

  /** Whether a key is the mark of a group instead of a pair's. */
  static boolean isMark(Column family, byte[] key) {
    return family.grouped() && key.length == Long.BYTES;
  }

  void apply(List<Change> changes) {
    List<Change> kept = new ArrayList<>(changes.size());
    for (Change change : changes) {
      byte[] value = change.value();
      if (change.isGroup()) {
        // Apply the group's deletion first, so that the mark and the changes after it stay.
        kept.add(change);
        memory.apply(kept, false);
        kept.clear();
      }
      kept.add(Change.put(change.family(), change.key(), value == null ? DELETED : kept(value)));
    }
    memory.apply(kept, false);
  }

  private static byte[] kept(byte[] value) {
    byte[] kept = new byte[value.length + 1];
    kept[0] = 1;
    System.arraycopy(value, 0, kept, 1, value.length);
    return kept;
  }

  /**
   * Passes all changes on, and the mark of a complete listing only after all of its names, because
   * the write may stop at any point.
   */
  void pour(Consumer<List<Change>> state) {
    pour(Family.INODES, state, true);
    for (Family family : Family.values()) {
      if (family != Family.INODES) {
        pour(family, state, false);
      }
    }
    pour(Family.INODES, state, false);
  }

  private void pour(Family family, Consumer<List<Change>> state, boolean unlisted) {
    List<Change> some = new ArrayList<>();
    try (RocksStore.Cursor cursor = memory.cursor(family, new byte[0], false)) {
      for (; cursor.isValid(); cursor.next()) {
        byte[] key = cursor.key();
        byte[] value = value(cursor.value());
        if (isMark(family, key)) {
          some.add(Change.deleteGroup(family, key));
        } else if (!Keys.isListedMark(family, key)) {
          byte[] poured = unlisted ? unlisted(key, value) : value;
          some.add(poured == null ? Change.delete(family, key) : Change.put(family, key, poured));
        }
        if (some.size() >= POURED_AT_ONCE) {
          state.accept(List.copyOf(some));
          some.clear();
        }
      }
    }
    state.accept(some);
  }

  private static byte @Nullable [] unlisted(byte[] key, byte @Nullable [] value) {
    Inode inode = value == null ? null : Values.inode(Keys.first(key), value);
    return inode == null || inode.listing() == null ? value : Values.inode(inode.withListing(null));
  }

  boolean isIn(@Nullable RocksStore store) {
    return memory == store;
  }

  long sizeBytes() {
    return memory.sizeBytes();
  }

  @Override
  public void close() {
    memory.close();
  }
}
