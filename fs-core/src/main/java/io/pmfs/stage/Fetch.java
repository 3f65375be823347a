package io.pmfs.stage;

import io.pmfs.memory.BufferPool;
import io.pmfs.metadata.Checksums;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.stage.formats.BlockWriter;
import io.pmfs.stage.formats.Blocks;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A copy being filled, block by block. The first thread that claims a block, for a reader or in the
 * background, reads it from the source, once: others that need it wait, then take it from memory or
 * from the tier.
 *
 * <p>The states of a block are MISSING → READING → HELD (in memory) → STORED (in the tier), or back
 * to MISSING if reading failed. The states are guarded by this object's monitor; input and output
 * happen outside it.
 */
final class Fetch {
  private static final byte MISSING = 0;
  private static final byte READING = 1;
  private static final byte HELD = 2;
  private static final byte STORED = 3;

  /** How often a waiting thread checks whether to give up. */
  private static final long PATIENCE_MS = 100;

  /** The number of blocks offered to a source that chooses the next one: 4 GiB. */
  private static final int WINDOW_BLOCKS = 4096;

  /** How a fetch ended. */
  record Ending(Kind kind, String reason) {
    /** The cause of the end. */
    enum Kind {
      /** The copy is whole, committed and recorded. */
      WHOLE,
      /** The source failed, or has another version of the file. */
      SOURCE,
      /** The tier failed or is full. */
      TIER,
      /** The tier has no room to reorder the copy's frames. */
      NO_ROOM,
      /** No thread was left to finish the copy, or nothing needed it. */
      GIVEN_UP
    }

    static final Ending WHOLE = new Ending(Kind.WHOLE, "");
  }

  private final Inode inode;
  private final BlockWriter writer;
  private final boolean staged;
  private final byte[] states; // GUARDED_BY(this)
  private final int[] checksums; // GUARDED_BY(this)
  private final Map<Integer, BufferPool.Loan> held = new HashMap<>(); // GUARDED_BY(this)
  private int readCount; // GUARDED_BY(this)
  private int storedCount; // GUARDED_BY(this)
  private int readingCount; // GUARDED_BY(this)
  private int firstMissing; // GUARDED_BY(this); no block below it is missing
  private long stagedBytes; // GUARDED_BY(this)
  private int users; // GUARDED_BY(this)
  private @Nullable Ending ending; // GUARDED_BY(this)
  private boolean queued; // GUARDED_BY(this)
  private boolean lent; // GUARDED_BY(this)
  private volatile boolean readToItsEnd;

  /**
   * A fetch with no blocks yet.
   *
   * @param staged whether a {@link Staging} fills it, so that it needs no background thread
   */
  Fetch(Inode inode, BlockWriter writer, boolean staged) {
    this.inode = inode;
    this.writer = writer;
    this.staged = staged;
    this.queued = staged;
    this.states = new byte[Blocks.count(inode.attributes().version())];
    this.checksums = new int[states.length];
  }

  Inode inode() {
    return inode;
  }

  /** The kernel reads the file without pmfs, while it is copied; false if the fetch has ended. */
  synchronized boolean lend() {
    if (ending == null) {
      lent = true;
      readToItsEnd = true;
    }
    return ending == null;
  }

  synchronized boolean isLent() {
    return lent;
  }

  /** A reader has reached the end of the file. */
  void readToItsEnd() {
    readToItsEnd = true;
  }

  boolean isReadToItsEnd() {
    return readToItsEnd;
  }

  BlockWriter writer() {
    return writer;
  }

  /** Whether a {@link Staging} began it. */
  boolean isStaged() {
    return staged;
  }

  int blockCount() {
    return states.length;
  }

  int blockSize(int block) {
    return Blocks.size(inode.attributes().version(), block);
  }

  /** Keeps the writer open for the caller until {@link #exit}; false if the fetch has ended. */
  synchronized boolean enter() {
    if (ending != null) {
      return false;
    }
    users++;
    return true;
  }

  void exit() {
    boolean last;
    synchronized (this) {
      users--;
      last = ending != null && users == 0;
    }
    if (last) {
      writer.close();
    }
  }

  /** The result of {@link #claim}. */
  enum Claim {
    /**
     * The caller must read the block and then call {@link #hold}, {@link #stored} or {@link
     * #release}.
     */
    READ_IT,
    /** The block is in memory: see {@link #held}. */
    HELD,
    /** The block is in the tier. */
    STORED,
    /** The fetch ended. */
    ENDED
  }

  /**
   * Claims a block for reading, or waits for the thread that is reading it. Waits as long as the
   * source takes to answer or fail.
   */
  synchronized Claim claim(int block) throws FsException {
    while (ending == null && states[block] == READING) {
      try {
        wait();
      } catch (InterruptedException e) {
        throw interrupted();
      }
    }
    if (ending != null) {
      return Claim.ENDED;
    }
    switch (states[block]) {
      case MISSING -> {
        states[block] = READING;
        readingCount++;
        return Claim.READ_IT;
      }
      case HELD -> {
        return Claim.HELD;
      }
      default -> {
        return Claim.STORED;
      }
    }
  }

  /** The failure of a reader that was interrupted while it waited. */
  static FsException interrupted() {
    Thread.currentThread().interrupt();
    return new FsException(Errno.EINTR, "interrupted while a block was read");
  }

  /**
   * Whether there may be a block for {@link #claimFree}. Waits while none is free but some are
   * being read, because these may be released; false when all are read, the fetch ended, or the
   * caller gives up.
   */
  synchronized boolean awaitFree(BooleanSupplier givesUp) throws InterruptedException {
    while (ending == null && !givesUp.getAsBoolean()) {
      if (firstFree() < states.length) {
        return true;
      }
      if (readingCount == 0) {
        return false;
      }
      wait(PATIENCE_MS);
    }
    return false;
  }

  synchronized boolean hasFree() {
    return ending == null && firstFree() < states.length;
  }

  /** Claims the first unclaimed block; -1 if there is none. Never waits. */
  synchronized int claimFree() {
    int block = ending == null ? firstFree() : states.length;
    if (block == states.length) {
      return -1;
    }
    states[block] = READING;
    readingCount++;
    return block;
  }

  /** The first unclaimed blocks, of a window of {@value #WINDOW_BLOCKS}. Never waits. */
  synchronized BitSet missing() {
    BitSet missing = new BitSet();
    int end = ending == null ? Math.min(states.length, firstFree() + WINDOW_BLOCKS) : 0;
    for (int block = firstMissing; block < end; block++) {
      if (states[block] == MISSING) {
        missing.set(block);
      }
    }
    return missing;
  }

  /** Claims a block for reading if it is unclaimed. Never waits. */
  synchronized boolean claimIfMissing(int block) {
    if (ending != null || states[block] != MISSING) {
      return false;
    }
    states[block] = READING;
    readingCount++;
    return true;
  }

  /** The blocks that were read, in memory or in the tier; none if the fetch ended. */
  synchronized BitSet read() {
    BitSet read = new BitSet();
    for (int block = 0; ending == null && block < states.length; block++) {
      if (states[block] == HELD || states[block] == STORED) {
        read.set(block);
      }
    }
    return read;
  }

  /** Whether a block was read and is in memory or in the tier. Never waits. */
  synchronized boolean isRead(int block) {
    return ending == null && (states[block] == HELD || states[block] == STORED);
  }

  /** The checksum of a block that is in the tier. */
  synchronized OptionalInt checksum(int block) {
    return ending == null && states[block] == STORED
        ? OptionalInt.of(checksums[block])
        : OptionalInt.empty();
  }

  private synchronized int firstFree() {
    while (firstMissing < states.length && states[firstMissing] != MISSING) {
      firstMissing++;
    }
    return firstMissing;
  }

  /**
   * The memory that holds a block, retained for the caller; null if the block is already in the
   * tier or the fetch ended.
   */
  synchronized BufferPool.@Nullable Loan held(int block) {
    BufferPool.Loan loan = held.get(block);
    if (loan != null) {
      loan.retain();
    }
    return loan;
  }

  /** Counts a block that the caller has claimed and read; true if it was the last to read. */
  synchronized boolean countRead() {
    readCount++;
    return readCount == states.length;
  }

  /** Publishes a block that the caller has claimed and read into a loan. */
  synchronized void hold(int block, BufferPool.Loan loan) {
    if (ending == null) {
      loan.retain();
      held.put(block, loan);
      states[block] = HELD;
      readingCount--;
      notifyAll();
    }
  }

  /** Returns a claimed block unread. */
  synchronized void release(int block) {
    states[block] = MISSING;
    readingCount--;
    firstMissing = Math.min(firstMissing, block);
    notifyAll();
  }

  /** Records that a block is in the tier; true if it was the last one. */
  synchronized boolean stored(int block, int checksum) {
    BufferPool.Loan loan = held.remove(block);
    if (loan != null) {
      loan.release();
    }
    if (states[block] == READING) {
      readingCount--;
    }
    states[block] = STORED;
    checksums[block] = checksum;
    storedCount++;
    notifyAll();
    return storedCount == states.length;
  }

  /** Counts bytes read by the {@link Staging} that fills this; false if the fetch ended. */
  synchronized boolean countStaged(int bytes) {
    stagedBytes += ending == null ? bytes : 0;
    return ending == null;
  }

  synchronized long stagedBytes() {
    return stagedBytes;
  }

  /** Whether the caller is the first to queue this fetch for the background. */
  synchronized boolean queue() {
    boolean first = !queued;
    queued = true;
    return first;
  }

  /** The record of the whole copy. */
  synchronized CopyRecord record() {
    return writer.record(Checksums.of(checksums));
  }

  /**
   * Ends the fetch, complete or not: wakes waiting threads and releases held memory; false if it
   * had ended before.
   */
  boolean end(Ending how) {
    boolean idle;
    synchronized (this) {
      if (ending != null) {
        return false;
      }
      ending = how;
      held.values().forEach(BufferPool.Loan::release);
      held.clear();
      notifyAll();
      idle = users == 0;
    }
    if (idle) {
      writer.close();
    }
    return true;
  }

  synchronized boolean isRunning() {
    return ending == null;
  }

  /** Waits for the end; null if the caller gives up first. */
  synchronized @Nullable Ending awaitEnd(BooleanSupplier givesUp) throws InterruptedException {
    while (ending == null && !givesUp.getAsBoolean()) {
      wait(PATIENCE_MS);
    }
    return ending;
  }
}
