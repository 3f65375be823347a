package io.pmfs.stage;

import io.pmfs.metadata.Inode;
import io.pmfs.tier.BufferPool;
import io.pmfs.tier.DirectMemory;
import io.pmfs.tier.SourceFile;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Staging on behalf of one task: files are copied by the threads that call it, at the task's pace
 * and with the memory of tasks, so that it takes nothing from readers. Readers of the same files
 * read what they need by themselves, and what one of the two has read the other does not read
 * again.
 */
public final class Staging {
  /** Half of the tasks' memory, in equal windows; the blocks that are copied have the rest. */
  private static final int WINDOWS_BYTES = DirectMemory.TASKS_BYTES / 2;

  /** What a disk array or a parallel file system takes as one request, several times over. */
  private static final int MOST_WINDOW_BYTES = 8 << 20;

  private static final int LEAST_WINDOW_BYTES = 1 << 20;

  /** Sequences that a task reads at once, at most: each has a window. */
  public static final int MAX_SEQUENCES = WINDOWS_BYTES / LEAST_WINDOW_BYTES;

  /** Reserving, filling and finding a copy gone again, so often at most. */
  private static final int ROUNDS = 8;

  private final Copies copies;
  private final Fetches fetches;
  private final Placement placement;
  private final Pace pace;
  private final LongConsumer moved;
  private final BufferPool buffers;

  /** Files of several blocks that threads are at, for others to {@link #help}. */
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
   * What became of a file.
   *
   * @param reason why it failed, else empty
   * @param movedBytes how many of its bytes were passed to {@code moved}
   */
  public record Outcome(Result result, String reason, long movedBytes) {
    /** The kinds of outcomes. */
    public enum Result {
      /** It was copied. */
      STAGED,
      /** The copy was there, or it is empty and needs none. */
      PRESENT,
      /** No tier that may be used has room. */
      NO_ROOM,
      /** The source failed or has another version of it by now. */
      SOURCE_FAILED,
      /** No tier that may be used could store it. */
      TIER_FAILED,
      /** The task was cancelled, or the file not wanted any more, before it was whole. */
      CANCELLED
    }

    /** Whether there is a copy where one was asked for. */
    public boolean isThere() {
      return result == Result.STAGED || result == Result.PRESENT;
    }
  }

  /** Whether a file has a copy where one is wanted, seen there now, or is empty and needs none. */
  public boolean has(Inode inode) {
    return inode.attributes().size() == 0 || copies.isThere(inode, placement);
  }

  /** Sees to it that a file has a copy. */
  public Outcome stage(Inode inode) {
    return stage(inode, null, () -> true);
  }

  /**
   * The same for a file that may be dropped meanwhile.
   *
   * @param wanted asked while no reader has the file copied, and there is no copy of it: false, and
   *     it is not copied
   */
  public Outcome stageIf(Inode inode, BooleanSupplier wanted) {
    return stage(inode, null, wanted);
  }

  /**
   * The same, reading the file as the caller opened it.
   *
   * @param opened used by this thread only; null to open it when it is needed
   */
  public Outcome stage(Inode inode, @Nullable SourceFile opened) {
    return stage(inode, opened, () -> true);
  }

  private Outcome stage(Inode inode, @Nullable SourceFile opened, BooleanSupplier wanted) {
    if (inode.attributes().size() == 0) {
      return new Outcome(Outcome.Result.PRESENT, "", 0);
    }
    Outcome.Result there = Outcome.Result.PRESENT;
    String problem = "its copy went away again and again";
    long bytes = 0;
    for (int round = 0; round < ROUNDS; round++) {
      if (round == 0 ? copies.isThere(inode, placement) : copies.has(inode, placement)) {
        if (copies.place(inode, placement)) {
          return new Outcome(there, "", bytes);
        }
        continue;
      }
      Fetch fetch = fetches.forStaging(inode, placement, wanted);
      if (isCancelled() || (fetch == null && !wanted.getAsBoolean())) {
        if (fetch != null && fetch.isStaged()) {
          fetches.giveUp(fetch);
        }
        // What was copied in an earlier round has been read and dropped by now.
        return new Outcome(
            there == Outcome.Result.STAGED ? there : Outcome.Result.CANCELLED, "", bytes);
      }
      if (fetch == null) {
        if (copies.has(inode, placement)) {
          continue;
        }
        String failure = copies.failure(placement);
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

  /** Reads what nobody reads, then waits for the others; null if the task was cancelled. */
  private Fetch.@Nullable Ending fill(Fetch fetch, @Nullable SourceFile opened) {
    boolean whole = false;
    boolean entered = fetch.enter();
    boolean shared = fetch.blockCount() > 1 && opened == null;
    if (shared) {
      large.add(fetch);
    }
    try {
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
   * Copies a block of a large file that another thread is at; false if there is none. For threads
   * that have no file of their own.
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
   * Copies the first block that nobody has; false if there is none by now. Waiting for the pace and
   * for memory comes before the claim: a reader may need the very block.
   */
  private boolean copyNext(Fetch fetch, @Nullable SourceFile opened) throws InterruptedException {
    BufferPool.Loan loan = buffers.acquire(fetch.blockSize(0), this::isCancelled);
    if (loan == null) {
      return false;
    }
    try {
      pace.await(operations(fetch, opened), fetch.blockSize(0), this::isCancelled);
      int block = isCancelled() ? -1 : fetch.claimFree();
      if (block < 0) {
        return false;
      }
      var content = loan.buffer().limit(fetch.blockSize(block));
      boolean isRead =
          opened == null
              ? fetches.read(fetch, block, content)
              : fetches.read(fetch, block, content, OpenSources.opened(fetch.inode(), opened));
      if (isRead) {
        // Before it is stored: with the last block the file is done, and what it took is looked at.
        if (fetch.countStaged(content.remaining())) {
          moved.accept(content.remaining());
        }
        fetches.store(fetch, block, content);
      }
      return isRead;
    } finally {
      loan.release();
    }
  }

  /**
   * What copying a block asks the source for: a small file is opened, read, and looked at again; a
   * file that the caller opened lies in what is read anyway.
   */
  private static int operations(Fetch fetch, @Nullable SourceFile opened) {
    if (opened != null) {
      return 0;
    }
    return fetch.blockCount() == 1 ? 3 : 1;
  }

  /**
   * Memory to read a sequence through, to be given back at its end: the more sequences are read at
   * once, the less for each. Waits while there is none; null if the task was cancelled.
   *
   * @param sequences how many are read at once, at most {@link #MAX_SEQUENCES}
   */
  public BufferPool.@Nullable Loan window(int sequences) throws InterruptedException {
    int share = Integer.highestOneBit(WINDOWS_BYTES / sequences);
    return buffers.acquire(Math.min(share, MOST_WINDOW_BYTES), this::isCancelled);
  }

  /** Drops a file's copies, but pinned ones, and what is being made for readers of it. */
  public void drop(long number) {
    fetches.giveUpUnstaged(number);
    copies.evictUnpinned(number);
  }

  /** Has everybody come back soon; what is not whole is not kept. Waits for nobody. */
  public void cancel() {
    cancelled = true;
  }

  private boolean isCancelled() {
    return cancelled || fetches.isStopping();
  }
}
