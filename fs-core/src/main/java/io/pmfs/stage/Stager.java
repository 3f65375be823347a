package io.pmfs.stage;

import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.DaemonPool;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.LentFile;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.Evictor;
import io.pmfs.stage.copies.Guests;
import io.pmfs.stage.copies.Placement;
import io.pmfs.stage.copies.Share;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.stage.formats.Compression;
import io.pmfs.tier.Tier;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.BitSet;
import java.util.OptionalInt;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where a reader's bytes come from: a copy, else a fetch, else the source. What is read from the
 * source becomes whole copies in the first tier with room.
 *
 * <p>{@link ReadThrough} answers readers from the {@link Fetches}, {@link FetchThreads} fetch the
 * rest in the background, a {@link Staging} copies for a task.
 */
public final class Stager implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Stager.class);

  private static final String STORE = "store";

  private static final int ROUNDS = 4;

  /**
   * The smallest file of the source that is lent: lending costs a reader as much as reading half a
   * block through the daemon (docs/results/first-reads.md).
   */
  private static final int LEAST_LENT = Blocks.SIZE / 2;

  private static final Duration STOP = Duration.ofSeconds(30);

  private final Copies copies;
  private final Share share;
  private final Guests guests;
  private final EvictionPolicy eviction;
  private final Evictor evictor;
  private final OpenSources sources;
  private final Fetches fetches;
  private final FetchThreads fetchThreads;
  private final ExecutorService storeThreads;
  private final ReadThrough readThrough;

  private final OriginCounters readers;
  private final OriginCounters peers;
  private final LongAdder onlyLent = new LongAdder();

  /**
   * Reads files of the source, and copies them to tiers with room.
   *
   * @param share which part of the dataset this node holds
   * @param lenders other mounts whose copies are used
   * @param background run first by each thread whose work readers do not wait for
   */
  public Stager(
      Namespace namespace,
      BackingStore source,
      Copies copies,
      EvictionPolicy eviction,
      StagerSettings settings,
      Share share,
      Lenders lenders,
      Runnable background) {
    this(
        namespace,
        source,
        copies,
        eviction,
        settings,
        share,
        lenders,
        name -> FetchThreads.named(name, isAwaited(name, copies) ? () -> {} : background));
  }

  /**
   * Whether readers need the memory that these threads give back. Compressing takes too long for
   * that: it gets the processor time that is left.
   */
  private static boolean isAwaited(String name, Copies copies) {
    return name.equals(STORE)
        && copies.formats().stream()
            .allMatch(format -> format.compression().mode() == Compression.Mode.NONE);
  }

  /** Takes the threads from tests. */
  Stager(
      Namespace namespace,
      BackingStore source,
      Copies copies,
      EvictionPolicy eviction,
      StagerSettings settings,
      Share share,
      Lenders lenders,
      Function<String, ThreadFactory> threads) {
    this.sources = new OpenSources(namespace, source);
    this.copies = copies;
    this.readers = new OriginCounters(copies.tiers().size());
    this.peers = new OriginCounters(copies.tiers().size());
    this.storeThreads = new DaemonPool(StagerSettings.STORE_THREADS, threads.apply(STORE));
    this.share = share;
    this.guests = new Guests(share, namespace);
    this.eviction = eviction;
    this.evictor = new Evictor(namespace, copies, eviction, guests, storeThreads);
    this.fetches = new Fetches(namespace, sources, copies, evictor, guests, lenders);
    this.fetchThreads = new FetchThreads(copies, fetches, settings, threads);
    this.readThrough =
        new ReadThrough(
            fetches,
            fetchThreads,
            storeThreads,
            copies.memory().readers(settings.bufferBytes()),
            share != Share.ALL);
  }

  /**
   * Compares each tier with the records in the background: forgets missing copies, removes files
   * without a record, and counts the rest. After an unclean stop a tier accepts no copies until
   * then. Call once.
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
   * Like {@link #serve(Inode, long, int, ReadSink)}, for another node; not counted for this node's
   * readers.
   */
  public int servePeer(Inode inode, long offset, int size, ReadSink sink) throws FsException {
    return serve(inode, offset, size, sink, peers);
  }

  private int serve(Inode inode, long offset, int size, ReadSink sink, OriginCounters served)
      throws FsException {
    // A copy may be committed or dropped between the lookup and the read; after a few rounds only
    // the source is left.
    for (int round = 0; round < ROUNDS; round++) {
      int count = serveFromCopyOrFetch(inode, offset, size, sink, served);
      if (count > 0) {
        return count;
      }
      if (!copies.has(inode)) {
        break;
      }
    }
    return serveFromSource(inode, offset, size, sink, served);
  }

  /** Returns 0 if neither has the range. An error is a miss: the next origin is tried. */
  private int serveFromCopyOrFetch(
      Inode inode, long offset, int size, ReadSink sink, OriginCounters served) throws FsException {
    int before = sink.received();
    try {
      int count = serveFromCopy(inode, offset, size, sink, served);
      return count > 0 ? count : readThrough.serve(inode, offset, size, sink, served);
    } catch (RuntimeException | Error e) {
      if (before < 0 || sink.received() != before) {
        throw e;
      }
      log.error("{}: reading without a copy", fetches.name(inode), e);
      return 0;
    }
  }

  private int serveFromCopy(
      Inode inode, long offset, int size, ReadSink sink, OriginCounters served) {
    int tier = copies.copyTo(inode, offset, size, sink);
    if (tier == Copies.NO_TIER) {
      return 0;
    }
    eviction.touched(inode.number());
    boolean toItsEnd = offset + size >= inode.attributes().size();
    if (fetches.isJustCopied(inode.number(), toItsEnd)) {
      served.fetched(size);
    } else {
      served.fromTier(tier, size);
    }
    return size;
  }

  private int serveFromSource(
      Inode inode, long offset, int size, ReadSink sink, OriginCounters served) throws FsException {
    ByteBuffer bytes = sink.buffer(size);
    sources.read(inode, offset, bytes);
    fetches.countForReaders(size);
    served.fromSource(size);
    ReadThrough.deliver(bytes.flip(), sink);
    return size;
  }

  /**
   * Proves, before a file is read, that it is of the version that the inode describes. Fetches the
   * first block, which a reader is about to need; a file that is not copied is only checked.
   *
   * @throws FsException ESTALE if it is of another version; else the source's own failure
   */
  public void prove(Inode inode) throws FsException {
    for (int round = 0; round < ROUNDS; round++) {
      if (copies.has(inode)) {
        proveCopy(inode);
        return;
      }
      if (inode.attributes().size() > 0 && readThrough.readFirstBlock(inode, readers)) {
        return;
      }
      // Another thread may have made a copy in between.
      if (!copies.has(inode)) {
        break;
      }
    }
    sources.prove(inode);
  }

  /** Like {@link #prove}, for a file that has a copy, perhaps of an earlier session. */
  public void proveCopy(Inode inode) throws FsException {
    sources.proveCopy(inode);
  }

  /** Discards what is known of a file that has another version at the source. */
  public void restart(long number) {
    fetches.restart(number);
  }

  /**
   * Serves a range, which must lie within the file, to another node from a copy, or up to the end
   * of its first block from an unfinished copy that has this block. Waits for no block.
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
    return readThrough.serveIfRead(inode, offset, size, sink, peers);
  }

  /** The blocks that an unfinished copy has so far; null if there is none. */
  public @Nullable BitSet blocksBeingCopied(Inode inode) {
    Fetch fetch = fetches.running(inode);
    return fetch == null || !fetch.isRunning() ? null : fetch.read();
  }

  /** The checksum of a block that an unfinished copy has in its tier. */
  public OptionalInt checksumBeingCopied(Inode inode, int block) {
    Fetch fetch = fetches.running(inode);
    return fetch == null ? OptionalInt.empty() : fetch.checksum(block);
  }

  /**
   * The file of a complete, verified copy, for a kernel that reads it without pmfs; null if there
   * is none. This method starts no copy: it might be complete before the caller asks to {@link
   * #lend}.
   */
  public @Nullable Path copyFile(Inode inode) {
    Path file = copies.file(inode);
    if (file == null && !copies.has(inode) && fetches.adopt(inode, Placement.ANYWHERE)) {
      file = copies.file(inode);
    }
    if (file != null) {
      // The kernel's reads that follow are not visible here.
      eviction.touched(inode.number());
      return file;
    }
    if (!copies.isReadByUs(inode) && copies.has(inode)) {
      fetchThreads.verify(inode);
    }
    return null;
  }

  /**
   * A file on loan with the whole content of an inode that has no copy, for a kernel that reads it
   * without pmfs; null if the source lends none now. A copy is made at the same time, from the page
   * cache: if that cannot keep up, nothing is lent.
   *
   * @param most bytes that may be lent and not copied yet
   */
  public @Nullable LentFile lend(Inode inode, long most) throws FsException {
    if (copies.has(inode)) {
      return null;
    }
    LentFile file = sources.lend(inode);
    boolean isLent = false;
    try {
      isLent = file != null && isWorthLending(file, inode) && copyBehind(inode, most);
      return isLent ? file : null;
    } finally {
      if (file != null && !isLent) {
        file.close();
      }
    }
  }

  private static boolean isWorthLending(LentFile file, Inode inode) {
    return file.isCopy() || inode.attributes().size() >= LEAST_LENT;
  }

  private boolean copyBehind(Inode inode, long most) {
    Fetch fetch = fetches.forReader(inode);
    if (fetch != null) {
      boolean isLent = fetches.lend(fetch, most);
      return fetchThreads.queue(fetch) && isLent;
    }
    boolean isOnlyLent = !copies.has(inode);
    onlyLent.add(isOnlyLent ? inode.attributes().size() : 0);
    return isOnlyLent;
  }

  /**
   * Bytes of files that were lent and not copied, for want of room; each file counts whole, once
   * for each time.
   */
  public long bytesOnlyLent() {
    return onlyLent.sum();
  }

  /**
   * Drops a file's copies, including an unfinished one; another read may start a new one. True if
   * there were any.
   */
  public boolean evict(long number) {
    fetches.giveUp(number);
    return copies.evict(number);
  }

  /** Called when the set of files that this node holds has changed. */
  public void shareChanged() {
    guests.changed();
  }

  /** See {@link Evictor#dropGuests}. */
  public long dropGuests(Predicate<Inode> isHeld) {
    return evictor.dropGuests(isHeld);
  }

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
   * Bytes requested from the source, or a peer, for these readers: ranges of files, and the rest of
   * files copied while they are read. Excludes copies made by tasks.
   */
  public long bytesAskedForReaders() {
    return fetches.bytesForReaders();
  }

  public long evicted(Tier tier) {
    return evictor.evicted(tier);
  }

  public StagerStatus status() {
    return fetches.status(fetchThreads.queued(), fetchThreads.dropped());
  }

  /** Finishes blocks being copied, but not their files. Readers may continue, from the source. */
  @Override
  public void close() {
    fetches.stop();
    fetchThreads.stop();
    storeThreads.shutdown();
    try {
      if (!fetchThreads.awaitStop(STOP)
          || !storeThreads.awaitTermination(STOP.toNanos(), TimeUnit.NANOSECONDS)) {
        log.warn("the source does not answer; abandoning unfinished copies");
        fetchThreads.abandon();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    fetches.endAll();
    sources.close();
  }
}
