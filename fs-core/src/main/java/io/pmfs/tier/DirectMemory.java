package io.pmfs.tier;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All direct memory that requests and tasks take: one pool for each kind of use, whose sum is known
 * when the daemon starts. {@code -XX:MaxDirectMemorySize} is that sum, so the JVM never refuses
 * what a pool may take (docs/decisions/0036).
 *
 * <p>A reader never waits for a task: readers have a pool of their own and do without when it is
 * used up. What both use is lent for one step (reading a frame, comparing a piece) that waits for
 * nothing but a tier or the source.
 *
 * <p>ORDER: a thread that holds memory of {@link #readers}, {@link #tasks} or {@link #fetch} may
 * wait for {@link #store}, then for {@link #frames}, then for {@link #scratch}; never the other way
 * round, and never for more of the same pool. So each wait ends when tiers and source answer.
 */
public final class DirectMemory {
  private static final Logger log = LoggerFactory.getLogger(DirectMemory.class);

  private static final int MIB = 1 << 20;

  /** A task's blocks, 1 MiB for each job, and the windows through which it reads sequences. */
  public static final int TASKS_BYTES = 64 * MIB;

  /** Blocks on their way from the source to a tier in the background, 1 MiB for each thread. */
  static final int FETCH_BYTES = 32 * MIB;

  /** Decompressed frames, of copies and of shards. */
  static final int FRAMES_BYTES = 32 * MIB;

  /** Copies being compressed or moved, 1 MiB each. */
  static final int STORE_BYTES = 16 * MIB;

  /** For a step: a frame as it is stored, a piece that is compared. */
  static final int SCRATCH_BYTES = 32 * MIB;

  /**
   * What threads keep for themselves, not in a pool: 64 workers 1 MiB each for answers, and what
   * the JDK keeps for a thread that writes files.
   */
  static final int THREADS_BYTES = 80 * MIB;

  /**
   * Content for and from other nodes of a cluster, in buffers of its connections: 64 MiB for them,
   * the rest for what is asked of them; a little for the control socket.
   */
  static final int PEERS_BYTES = 192 * MIB;

  /** The largest window of a sequence, and the largest frame of a shard, take a chunk. */
  private static final int CHUNK_BYTES = 8 * MIB;

  /** What a daemon takes beside the memory of its readers. */
  public static final long FIXED_BYTES =
      (long) TASKS_BYTES
          + FETCH_BYTES
          + FRAMES_BYTES
          + STORE_BYTES
          + SCRATCH_BYTES
          + THREADS_BYTES
          + PEERS_BYTES;

  private final long limitBytes;
  private long accountedBytes = THREADS_BYTES + PEERS_BYTES; // GUARDED_BY(this)
  private final BufferPool tasks = pool(TASKS_BYTES, CHUNK_BYTES);
  private final BufferPool fetch = pool(FETCH_BYTES, MIB);
  private final FramePool frames = new FramePool(pool(FRAMES_BYTES, CHUNK_BYTES));
  private final BufferPool store = pool(STORE_BYTES, 2 * MIB);
  private final BufferPool scratch = pool(SCRATCH_BYTES, CHUNK_BYTES);

  /** Without a limit but that of the pools. */
  public DirectMemory() {
    this(Long.MAX_VALUE);
  }

  /**
   * Nothing is taken from the system before it is needed.
   *
   * @param limitBytes what the JVM gives
   */
  public DirectMemory(long limitBytes) {
    this.limitBytes = limitBytes;
    if (limitBytes < FIXED_BYTES) {
      throw new IllegalArgumentException(
          "the daemon needs %d bytes of direct memory and its buffers, not %d"
              .formatted(FIXED_BYTES, limitBytes));
    }
  }

  private synchronized BufferPool pool(int bytes, int chunkBytes) {
    accountedBytes += bytes;
    return new BufferPool(bytes, chunkBytes);
  }

  /**
   * Memory for blocks that readers wait for. Less than was asked for if the JVM was started with
   * less.
   */
  public synchronized BufferPool readers(int bytes) {
    int given = (int) Math.min(bytes, limitBytes - accountedBytes);
    if (given < bytes) {
      log.warn(
          "buffers have {} MiB instead of {} MiB: Java was started with {} MiB of direct memory",
          given / MIB,
          bytes / MIB,
          limitBytes / MIB);
    }
    return pool(given, MIB);
  }

  /** For what a task reads. */
  public BufferPool tasks() {
    return tasks;
  }

  /** For what is read behind readers. */
  public BufferPool fetch() {
    return fetch;
  }

  /** For frames that were decompressed. */
  public FramePool frames() {
    return frames;
  }

  /** For copies on their way into a tier. */
  public BufferPool store() {
    return store;
  }

  /** For a step that waits for nothing but a tier or the source. */
  public BufferPool scratch() {
    return scratch;
  }
}
