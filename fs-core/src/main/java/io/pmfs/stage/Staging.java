package io.pmfs.stage;

import io.pmfs.memory.BufferPool;
import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.Inode;
import io.pmfs.source.SourceFile;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.Placement;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Stages files for one task: the calling threads copy them, at the task's pace and with memory
 * reserved for tasks, so that readers are not delayed. Readers of the same files read on their own
 * threads; no block is read from the source twice.
 */
public final class Staging {
  /** Half of the tasks' memory, in equal windows; the rest is for blocks being copied. */
  private static final int WINDOWS_BYTES = DirectMemory.TASKS_BYTES / 2;

  /** Several times the request size of a disk array or a parallel file system. */
  private static final int MOST_WINDOW_BYTES = 8 << 20;

  private static final int LEAST_WINDOW_BYTES = 1 << 20;

  /** The most sequences that a task reads at once: each needs a window. */
  public static final int MAX_SEQUENCES = WINDOWS_BYTES / LEAST_WINDOW_BYTES;

  /** The most attempts at a copy that disappears as soon as it is complete. */
  private static final int ROUNDS = 8;

  private final Copies copies;
  private final Fetches fetches;
  private final Placement placement;
  private final Pace pace;
  private final LongConsumer moved;
  private final BufferPool buffers;

  /** Files of several blocks being copied, for other threads to {@link #help} with. */
  private final Queue<Fetch> large = new ConcurrentLinkedQueue<>();

  private volatile boolean cancelled;

  Staging(Copies copies, Fetches fetches, Placement placement, Pace pace, LongConsumer moved) {
    this.copies = copies;
    this.fetches = fetches;
    this.placement = placement;
    this.pace = pace;
    this.moved = moved;
    this.buffers = copies.memory().tasks();
  }

  /**
   * The outcome for one file.
   *
   * @param reason why it failed, else empty
   * @param movedBytes how many of the file's bytes were reported to {@code moved}
   */
  public record Outcome(Result result, String reason, long movedBytes) {
    /** The kinds of outcomes. */
    public enum Result {
      STAGED,
      /** The copy existed, or the file is empty and needs none. */
      PRESENT,
      /** No allowed tier has room. */
      NO_ROOM,
      /** The source failed, or has another version of the file. */
      SOURCE_FAILED,
      /** No allowed tier could store it. */
      TIER_FAILED,
      /** The task was cancelled, or the file was no longer wanted, before the copy was complete. */
      CANCELLED
    }

    public boolean isThere() {
      return result == Result.STAGED || result == Result.PRESENT;
    }
  }

  /**
   * Whether a file is empty, or has a copy that satisfies the placement and was just found in its
   * tier.
   */
  public boolean has(Inode inode) {
    return inode.attributes().size() == 0 || copies.isThere(inode, placement);
  }

  /** Makes sure that a file has a copy. */
  public Outcome stage(Inode inode) {
    return stage(inode, null, () -> true);
  }

  /**
   * Like {@link #stage(Inode)}, for a file that may be dropped meanwhile.
   *
   * @param wanted called when the file has neither a copy nor a running fetch; false means that it
   *     is not copied
   */
  public Outcome stageIf(Inode inode, BooleanSupplier wanted) {
    return stage(inode, null, wanted);
  }

  /**
   * Like {@link #stage(Inode)}, reading from a file that the caller opened.
   *
   * @param opened used by this thread only; null to open the file when needed
   */
  public Outcome stage(Inode inode, @Nullable SourceFile opened) {
    return stage(inode, opened, () -> true);
  }

  private Outcome stage(Inode inode, @Nullable SourceFile opened, BooleanSupplier wanted) {
    if (inode.attributes().size() == 0) {
      return new Outcome(Outcome.Result.PRESENT, "", 0);
    }
    fetches.wanted(inode);
    Outcome.Result there = Outcome.Result.PRESENT;
    String problem = "its copy was removed repeatedly while it was staged";
    long bytes = 0;
    for (int round = 0; round < ROUNDS; round++) {
      if (round == 0 ? copies.isThere(inode, placement) : copies.index().has(inode, placement)) {
        if (copies.index().place(inode, placement)) {
          return new Outcome(there, "", bytes);
        }
        continue;
      }
      Fetch fetch = fetches.forStaging(inode, placement, wanted);
      if (isCancelled() || (fetch == null && !wanted.getAsBoolean())) {
        if (fetch != null && fetch.isStaged()) {
          fetches.giveUp(fetch);
        }
        // An earlier round's copy was read and dropped.
        return new Outcome(
            there == Outcome.Result.STAGED ? there : Outcome.Result.CANCELLED, "", bytes);
      }
      if (fetch == null) {
        if (copies.index().has(inode, placement)) {
          continue;
        }
        String failure = copies.index().failure(placement);
        if (failure == null
            && (fetches.compact(placement) || fetches.displaceGuests(inode, placement))) {
          continue;
        }
        return failure == null
            ? new Outcome(Outcome.Result.NO_ROOM, "", bytes)
            : new Outcome(Outcome.Result.TIER_FAILED, failure, bytes);
      }
      Fetch.Ending ending = fill(fetch, opened);
      bytes += fetch.stagedBytes();
      if (ending == null) {
        return new Outcome(Outcome.Result.CANCELLED, "", bytes);
      }
      switch (ending.kind()) {
        case WHOLE -> there = Outcome.Result.STAGED;
        case SOURCE -> {
          return new Outcome(Outcome.Result.SOURCE_FAILED, ending.reason(), bytes);
        }
        case TIER -> problem = ending.reason();
        case NO_ROOM -> {
          return new Outcome(Outcome.Result.NO_ROOM, "", bytes);
        }
        case GIVEN_UP -> {}
      }
    }
    return new Outcome(Outcome.Result.TIER_FAILED, problem, bytes);
  }

  /** Reads all unclaimed blocks, then waits for other threads; null if the task was cancelled. */
  private Fetch.@Nullable Ending fill(Fetch fetch, @Nullable SourceFile opened) {
    boolean whole = false;
    boolean entered = fetch.enter();
    boolean shared = fetch.blockCount() > 1 && opened == null;
    try {
      if (shared) {
        large.add(fetch);
      }
      while (entered && fetch.awaitFree(this::isCancelled)) {
        copyNext(fetch, opened);
      }
      Fetch.Ending ending = fetch.awaitEnd(this::isCancelled);
      whole = ending != null;
      return ending;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return null;
    } finally {
      if (shared) {
        large.remove(fetch);
      }
      if (!whole && fetch.isStaged()) {
        fetches.giveUp(fetch);
      }
      if (entered) {
        fetch.exit();
      }
    }
  }

  /**
   * Copies a block of a large file that another thread is copying; false if there is none. For idle
   * threads.
   */
  public boolean help() {
    for (Fetch fetch : large) {
      if (!isCancelled() && fetch.enter()) {
        try {
          if (fetch.hasFree() && copyNext(fetch, null)) {
            return true;
          }
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          return false;
        } finally {
          fetch.exit();
        }
      }
    }
    return false;
  }

  /**
   * Copies the first unclaimed block; false if there is none. Waits for the pace and for memory
   * before claiming: a reader may need this very block.
   */
  private boolean copyNext(Fetch fetch, @Nullable SourceFile opened) throws InterruptedException {
    BufferPool.Loan loan = buffers.acquire(fetch.blockSize(0), this::isCancelled);
    if (loan == null) {
      return false;
    }
    try {
      pace.await(operations(fetch, opened), fetch.blockSize(0), this::isCancelled);
      int block =
          isCancelled() ? -1 : opened == null ? fetches.claimNext(fetch) : fetch.claimFree();
      if (block < 0) {
        return false;
      }
      return copy(fetch, block, opened, loan);
    } finally {
      loan.release();
    }
  }

  private boolean copy(Fetch fetch, int block, @Nullable SourceFile opened, BufferPool.Loan loan) {
    try {
      var content = loan.buffer().limit(fetch.blockSize(block));
      boolean isRead =
          opened == null
              ? fetches.fetch(fetch, block, content)
              : fetches.fetch(fetch, block, content, OpenSources.opened(fetch.inode(), opened));
      if (isRead) {
        // Count before storing: the last block completes the file, and then stagedBytes() is read.
        if (fetch.countStaged(content.remaining())) {
          moved.accept(content.remaining());
        }
        fetch.hold(block, loan);
        fetches.store(fetch, block, content);
      }
      return isRead;
    } catch (RuntimeException | Error e) {
      // A reader may have started the fetch, and others wait for the block.
      fetches.giveUp(fetch);
      throw e;
    }
  }

  /**
   * Requests to the source per block: a small file is opened, read and checked again; a file that
   * the caller opened is part of a sequence that is read anyway.
   */
  private static int operations(Fetch fetch, @Nullable SourceFile opened) {
    if (opened != null) {
      return 0;
    }
    return fetch.blockCount() == 1 ? 3 : 1;
  }

  /**
   * Memory for reading a sequence, to be released at its end; smaller when more sequences are read
   * at once. Waits while there is none; null if the task was cancelled.
   *
   * @param sequences how many are read at once, at most {@link #MAX_SEQUENCES}
   */
  public BufferPool.@Nullable Loan window(int sequences) throws InterruptedException {
    int share = Integer.highestOneBit(WINDOWS_BYTES / sequences);
    return buffers.acquire(Math.min(share, MOST_WINDOW_BYTES), this::isCancelled);
  }

  /** Drops a file's unpinned copies, and a copy being made for readers. */
  public void drop(long number) {
    fetches.giveUpUnstaged(number);
    copies.evictUnpinned(number);
  }

  /** Cancels the task: callers return soon, and unfinished copies are dropped. Does not wait. */
  public void cancel() {
    cancelled = true;
  }

  private boolean isCancelled() {
    return cancelled || fetches.isStopping();
  }
}
