package io.pmfs.stage;

import com.google.common.util.concurrent.RateLimiter;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.tier.BackingStore;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.ReadResult;
import io.pmfs.tier.ReadSink;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierStatus;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads through: answers readers from the source and keeps what was read, as whole copies in the
 * first tier with room.
 *
 * <p>A reader that needs a block reads it on its own thread, is answered from memory, and leaves
 * writing it to a tier to the store threads. The rest of a large file is fetched by the fetch
 * threads. Memory in between is bounded by the {@link BufferPool}: if it is used up, the reader is
 * answered all the same, and the file waits for the fetch threads to read it again.
 */
public final class Stager implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Stager.class);

  private static final byte NO_ROOM = 1;

  /** The file changed while it was mounted: it is not copied again in this session. */
  private static final byte UNFIT = 2;

  private static final int ROUNDS = 4;
  private static final long STOP_SECONDS = 30;

  private final Namespace namespace;
  private final Copies copies;
  private final Evictor evictor;
  private final StagerSettings settings;
  private final BufferPool buffers;
  private final OpenSources sources;
  private final ExecutorService storeThreads;
  private final ThreadPoolExecutor fetchThreads;

  /**
   * INVARIANT: each fetch in here has a task in a pool that will end it, or a reader that will give
   * it one.
   */
  private final ConcurrentHashMap<Long, Fetch> fetches = new ConcurrentHashMap<>();

  /** {@link #NO_ROOM} or {@link #UNFIT}, so that each is counted, and logged, once. */
  private final InodeBytes marks = new InodeBytes();

  private final ThreadLocal<ByteBuffer> fetchBuffer =
      ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(Blocks.SIZE));
  private final AtomicInteger queued = new AtomicInteger();
  private final AtomicLong activeFetches = new AtomicLong();

  /** Inodes of large copies that a fetch thread verifies, or will. */
  private final Set<Long> verifying = ConcurrentHashMap.newKeySet();

  private final LongAdder completed = new LongAdder();
  private final LongAdder dropped = new LongAdder();
  private final LongAdder skippedNoRoom = new LongAdder();
  private final LongAdder failed = new LongAdder();
  private final LongAdder bytesFromTiers = new LongAdder();
  private final LongAdder bytesFromSource = new LongAdder();

  /** At most a few lines a second of the same kind in the log. */
  @SuppressWarnings("UnstableApiUsage")
  private final RateLimiter warnings = RateLimiter.create(5);

  private volatile boolean stopping;

  public Stager(
      Namespace namespace,
      BackingStore source,
      Copies copies,
      EvictionPolicy eviction,
      StagerSettings settings) {
    this(namespace, source, copies, eviction, settings, () -> {});
  }

  /**
   * The same.
   *
   * @param threadStart what each thread that compresses copies does first
   */
  public Stager(
      Namespace namespace,
      BackingStore source,
      Copies copies,
      EvictionPolicy eviction,
      StagerSettings settings,
      Runnable threadStart) {
    this.namespace = namespace;
    this.sources = new OpenSources(namespace, source);
    this.copies = copies;
    this.settings = settings;
    this.buffers = new BufferPool(settings.bufferBytes());
    this.storeThreads =
        Executors.newFixedThreadPool(StagerSettings.STORE_THREADS, named("store", threadStart));
    this.evictor = new Evictor(namespace, copies, eviction, storeThreads);
    // The queue is bounded by `queued`, not by its own capacity: a file that readers wait for must
    // get in.
    this.fetchThreads =
        new ThreadPoolExecutor(
            settings.fetchThreads(),
            settings.fetchThreads(),
            0,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            named("fetch", threadStart));
  }

  /**
   * After an unclean stop: compares each tier with the records, in the background; until then it
   * takes no copies.
   */
  public void recoverTiers() {
    for (Tier tier : copies.tiers()) {
      if (tier.status().state() != TierStatus.State.RECOVERING) {
        continue;
      }
      fetchThreads.execute(
          () ->
              guarded(
                  "recovering " + tier.name(),
                  () -> {
                    copies.countContent(tier);
                    tier.recover(
                        number ->
                            namespace.copies(number).stream()
                                .anyMatch(copy -> copy.tier().equals(tier.name())));
                  }));
    }
  }

  /**
   * Reads a range, which must lie within the file: from a tier if one holds a copy, else from the
   * source, and then has the file copied to the first tier with room.
   *
   * @return bytes passed to the sink: at least one, up to the end of a block or of the range
   * @throws FsException the source's own failure
   */
  public int read(Inode inode, long offset, int size, ReadSink sink) throws FsException {
    // A copy may be committed or dropped between looking for it and using it; after a few rounds
    // nothing but the source is left.
    for (int round = 0; round < ROUNDS; round++) {
      if (copies.read(inode, offset, size, sink)) {
        evictor.touched(inode.number());
        bytesFromTiers.add(size);
        return size;
      }
      int count = readThrough(inode, offset, size, sink);
      if (count > 0) {
        return count;
      }
      if (!copies.has(inode)) {
        break;
      }
    }
    return readDirectly(inode, offset, size, sink);
  }

  /**
   * Answers from a running or new fetch of the file; 0 if there is none or it ended before it
   * could.
   */
  private int readThrough(Inode inode, long offset, int size, ReadSink sink) throws FsException {
    Fetch fetch = fetch(inode);
    if (fetch == null || !fetch.enter()) {
      return 0;
    }
    try {
      int block = Blocks.index(offset);
      int start = Math.toIntExact(offset - Blocks.offset(block));
      int count = Math.min(size, fetch.blockSize(block) - start);
      return readBlock(fetch, block, start, count, sink) ? count : 0;
    } finally {
      fetch.exit();
    }
  }

  /** The running fetch of a file, a new one, or null if it is not to be copied now. */
  private @Nullable Fetch fetch(Inode inode) {
    Fetch running = fetches.get(inode.number());
    if (running != null || stopping || marks.get(inode.number()) == UNFIT) {
      return running;
    }
    // One reservation at a time for a file, and none for one that another reader's fetch committed
    // between the caller's miss and now.
    Fetch fetch =
        fetches.computeIfAbsent(inode.number(), n -> copies.has(inode) ? null : reserve(inode));
    if (fetch == null && !copies.has(inode)) {
      noRoom(inode);
    }
    return fetch;
  }

  private @Nullable Fetch reserve(Inode inode) {
    for (Tier tier : copies.tiers()) {
      BlockWriter writer = copies.create(inode, tier);
      if (writer != null) {
        activeFetches.incrementAndGet();
        return new Fetch(inode, writer);
      }
    }
    return null;
  }

  private void noRoom(Inode inode) {
    if (marks.compareAndSet(inode.number(), (byte) 0, NO_ROOM)) {
      skippedNoRoom.increment();
    }
    evictor.makeRoom(inode.attributes().size());
  }

  /**
   * Answers from a block of a fetch, reading it if need be; false if the caller must read for
   * itself.
   */
  private boolean readBlock(Fetch fetch, int block, int start, int count, ReadSink sink)
      throws FsException {
    while (true) {
      switch (claim(fetch, block)) {
        case READ_IT -> {
          // A single block is fetched by its reader; the rest of a larger file needs the
          // background, which comes second: the reader must not wait behind it for its own block.
          if (fetch.blockCount() > 1 && !queue(fetch)) {
            fetch.release(block);
            end(fetch);
            return false;
          }
          return readAndHold(fetch, block, start, count, sink);
        }
        case HELD -> {
          BufferPool.Loan loan = fetch.held(block);
          if (loan != null) {
            try {
              bytesFromTiers.add(count);
              return deliver(new ReadResult.Bytes(loan.buffer().slice(start, count)), sink);
            } finally {
              loan.release();
            }
          }
        }
        case STORED -> {
          try {
            fetch.writer().read(Blocks.offset(block) + start, count, sink);
            bytesFromTiers.add(count);
            return true;
          } catch (MismatchException e) {
            abort(fetch);
            return false;
          } catch (IOException e) {
            fetch.writer().tier().failed(e);
            return false;
          }
        }
        case ENDED -> {
          return false;
        }
      }
    }
  }

  private static Fetch.Claim claim(Fetch fetch, int block) throws FsException {
    try {
      return fetch.claim(block);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new FsException(Errno.EINTR, "interrupted while a block was read");
    }
  }

  /** Reads a claimed block into memory, answers from it, and leaves it to the store threads. */
  private boolean readAndHold(Fetch fetch, int block, int start, int count, ReadSink sink)
      throws FsException {
    BufferPool.Loan loan = buffers.tryAcquire(fetch.blockSize(block));
    if (loan == null) {
      fetch.release(block);
      if (!queue(fetch)) {
        end(fetch);
      }
      return false;
    }
    boolean isRead = false;
    try {
      isRead = readFromSource(fetch, block, loan.buffer());
    } finally {
      if (!isRead) {
        loan.release();
        abort(fetch);
      }
    }
    if (!isRead) {
      return false;
    }
    // The store threads may be done with the loan before this reader is.
    loan.retain();
    try {
      fetch.hold(block, loan);
      store(fetch, block);
      bytesFromSource.add(count);
      return deliver(new ReadResult.Bytes(loan.buffer().slice(start, count)), sink);
    } finally {
      loan.release();
    }
  }

  private static boolean deliver(ReadResult.Bytes bytes, ReadSink sink) throws FsException {
    try {
      sink.accept(bytes);
      return true;
    } catch (IOException e) {
      throw new FsException(Errno.EIO, "the answer was not taken", e);
    }
  }

  /**
   * Reads a whole block; false (and a line in the log) if it could not be read or is of another
   * version of the file.
   */
  private boolean readFromSource(Fetch fetch, int block, ByteBuffer destination) {
    Inode inode = fetch.inode();
    String problem;
    try (var lease = sources.acquire(inode)) {
      OpenSources.OpenSource open = lease.handle();
      int expected = destination.remaining();
      int count = open.read(Blocks.offset(block), destination);
      // Whoever reads the last of the blocks, in whatever order they come, sees whether all of them
      // are of one version.
      if (count == expected && (fetch.countRead() ? open.isUnchanged() : open.isTheFile())) {
        destination.flip();
        return true;
      }
      marks.set(inode.number(), UNFIT);
      problem = "it changed while it is mounted";
    } catch (FsException e) {
      problem = e.getMessage();
    }
    if (warnings.tryAcquire()) {
      log.warn("{} is not copied to a tier: {}", name(inode), problem);
    }
    return false;
  }

  /** Reads a range for one reader only. */
  private int readDirectly(Inode inode, long offset, int count, ReadSink sink) throws FsException {
    try (var lease = sources.acquire(inode)) {
      OpenSources.OpenSource open = lease.handle();
      if (!open.isTheFile()) {
        throw new FsException(Errno.ESTALE, name(inode) + " was replaced while it is mounted");
      }
      ByteBuffer destination = sink.buffer(count);
      if (open.read(offset, destination) < count) {
        throw new FsException(
            Errno.EIO,
            name(inode) + " is shorter than when it was looked up; unmount and mount it again");
      }
      bytesFromSource.add(count);
      deliver(new ReadResult.Bytes(destination.flip()), sink);
      return count;
    }
  }

  private void store(Fetch fetch, int block) {
    try {
      storeThreads.execute(() -> guarded("storing", () -> storeHeld(fetch, block)));
    } catch (RejectedExecutionException e) {
      end(fetch);
    }
  }

  private void storeHeld(Fetch fetch, int block) {
    BufferPool.Loan loan = fetch.held(block);
    if (loan == null || !fetch.enter()) {
      if (loan != null) {
        loan.release();
      }
      return;
    }
    try {
      storeBlock(fetch, block, loan.buffer());
    } finally {
      loan.release();
      fetch.exit();
    }
  }

  private void storeBlock(Fetch fetch, int block, ByteBuffer content) {
    int checksum = Blocks.checksum(content);
    try {
      fetch.writer().write(block, content);
      if (fetch.stored(block, checksum)) {
        copies.commit(fetch.inode(), fetch.writer(), fetch.record());
        completed.increment();
        end(fetch);
        evictor.keepRoom(fetch.writer().tier(), fetch.inode().attributes().size());
      }
    } catch (IOException e) {
      // The tier has said so in the log and in its status.
      failed.increment();
      end(fetch);
    } catch (RuntimeException e) {
      failed.increment();
      end(fetch);
      throw e;
    }
  }

  /** Puts a fetch before the fetch threads, once; false if too many wait. */
  private boolean queue(Fetch fetch) {
    if (!fetch.queue()) {
      return true;
    }
    if (stopping || queued.incrementAndGet() > settings.queueLength()) {
      queued.decrementAndGet();
      dropped.increment();
      return false;
    }
    try {
      fetchThreads.execute(
          () -> {
            queued.decrementAndGet();
            guarded("fetching", () -> fill(fetch));
          });
      return true;
    } catch (RejectedExecutionException e) {
      queued.decrementAndGet();
      return false;
    }
  }

  /** Fetches what nobody has fetched yet, in order. */
  private void fill(Fetch fetch) {
    if (!fetch.enter()) {
      return;
    }
    try {
      for (int block = 0; block < fetch.blockCount() && !stopping; block++) {
        if (fetch.claim(block) == Fetch.Claim.READ_IT) {
          ByteBuffer buffer = fetchBuffer.get().clear().limit(fetch.blockSize(block));
          if (!readFromSource(fetch, block, buffer)) {
            abort(fetch);
            return;
          }
          storeBlock(fetch, block, buffer);
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      end(fetch);
    } catch (RuntimeException e) {
      end(fetch);
      throw e;
    } finally {
      fetch.exit();
    }
  }

  /**
   * For who could not read a block it claimed: nobody may claim it again, for the fetch that ends
   * is not looked at as a whole any more.
   */
  private void abort(Fetch fetch) {
    failed.increment();
    end(fetch);
  }

  /** Ends a fetch in whatever state; readers of it go to the tier or to the source. */
  private void end(Fetch fetch) {
    if (fetch.end()) {
      fetches.remove(fetch.inode().number(), fetch);
      sources.invalidate(fetch.inode().number());
      activeFetches.decrementAndGet();
    }
  }

  /**
   * The file of a whole, verified copy for a kernel that reads it without us; null if there is none
   * yet, and then one is on its way if there is room for it.
   */
  public @Nullable Path copyFile(Inode inode) {
    Path file = copies.file(inode);
    if (file != null) {
      return file;
    }
    if (copies.isCompressed(inode)) {
      return null;
    }
    if (copies.has(inode)) {
      verifyInBackground(inode);
    } else if (inode.attributes().size() > Blocks.SIZE) {
      // What fits a block is fetched by the read that is about to come.
      Fetch fetch = fetch(inode);
      if (fetch != null && !queue(fetch)) {
        end(fetch);
      }
    }
    return null;
  }

  private void verifyInBackground(Inode inode) {
    if (verifying.add(inode.number())) {
      try {
        fetchThreads.execute(
            () -> {
              guarded("verifying", () -> copies.verify(inode));
              verifying.remove(inode.number());
            });
      } catch (RejectedExecutionException e) {
        verifying.remove(inode.number());
      }
    }
  }

  /** Bytes that readers got from copies, finished or in the making. */
  public long bytesFromTiers() {
    return bytesFromTiers.sum();
  }

  /** Bytes that readers waited for the source for. */
  public long bytesFromSource() {
    return bytesFromSource.sum();
  }

  public StagerStatus status() {
    return new StagerStatus(
        activeFetches.get(),
        queued.get(),
        completed.sum(),
        dropped.sum(),
        skippedNoRoom.sum(),
        failed.sum(),
        evictor.evicted());
  }

  private String name(Inode inode) {
    FileName path = namespace.path(inode.number());
    return path == null ? "inode " + inode.number() : path.toString();
  }

  private static void guarded(String what, Runnable task) {
    try {
      task.run();
    } catch (RuntimeException e) {
      log.error("{} failed", what, e);
    }
  }

  private static ThreadFactory named(String name, Runnable threadStart) {
    AtomicInteger count = new AtomicInteger();
    return task -> {
      Runnable started =
          () -> {
            threadStart.run();
            task.run();
          };
      Thread thread = new Thread(started, name + "-" + count.incrementAndGet());
      thread.setDaemon(true);
      return thread;
    };
  }

  /**
   * Stops: blocks being copied are finished, files are not. Readers may go on and are answered from
   * the source.
   */
  @Override
  public void close() {
    stopping = true;
    fetchThreads.getQueue().clear();
    fetchThreads.shutdown();
    storeThreads.shutdown();
    try {
      if (!fetchThreads.awaitTermination(STOP_SECONDS, TimeUnit.SECONDS)
          || !storeThreads.awaitTermination(STOP_SECONDS, TimeUnit.SECONDS)) {
        log.warn("the source does not answer: staging is left behind");
        fetchThreads.shutdownNow();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    fetches.values().forEach(this::end);
    sources.close();
  }
}
