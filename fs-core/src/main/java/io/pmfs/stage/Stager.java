package io.pmfs.stage;

import io.pmfs.memory.BufferPool;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.DaemonPool;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.LentFile;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.Evictor;
import io.pmfs.stage.copies.Guests;
import io.pmfs.stage.copies.Placement;
import io.pmfs.stage.copies.RemoteCopies;
import io.pmfs.stage.copies.Share;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.stage.formats.MismatchException;
import io.pmfs.tier.Tier;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.BitSet;
import java.util.OptionalInt;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads through: answers readers from the source and keeps what was read as whole copies in the
 * first tier with room.
 *
 * <p>A reader that needs a block reads it on its own thread, is answered from memory, and leaves
 * writing it to a tier to the store threads. The fetch threads fetch the rest of a large file. The
 * {@link BufferPool} bounds the memory in between: when it is used up, the reader is still
 * answered, and the fetch threads read the block again later.
 */
public final class Stager implements AutoCloseable {
  /** How long a reader waits for memory while no tier takes a block. */
  private static final Duration PATIENCE = Duration.ofMillis(500);

  /** How long none waits after that. */
  private static final Duration HURRY = Duration.ofSeconds(5);

  private static final Logger log = LoggerFactory.getLogger(Stager.class);

  private static final int ROUNDS = 4;

  /** Takes no bytes. */
  private static final ReadSink NO_BYTES =
      new ReadSink() {
        @Override
        public ByteBuffer buffer(int size) {
          return ByteBuffer.allocateDirect(size);
        }

        @Override
        public void accept(ReadResult piece) {}
      };

  private static final Duration STOP = Duration.ofSeconds(30);

  private final Copies copies;
  private final Share share;
  private final Guests guests;
  private final Evictor evictor;
  private final BufferPool buffers;
  private final OpenSources sources;
  private final Fetches fetches;
  private final FetchThreads fetchThreads;
  private final ExecutorService storeThreads;

  /** Until then no reader waits for memory: one did in vain. */
  private volatile long hurriedUntilNanos = System.nanoTime();

  private final OriginCounters readers;
  private final OriginCounters peers;

  /**
   * Reads files of the source, and copies them where {@code copies} has room.
   *
   * @param share which part of the dataset this node holds
   * @param threadStart run first by each thread that compresses copies
   */
  public Stager(
      Namespace namespace,
      BackingStore source,
      Copies copies,
      EvictionPolicy eviction,
      StagerSettings settings,
      Share share,
      Runnable threadStart) {
    this(
        namespace,
        source,
        copies,
        eviction,
        settings,
        share,
        name -> FetchThreads.named(name, threadStart));
  }

  /** The same with threads that a test makes. */
  Stager(
      Namespace namespace,
      BackingStore source,
      Copies copies,
      EvictionPolicy eviction,
      StagerSettings settings,
      Share share,
      Function<String, ThreadFactory> threads) {
    this.sources = new OpenSources(namespace, source);
    this.copies = copies;
    this.readers = new OriginCounters(copies.tiers().size());
    this.peers = new OriginCounters(copies.tiers().size());
    this.buffers = copies.memory().readers(settings.bufferBytes());
    this.storeThreads = new DaemonPool(StagerSettings.STORE_THREADS, threads.apply("store"));
    this.share = share;
    this.guests = new Guests(share, namespace);
    this.evictor = new Evictor(namespace, copies, eviction, guests, storeThreads);
    this.fetches = new Fetches(namespace, sources, copies, evictor, guests);
    this.fetchThreads = new FetchThreads(copies, fetches, settings, threads);
  }

  /**
   * Compares each tier with the records, in the background: forgets missing copies, removes files
   * without a record, and counts the rest. After an unclean stop a tier accepts no copies before
   * that. Must be called once.
   */
  public void compareTiers() {
    fetchThreads.compareTiers();
  }

  /**
   * Returns a staging that runs on the caller's threads.
   *
   * @param moved called by any thread with the number of bytes copied each time
   */
  public Staging staging(Placement placement, Pace pace, LongConsumer moved) {
    return new Staging(copies, fetches, placement, pace, moved);
  }

  /**
   * Serves a range, which must lie within the file: from a tier if one holds a copy, else from the
   * source, and then starts copying the file to the first tier with room.
   *
   * @return bytes passed to the sink: at least one, up to the end of a block or of the range
   * @throws FsException the source's own failure
   */
  public int serve(Inode inode, long offset, int size, ReadSink sink) throws FsException {
    return serve(inode, offset, size, sink, readers);
  }

  /**
   * Makes sure that a file is of the version that the inode describes, before any of it is read.
   * Fetches the first block for that, which a reader is about to need; a file that is not copied is
   * only looked at.
   *
   * @throws FsException ESTALE if it is of another version; else the source's own failure
   */
  public void prove(Inode inode) throws FsException {
    for (int round = 0; round < ROUNDS; round++) {
      if (copies.has(inode)) {
        proveCopy(inode);
        return;
      }
      Fetch fetch = inode.attributes().size() == 0 ? null : fetchOf(inode);
      if (fetch != null && readsFirstBlock(fetch)) {
        return;
      }
      // Another thread may have made a copy in between.
      if (!copies.has(inode)) {
        break;
      }
    }
    try (var lease = sources.acquire(inode)) {
      lease.handle().prove();
    } catch (FsException e) {
      sources.invalidate(inode.number());
      throw e;
    }
  }

  /** The same for a file that has a copy, perhaps of an earlier session. */
  public void proveCopy(Inode inode) throws FsException {
    try (var lease = sources.acquire(inode)) {
      lease.handle().proveCopy();
    }
  }

  private boolean readsFirstBlock(Fetch fetch) throws FsException {
    if (!fetch.enter()) {
      return false;
    }
    try {
      return fetch.isRead(0) || readBlock(fetch, 0, 0, 0, NO_BYTES, readers);
    } finally {
      fetch.exit();
    }
  }

  /** The source has another version of a file than was said: nothing of the old one is kept. */
  public void restart(long number) {
    fetches.restart(number);
  }

  /** The same for another node; not counted for this node's readers. */
  public int servePeer(Inode inode, long offset, int size, ReadSink sink) throws FsException {
    return serve(inode, offset, size, sink, peers);
  }

  /**
   * Serves a range, which must lie within the file, to another node if a tier holds a copy, or the
   * first of its blocks if a copy that is being made has it. Waits for no block.
   *
   * @return bytes passed to the sink; 0 if there is no copy
   */
  public int servePeerFromCopy(Inode inode, long offset, int size, ReadSink sink)
      throws FsException {
    int tier = copies.copyTo(inode, offset, size, sink);
    if (tier != Copies.NO_TIER) {
      peers.fromTier(tier, size);
      return size;
    }
    Fetch fetch = fetches.running(inode);
    if (fetch == null || !fetch.enter()) {
      return 0;
    }
    try {
      int block = Blocks.index(offset);
      int start = Math.toIntExact(offset - Blocks.offset(block));
      int count = Math.min(size, fetch.blockSize(block) - start);
      // A block that was read stays so: claiming it does not wait.
      return fetch.isRead(block) && readBlock(fetch, block, start, count, sink, peers) ? count : 0;
    } finally {
      fetch.exit();
    }
  }

  /** The blocks that a copy being made has so far; null if none is being made. */
  public @Nullable BitSet blocksBeingCopied(Inode inode) {
    Fetch fetch = fetches.running(inode);
    return fetch == null || !fetch.isRunning() ? null : fetch.read();
  }

  /** The checksum of a block, if a copy being made has it in its tier. */
  public OptionalInt checksumBeingCopied(Inode inode, int block) {
    Fetch fetch = fetches.running(inode);
    return fetch == null ? OptionalInt.empty() : fetch.checksum(block);
  }

  private int serve(Inode inode, long offset, int size, ReadSink sink, OriginCounters served)
      throws FsException {
    // A copy may be committed or dropped between the lookup and the read; after a few rounds only
    // the source is left.
    for (int round = 0; round < ROUNDS; round++) {
      int tier = copyTo(inode, offset, size, sink);
      if (tier != Copies.NO_TIER) {
        evictor.touched(inode.number());
        boolean toItsEnd = offset + size >= inode.attributes().size();
        if (fetches.isJustCopied(inode.number(), toItsEnd)) {
          served.fetched(size);
        } else {
          served.fromTier(tier, size);
        }
        return size;
      }
      int count = tryReadThrough(inode, offset, size, sink, served);
      if (count > 0) {
        return count;
      }
      if (!copies.has(inode)) {
        break;
      }
    }
    return readDirectly(inode, offset, size, sink, served);
  }

  /** Answers from a copy. An error is a miss: the next place is asked. */
  private int copyTo(Inode inode, long offset, int size, ReadSink sink) {
    int before = sink.received();
    try {
      return copies.copyTo(inode, offset, size, sink);
    } catch (RuntimeException | Error e) {
      if (before < 0 || sink.received() != before) {
        throw e;
      }
      log.error("a copy of {} is not read", fetches.name(inode), e);
      return Copies.NO_TIER;
    }
  }

  private int tryReadThrough(
      Inode inode, long offset, int size, ReadSink sink, OriginCounters served) throws FsException {
    int before = sink.received();
    try {
      return readThrough(inode, offset, size, sink, served);
    } catch (RuntimeException | Error e) {
      if (before < 0 || sink.received() != before) {
        throw e;
      }
      log.error("{} is read without a copy", fetches.name(inode), e);
      return 0;
    }
  }

  /** A running or new fetch; null if there is none, for whatever reason: a reader needs none. */
  private @Nullable Fetch fetchOf(Inode inode) {
    try {
      return fetches.forReader(inode);
    } catch (RuntimeException | Error e) {
      log.error("no copy of inode {} is begun", inode.number(), e);
      return null;
    }
  }

  /**
   * Answers from a running or new fetch of the file; returns 0 if there is none or it ended first.
   */
  private int readThrough(Inode inode, long offset, int size, ReadSink sink, OriginCounters served)
      throws FsException {
    Fetch fetch = fetchOf(inode);
    if (fetch == null || !fetch.enter()) {
      return 0;
    }
    try {
      int block = Blocks.index(offset);
      int start = Math.toIntExact(offset - Blocks.offset(block));
      int count = Math.min(size, fetch.blockSize(block) - start);
      if (offset + count >= inode.attributes().size()) {
        // Set early: the copy may be complete before this read is answered.
        fetch.readToItsEnd();
      }
      return readBlock(fetch, block, start, count, sink, served) ? count : 0;
    } finally {
      fetch.exit();
    }
  }

  /**
   * Answers from a block of a fetch, reading it if needed; false if the caller must read it
   * directly.
   */
  private boolean readBlock(
      Fetch fetch, int block, int start, int count, ReadSink sink, OriginCounters served)
      throws FsException {
    while (true) {
      switch (claim(fetch, block)) {
        case READ_IT -> {
          BufferPool.Loan loan = readClaimed(fetch, block);
          if (loan == null) {
            return false;
          }
          try {
            served.fromSource(count);
            return deliver(new ReadResult.Bytes(loan.buffer().slice(start, count)), sink);
          } finally {
            loan.release();
          }
        }
        case HELD -> {
          BufferPool.Loan loan = fetch.held(block);
          if (loan != null) {
            try {
              served.fetched(count);
              return deliver(new ReadResult.Bytes(loan.buffer().slice(start, count)), sink);
            } finally {
              loan.release();
            }
          }
        }
        case STORED -> {
          try {
            fetch.writer().copyTo(Blocks.offset(block) + start, count, sink);
            served.fetched(count);
            return true;
          } catch (MismatchException e) {
            fetches.giveUp(fetch);
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

  /**
   * Memory for a block; null if there is none now. A node that shares the source with others waits
   * for it while tiers take blocks: what it reads without memory it has to read again.
   */
  private BufferPool.@Nullable Loan memoryFor(Fetch fetch, int block) throws FsException {
    int size = fetch.blockSize(block);
    BufferPool.Loan loan = buffers.tryAcquire(size);
    long start = System.nanoTime();
    if (loan != null || share == Share.ALL || start - hurriedUntilNanos < 0) {
      return loan;
    }
    try {
      loan = buffers.acquire(size, whenTiersStop(fetch));
    } catch (InterruptedException e) {
      fetch.release(block);
      Thread.currentThread().interrupt();
      throw new FsException(Errno.EINTR, "interrupted while a block was read");
    }
    if (loan == null) {
      hurriedUntilNanos = System.nanoTime() + HURRY.toNanos();
    }
    return loan;
  }

  /** Whether the fetch has ended, or no tier has taken a block for a while. */
  private BooleanSupplier whenTiersStop(Fetch fetch) {
    long[] last = {fetches.blocksStored(), System.nanoTime()};
    return () -> {
      long stored = fetches.blocksStored();
      long now = System.nanoTime();
      if (stored != last[0]) {
        last[0] = stored;
        last[1] = now;
      }
      return !fetch.isRunning() || now - last[1] > PATIENCE.toNanos();
    };
  }

  /**
   * Reads a claimed block into memory, which is returned retained, and leaves storing it to the
   * store threads; null if the caller must read it directly.
   *
   * <p>Whatever happens, the claim is given back, or the fetch ends: others wait for the block.
   */
  private BufferPool.@Nullable Loan readClaimed(Fetch fetch, int block) throws FsException {
    try {
      // The reader fetches a single block. The rest of a larger file needs a background thread,
      // which comes second: the reader must not wait behind it for its own block.
      if (fetch.blockCount() > 1 && !fetchThreads.queue(fetch)) {
        fetch.release(block);
        return null;
      }
      return readAndHold(fetch, block);
    } catch (RuntimeException | Error e) {
      log.error("block {} of {} is not copied", block, fetches.name(fetch.inode()), e);
      fetches.giveUp(fetch);
      return null;
    }
  }

  private BufferPool.@Nullable Loan readAndHold(Fetch fetch, int block) throws FsException {
    BufferPool.Loan loan = memoryFor(fetch, block);
    if (loan == null) {
      fetch.release(block);
      fetchThreads.queue(fetch);
      return null;
    }
    boolean isRead = false;
    try {
      isRead = fetches.fetch(fetch, block, loan.buffer());
    } finally {
      if (!isRead) {
        loan.release();
      }
    }
    if (!isRead) {
      return null;
    }
    // The store threads may be done with the loan before this reader is.
    loan.retain();
    fetch.hold(block, loan);
    fetches.countForReaders(fetch.blockSize(block));
    store(fetch, block);
    return loan;
  }

  private static boolean deliver(ReadResult.Bytes bytes, ReadSink sink) throws FsException {
    try {
      sink.accept(bytes);
      return true;
    } catch (IOException e) {
      throw new FsException(Errno.EIO, "cannot pass the data to the reader", e);
    }
  }

  /**
   * Reads a range for one reader only. A file that failed is not kept open: its handle may be
   * stale, as after a server was replaced, while opening its path again may succeed.
   */
  private int readDirectly(
      Inode inode, long offset, int count, ReadSink sink, OriginCounters served)
      throws FsException {
    for (boolean isAnew = false; ; isAnew = true) {
      try {
        return readOnce(inode, offset, count, sink, served);
      } catch (FsException e) {
        sources.invalidate(inode.number());
        if (isAnew || e.errno() != Errno.ESTALE) {
          throw e;
        }
      }
    }
  }

  private int readOnce(Inode inode, long offset, int count, ReadSink sink, OriginCounters served)
      throws FsException {
    try (var lease = sources.acquire(inode)) {
      OpenSources.OpenSource open = lease.handle();
      ByteBuffer destination = sink.buffer(count);
      int read = open.read(offset, destination);
      // Checked after the read and before serving: only then is it known which file the bytes came
      // from.
      if (!open.isTheFile()) {
        throw new FsException(
            Errno.ESTALE, fetches.name(inode) + " was replaced in the source while mounted");
      }
      if (read < count) {
        throw new FsException(
            Errno.EIO,
            fetches.name(inode)
                + " is shorter than when it was looked up; unmount the dataset and mount it again");
      }
      fetches.countForReaders(count);
      served.fromSource(count);
      deliver(new ReadResult.Bytes(destination.flip()), sink);
      return count;
    }
  }

  private void store(Fetch fetch, int block) {
    try {
      storeThreads.execute(() -> FetchThreads.guarded("storing", () -> storeHeld(fetch, block)));
    } catch (RejectedExecutionException | Error e) {
      fetches.giveUp(fetch);
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
      fetches.store(fetch, block, loan.buffer());
    } catch (RuntimeException | Error e) {
      fetches.giveUp(fetch);
      throw e;
    } finally {
      loan.release();
      fetch.exit();
    }
  }

  /**
   * The file of a complete, verified copy, for a kernel that reads it without pmfs. If there is
   * none yet, returns null and starts making one if there is room.
   */
  public @Nullable Path copyFile(Inode inode) {
    Path file = copies.file(inode);
    if (file != null) {
      // The reads that follow are not visible here.
      evictor.touched(inode.number());
      return file;
    }
    if (copies.isReadByUs(inode)) {
      return null;
    }
    if (copies.has(inode)) {
      fetchThreads.verify(inode);
    } else if (inode.attributes().size() > Blocks.SIZE) {
      // The read that follows fetches a file of one block.
      Fetch fetch = fetches.forReader(inode);
      if (fetch != null) {
        fetchThreads.queue(fetch);
      }
    }
    return null;
  }

  /**
   * A file on loan with the whole content of an inode, for a kernel that reads it without pmfs;
   * null if the source lends none now.
   */
  public @Nullable LentFile lend(Inode inode) throws FsException {
    try (var lease = sources.acquire(inode)) {
      return lease.handle().lend();
    }
  }

  /**
   * Drops a file's copies, including one being made. When this returns there is none, unless the
   * file is read again meanwhile. True if there were any.
   */
  public boolean evict(long number) {
    fetches.giveUp(number);
    return copies.evict(number);
  }

  /** The set of files that this node holds has changed. */
  public void shareChanged() {
    guests.changed();
  }

  /**
   * Drops the copies that readers caused while their files were this node's own, if other nodes
   * hold these files now, whose files are only read here ({@link RemoteCopies#NEVER}). Pinned and
   * staged copies stay.
   *
   * @param isHeld whether a node that holds the file has a copy of it by now; may ask it
   * @return how many are left, because no such node has one
   */
  public long dropGuests(Predicate<Inode> isHeld) {
    AtomicBoolean any = new AtomicBoolean();
    long left =
        guests.forEachMade(
            inode -> {
              boolean isDone = !copies.has(inode) || isHeld.test(inode);
              // The nodes may have changed while the other one was asked.
              if (isDone && guests.isGuest(inode)) {
                any.compareAndSet(false, copies.evictUnpinned(inode.number()));
              }
              return isDone;
            });
    if (any.get()) {
      evictor.compact(Placement.ANYWHERE);
    }
    return left;
  }

  /** Which part of the dataset this node holds. */
  public Share share() {
    return share;
  }

  /** Where the bytes sent to this node's readers came from; other nodes are not counted. */
  public ReadOrigins readOrigins() {
    return readers.sum();
  }

  /** Bytes sent to readers of this node and of others. */
  public long bytesServed() {
    return readers.sum().bytes() + peers.sum().bytes();
  }

  /**
   * Bytes requested from the source, or a peer, because of these readers: ranges of files, and the
   * rest of files that are copied as they are read. Excludes what tasks copy.
   */
  public long bytesAskedForReaders() {
    return fetches.bytesForReaders();
  }

  /** Copies removed from a tier to make room. */
  public long evicted(Tier tier) {
    return evictor.evicted(tier);
  }

  public StagerStatus status() {
    return new StagerStatus(
        fetches.active(),
        fetchThreads.queued(),
        fetches.completed(),
        fetches.copiedAgain(),
        fetchThreads.dropped(),
        fetches.skippedNoRoom(),
        fetches.failed(),
        evictor.evicted(),
        evictor.isEvicting());
  }

  /**
   * Stops. Finishes blocks that are being copied, but not their files. Readers may continue, and
   * are answered from the source.
   */
  @Override
  public void close() {
    fetches.stop();
    fetchThreads.stop();
    storeThreads.shutdown();
    try {
      if (!fetchThreads.awaitStop(STOP)
          || !storeThreads.awaitTermination(STOP.toNanos(), TimeUnit.NANOSECONDS)) {
        log.warn("the source does not answer; leaving unfinished copies behind");
        fetchThreads.abandon();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    fetches.endAll();
    sources.close();
  }
}
