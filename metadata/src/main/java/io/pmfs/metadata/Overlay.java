package io.pmfs.metadata;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Changes that are not in the state, in memory: what is looked through before the state, or stands
 * in its place. A value is preceded by 1; 0 stands for what was deleted, and under the bare number
 * of a group for all that the state has of it.
 */
final class Overlay implements AutoCloseable {
  private static final byte[] DELETED = {0};
  private static final int POURED_AT_ONCE = 1024;

  private final RocksStore memory;

  Overlay(RocksStore memory) {
    this.memory = memory;
  }

  /** What the overlay says of a key; null if it says nothing. */
  byte @Nullable [] find(Family family, byte[] key) {
    byte[] found = memory.get(family, key);
    if (found == null && family.grouped() && isGroupGone(family, key)) {
      return DELETED;
    }
    return found;
  }

  /** Whether of a group only counts what is here. */
  boolean isGroupGone(Family family, byte[] key) {
    return memory.get(family, Arrays.copyOf(key, Long.BYTES)) != null;
  }

  /** The value that was found; null if it was deleted. */
  static byte @Nullable [] value(byte[] found) {
    return found[0] == 0 ? null : Arrays.copyOfRange(found, 1, found.length);
  }

  RocksStore.Cursor cursor(Family family, byte[] from, boolean inGroup) {
    return memory.cursor(family, from, inGroup);
  }

  /** Whether a key is no pair but speaks of a group. */
  static boolean isMark(Family family, byte[] key) {
    return family.grouped() && key.length == Long.BYTES;
  }

  void apply(List<Change> changes) {
    List<Change> kept = new ArrayList<>(changes.size());
    for (Change change : changes) {
      byte[] value = change.value();
      if (change.isGroup()) {
        // The group's own pairs go first, so that the mark and what follows stay.
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
   * Passes all changes on, so that a directory is listed only when all of its names are there: what
   * is written of them may end anywhere.
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
    return inode == null || inode.listing() == null
        ? value
        : Values.inode(RocksImport.withListing(inode, null, inode.attributes()));
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
