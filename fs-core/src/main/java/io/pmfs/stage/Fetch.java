package io.pmfs.stage;

import io.pmfs.metadata.Checksums;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.tier.BufferPool;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A copy being filled, block by block, by whoever comes first: a reader that needs a block now, or
 * a background thread. Each block is read from the source once: others who need it wait for it,
 * take it from memory, or from what the tier has of it already.
 *
 * <p>A block goes MISSING → READING → HELD (in memory) → STORED (in the tier), or back to MISSING
 * if reading failed. The states are guarded by this object's monitor; input and output happen
 * outside it.
 */
final class Fetch {
  private static final byte MISSING = 0;
  private static final byte READING = 1;
  private static final byte HELD = 2;
  private static final byte STORED = 3;

  /** How often who waits asks whether to go on. */
  private static final long PATIENCE_MS = 100;

  /** How a fetch came to its end. */
  record Ending(Kind kind, String reason) {
    /** Whose doing it was. */
    enum Kind {
      /** The copy is whole, committed and recorded. */
      WHOLE,
      /** The source failed, or has another version of the file. */
      SOURCE,
      /** The tier failed or is full. */
      TIER,
      /** The tier has no room for what putting it into order takes. */
      NO_ROOM,
      /** Nobody was left to do it, or to do it for. */
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
  private int firstMissing; // GUARDED_BY(this); none is missing below it
  private long stagedBytes; // GUARDED_BY(this)
  private int users; // GUARDED_BY(this)
  private @Nullable Ending ending; // GUARDED_BY(this)
  private boolean queued; // GUARDED_BY(this)
  private volatile boolean readToItsEnd;

  /**
   * A fetch of which no block is there.
   *
   * @param staged whether a {@link Staging} fills it; it needs no background then
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

  /** A reader has come to the end of the file. */
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

  /** What a caller of {@link #claim} got. */
  enum Claim {
    /**
     * The block is the caller's to read: {@link #hold}, {@link #stored} or {@link #release} must
     * follow.
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
   * Claims a block for reading it, or waits for whoever is reading it. Waits as long as the source
   * takes to answer or fail.
   */
  synchronized Claim claim(int block) throws InterruptedException {
    while (ending == null && states[block] == READING) {
      wait();
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

  /**
   * Whether there may be a block for {@link #claimFree}. Waits while there is none but some are
   * being read, for they may be given back; false when all are read, the fetch ended, or the caller
   * gives up.
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

  /** Whether there is a block that nobody has. */
  synchronized boolean hasFree() {
    return ending == null && firstFree() < states.length;
  }

  /** Claims the first block that nobody has; -1 if there is none. Never waits. */
  synchronized int claimFree() {
    int block = ending == null ? firstFree() : states.length;
    if (block == states.length) {
      return -1;
    }
    states[block] = READING;
    readingCount++;
    return block;
  }

  private synchronized int firstFree() {
    while (firstMissing < states.length && states[firstMissing] != MISSING) {
      firstMissing++;
    }
    return firstMissing;
  }

  /**
   * The memory that holds a block, retained for the caller; null if it is in the tier by now, or
   * the fetch ended.
   */
  synchronized BufferPool.@Nullable Loan held(int block) {
    BufferPool.Loan loan = held.get(block);
    if (loan != null) {
      loan.retain();
    }
    return loan;
  }

  /** The caller has read a claimed block; says whether all are read now. */
  synchronized boolean countRead() {
    readCount++;
    return readCount == states.length;
  }

  /** The caller has read a claimed block into a loan, which is now this fetch's. */
  synchronized void hold(int block, BufferPool.Loan loan) {
    if (ending != null) {
      loan.release();
      return;
    }
    held.put(block, loan);
    states[block] = HELD;
    readingCount--;
    notifyAll();
  }

  /** The caller gives a claimed block back unread. */
  synchronized void release(int block) {
    states[block] = MISSING;
    readingCount--;
    firstMissing = Math.min(firstMissing, block);
    notifyAll();
  }

  /** The block is in the tier; says whether it was the last one. */
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

  /** The caller, who stages it, has read so many bytes of it; false if it ended. */
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
   * Ends the fetch, whole or not: wakes those who wait, lets go of what is held; says whether it
   * had not ended before.
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

  /** Waits for the end; null if the caller gives up before. */
  synchronized @Nullable Ending awaitEnd(BooleanSupplier givesUp) throws InterruptedException {
    while (ending == null && !givesUp.getAsBoolean()) {
      wait(PATIENCE_MS);
    }
    return ending;
  }
}
