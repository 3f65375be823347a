package io.pmfs.fuse;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Records in a mapped file which inodes have which backing ids. The file survives this process: the
 * kernel keeps both, and a daemon that takes over the session must continue with them. Slots of 16
 * bytes: inode number with the generation in the highest byte, backing id, open count; an inode of
 * 0 marks a free slot. The file grows in pieces as files are opened. It exists as long as the
 * session, so no other program reads its format.
 */
final class BackingLedger implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(BackingLedger.class);

  static final int PIECE_SLOTS = 16 * 1024;

  /** Room for four million open files. */
  static final int PIECES_MAX = 256;

  private static final int SLOT_BYTES = 16;
  private static final int PIECE_BYTES = PIECE_SLOTS * SLOT_BYTES;

  private static final int ID = 8;
  private static final int OPENS = 12;
  private static final int GENERATION_SHIFT = 56;

  /** A slot in use. */
  record Entry(int slot, long inode, long generation, int id, int opens) {}

  private final FileChannel file; // GUARDED_BY(this)
  private final List<MappedByteBuffer> pieces = new ArrayList<>(); // GUARDED_BY(this)
  private final BitSet used = new BitSet(); // GUARDED_BY(this)

  /** Opens the file, or creates it. */
  BackingLedger(Path path) throws IOException {
    file = FileChannel.open(path, CREATE, READ, WRITE);
    for (long size = file.size(); pieces.size() * (long) PIECE_BYTES < size; ) {
      map();
    }
    for (int slot = 0; slot < slots(); slot++) {
      if (inode(slot) != 0) {
        used.set(slot);
      }
    }
  }

  private int slots() {
    return pieces.size() * PIECE_SLOTS;
  }

  /** Maps the next piece. Writes it first, because a mapping does not report a full disk. */
  private void map() throws IOException {
    long begin = pieces.size() * (long) PIECE_BYTES;
    ByteBuffer zeros = ByteBuffer.allocate((int) Math.max(0, begin + PIECE_BYTES - file.size()));
    for (long at = file.size(); zeros.hasRemaining(); ) {
      at += file.write(zeros, at);
    }
    MappedByteBuffer piece = file.map(FileChannel.MapMode.READ_WRITE, begin, PIECE_BYTES);
    piece.order(ByteOrder.nativeOrder());
    pieces.add(piece);
  }

  /** All entries that were put and not removed. */
  synchronized List<Entry> entries() {
    List<Entry> entries = new ArrayList<>();
    used.stream()
        .forEach(
            slot -> {
              MappedByteBuffer piece = piece(slot);
              int at = at(slot);
              long inode = inode(slot);
              entries.add(
                  new Entry(
                      slot,
                      inode & (1L << GENERATION_SHIFT) - 1,
                      inode >>> GENERATION_SHIFT,
                      piece.getInt(at + ID),
                      piece.getInt(at + OPENS)));
            });
    return entries;
  }

  /**
   * Records an id with one open; returns its slot, or -1 if there is no room.
   *
   * @param generation at most 255
   */
  synchronized int put(long inode, long generation, int id) {
    int slot = used.nextClearBit(0);
    if (slot >= slots() && !grow()) {
      return -1;
    }
    used.set(slot);
    MappedByteBuffer piece = piece(slot);
    int at = at(slot);
    // A slot is in use once it has an inode.
    piece.putInt(at + ID, id);
    piece.putInt(at + OPENS, 1);
    VarHandle.releaseFence();
    piece.putLong(at, inode | generation << GENERATION_SHIFT);
    return slot;
  }

  private boolean grow() {
    if (pieces.size() >= PIECES_MAX) {
      return false;
    }
    try {
      map();
      return true;
    } catch (IOException e) {
      log.debug("cannot write the ledger of backing files: {}", e.toString());
      return false;
    }
  }

  /** Records how often an id is open. */
  synchronized void setOpens(int slot, int opens) {
    if (slot >= 0) {
      piece(slot).putInt(at(slot) + OPENS, opens);
    }
  }

  synchronized void remove(int slot) {
    if (slot >= 0) {
      piece(slot).putLong(at(slot), 0);
      used.clear(slot);
    }
  }

  private long inode(int slot) {
    return piece(slot).getLong(at(slot));
  }

  private MappedByteBuffer piece(int slot) {
    return pieces.get(slot / PIECE_SLOTS);
  }

  private static int at(int slot) {
    return slot % PIECE_SLOTS * SLOT_BYTES;
  }

  /** Records nothing more that needs more room. */
  @Override
  public synchronized void close() {
    try {
      file.close();
    } catch (IOException e) {
      log.debug("cannot close the ledger of backing files: {}", e.toString());
    }
  }
}
