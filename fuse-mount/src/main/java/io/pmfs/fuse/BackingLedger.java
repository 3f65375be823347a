package io.pmfs.fuse;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/**
 * Which inodes have which backing ids, in a mapped file that survives this process: the kernel
 * keeps both, and a daemon that takes over the session must go on with them. Slots of 16 bytes:
 * inode number, backing id, how often it is open; an inode of 0 is a free slot. Lives as long as a
 * session, so its format is nobody else's.
 */
final class BackingLedger {
  private static final int SLOT_BYTES = 16;
  private static final int SLOTS = 16 * 1024;

  private static final int ID = 8;
  private static final int OPENS = 12;

  /** A slot in use. */
  record Entry(int slot, long inode, int id, int opens) {}

  private final MappedByteBuffer slots;
  private final BitSet used = new BitSet(); // GUARDED_BY(this)

  /** Opens the file, or makes it. */
  BackingLedger(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file, CREATE, READ, WRITE)) {
      slots = channel.map(FileChannel.MapMode.READ_WRITE, 0, (long) SLOTS * SLOT_BYTES);
      slots.order(ByteOrder.nativeOrder());
    }
    for (int slot = 0; slot < SLOTS; slot++) {
      if (inode(slot) != 0) {
        used.set(slot);
      }
    }
  }

  /** What was put and not removed. */
  synchronized List<Entry> entries() {
    List<Entry> entries = new ArrayList<>();
    used.stream()
        .forEach(
            slot -> {
              int at = slot * SLOT_BYTES;
              entries.add(
                  new Entry(slot, inode(slot), slots.getInt(at + ID), slots.getInt(at + OPENS)));
            });
    return entries;
  }

  /** Notes an id that is open once; returns its slot, or -1 if there are too many. */
  synchronized int put(long inode, int id) {
    int slot = used.nextClearBit(0);
    if (slot >= SLOTS) {
      return -1;
    }
    used.set(slot);
    // A slot counts once it has an inode.
    slots.putInt(slot * SLOT_BYTES + ID, id);
    slots.putInt(slot * SLOT_BYTES + OPENS, 1);
    VarHandle.releaseFence();
    slots.putLong(slot * SLOT_BYTES, inode);
    return slot;
  }

  /** Notes how often an id is open. */
  synchronized void setOpens(int slot, int opens) {
    if (slot >= 0) {
      slots.putInt(slot * SLOT_BYTES + OPENS, opens);
    }
  }

  synchronized void remove(int slot) {
    if (slot >= 0) {
      slots.putLong(slot * SLOT_BYTES, 0);
      used.clear(slot);
    }
  }

  private long inode(int slot) {
    return slots.getLong(slot * SLOT_BYTES);
  }
}
