package io.pmfs.memory;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All direct memory of requests and tasks: one pool for each kind of use, whose sum is known when
 * the daemon starts. {@code -XX:MaxDirectMemorySize} is that sum, so the JVM never refuses memory
 * that a pool may use (docs/decisions/0036).
 *
 * <p>A reader never waits for a task: readers have their own pool, and read without a buffer when
 * it is used up. Shared pools lend memory for one step (reading a frame, comparing a piece) that
 * waits only for a tier or the source.
 *
 * <p>ORDER: a thread that holds memory of {@link #readers}, {@link #tasks} or {@link #fetch} may
 * wait for {@link #store}, then for {@link #frames}, then for {@link #scratch}; never in another
 * order, and never for more of the same pool. So each wait ends when tiers and source answer.
 */
public final class DirectMemory {
  private static final Logger log = LoggerFactory.getLogger(DirectMemory.class);

  private static final int MIB = 1 << 20;

  /** A task's blocks, 1 MiB for each job, and the windows through which it reads sequences. */
  public static final int TASKS_BYTES = 64 * MIB;

  /** Blocks that background threads copy from the source to a tier, 1 MiB for each thread. */
  static final int FETCH_BYTES = 32 * MIB;

  /** Decompressed frames, of copies and of shards. */
  static final int FRAMES_BYTES = 32 * MIB;

  /** Copies being compressed or moved, 1 MiB each. */
  static final int STORE_BYTES = 16 * MIB;

  static final int SCRATCH_BYTES = 32 * MIB;

  /**
   * Memory that threads keep outside the pools: 1 MiB for answers in each of 64 workers; 9 MiB for
   * the workers of each of 7 further sessions of a user's daemon; and the JDK's buffers of threads
   * that write files.
   */
  static final int THREADS_BYTES = 144 * MIB;

  /**
   * Content exchanged with other nodes of a cluster, in the buffers of connections: 64 MiB for
   * outgoing content, the rest for incoming content and the control socket.
   */
  static final int PEERS_BYTES = 192 * MIB;

  /** The largest window of a sequence, and the largest frame of a shard, need a whole chunk. */
  private static final int CHUNK_BYTES = 8 * MIB;

  /** A daemon's direct memory except that of its readers. */
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

  /** Limited only by the pools. */
  public DirectMemory() {
    this(Long.MAX_VALUE);
  }

  /**
   * Allocates nothing before it is needed.
   *
   * @param limitBytes what the JVM allows
   */
  public DirectMemory(long limitBytes) {
    this.limitBytes = limitBytes;
    if (limitBytes < FIXED_BYTES) {
      throw new IllegalArgumentException(
          "the daemon needs %d bytes of direct memory besides its buffers; Java was started with %d"
              .formatted(FIXED_BYTES, limitBytes));
    }
  }

  private synchronized BufferPool pool(int bytes, int chunkBytes) {
    accountedBytes += bytes;
    return new BufferPool(bytes, chunkBytes);
  }

  /** Buffers for readers' blocks; less than requested if the JVM was started with less. */
  public synchronized BufferPool readers(int bytes) {
    int given = (int) Math.min(bytes, limitBytes - accountedBytes);
    if (given < bytes) {
      log.warn(
          "buffer memory is {} MiB instead of {} MiB: Java was started with {} MiB of direct"
              + " memory",
          given / MIB,
          bytes / MIB,
          limitBytes / MIB);
    }
    return pool(given, MIB);
  }

  public BufferPool tasks() {
    return tasks;
  }

  /** For blocks that background threads fetch. */
  public BufferPool fetch() {
    return fetch;
  }

  public FramePool frames() {
    return frames;
  }

  public BufferPool store() {
    return store;
  }

  /** For a step that waits only for a tier or the source. */
  public BufferPool scratch() {
    return scratch;
  }
}
