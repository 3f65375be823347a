package io.pmfs.stage;

import com.google.common.util.concurrent.RateLimiter;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.FsException;
import io.pmfs.stage.copies.CopiedFiles;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.Evictor;
import io.pmfs.stage.copies.Guests;
import io.pmfs.stage.copies.InodeBytes;
import io.pmfs.stage.copies.LentCopy;
import io.pmfs.stage.copies.Placement;
import io.pmfs.stage.formats.BlockWriter;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.stage.formats.NoRoomException;
import io.pmfs.tier.Tier;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The running fetches, at most one per file, and none if another mount has a copy that can be
 * linked. Each block is read from the source and written to the tier; after the last one the copy
 * is recorded.
 */
final class Fetches {
  private static final Logger log = LoggerFactory.getLogger(Fetches.class);

  private static final byte NO_ROOM = 1;

  /**
   * Reads do not start another copy of the file: it changed while mounted, or ran out of room late.
   */
  private static final byte UNFIT = 2;

  private final Namespace namespace;
  private final OpenSources sources;
  private final Copies copies;
  private final Evictor evictor;
  private final Guests guests;
  private final Lenders lenders;

  /**
   * INVARIANT: each fetch in this map has a pool task, or a {@link Staging}, that will end it, or a
   * reader that will queue such a task.
   */
  private final ConcurrentHashMap<Long, Fetch> running = new ConcurrentHashMap<>();

  /** {@link #NO_ROOM} or {@link #UNFIT}, so that each file is counted, and logged, once. */
  private final InodeBytes marks = new InodeBytes();

  private final CopiedFiles copied = new CopiedFiles(System::nanoTime);

  private final AtomicLong active = new AtomicLong();

  /** Of files that the kernel reads by itself and that are not copied yet. */
  private final AtomicLong lentBytes = new AtomicLong();

  private final LongAdder completed = new LongAdder();
  private final LongAdder copiedAgain = new LongAdder();
  private final LongAdder readerBytes = new LongAdder();
  private final LongAdder blocksStored = new LongAdder();
  private final LongAdder skippedNoRoom = new LongAdder();
  private final LongAdder failed = new LongAdder();

  /** Limits warnings of the same kind in the log to a few lines a second. */
  @SuppressWarnings("UnstableApiUsage")
  private final RateLimiter warnings = RateLimiter.create(5);

  private volatile boolean stopping;

  Fetches(
      Namespace namespace,
      OpenSources sources,
      Copies copies,
      Evictor evictor,
      Guests guests,
      Lenders lenders) {
    this.namespace = namespace;
    this.sources = sources;
    this.copies = copies;
    this.evictor = evictor;
    this.guests = guests;
    this.lenders = lenders;
  }

  /** The running fetch of a file, or a new one; null if the file should not be copied now. */
  @Nullable Fetch forReader(Inode inode) {
    Fetch fetch = running.get(inode.number());
    if ((fetch != null && fetch.isRunning()) || stopping || marks.get(inode.number()) == UNFIT) {
      return fetch;
    }
    if (namespace.failure() != null || copies.tiers().isEmpty()) {
      // A copy that cannot be recorded would waste room.
      return null;
    }
    boolean isGuest = guests.isGuest(inode);
    if (isGuest && guests.isOnlyRead()) {
      return null;
    }
    if (adopt(inode, Placement.ANYWHERE)) {
      return null;
    }
    fetch = runningOrNew(inode, Placement.ANYWHERE, false, () -> true);
    if (fetch == null && !isGuest && !copies.has(inode)) {
      noRoom(inode);
    }
    return fetch;
  }

  /** Forgets why a file was not copied, and gives up its fetch: there is another version now. */
  void restart(long number) {
    giveUp(number);
    sources.invalidate(number);
    marks.set(number, (byte) 0);
  }

  /**
   * Like {@link #forReader}, for a file that a task stages; does not evict copies to make room.
   *
   * @param wanted called when there is neither a copy nor a running fetch; false means that no
   *     fetch is started
   */
  @Nullable Fetch forStaging(Inode inode, Placement placement, BooleanSupplier wanted) {
    marks.compareAndSet(inode.number(), UNFIT, (byte) 0);
    if (stopping || namespace.failure() != null) {
      return null;
    }
    Fetch fetch = running.get(inode.number());
    return (fetch == null || !fetch.isRunning()) && wanted.getAsBoolean() && adopt(inode, placement)
        ? null
        : runningOrNew(inode, placement, true, wanted);
  }

  /**
   * Makes a copy of another mount one of this mount, in the first allowed tier that would take a
   * new copy or has that one; false if there is none.
   */
  boolean adopt(Inode inode, Placement placement) {
    List<LentCopy> lent = lent(inode);
    if (lent.isEmpty()) {
      return false;
    }
    for (Tier tier : copies.tiers()) {
      if (placement.allows(tier.name())) {
        if (lent.stream().anyMatch(copy -> copies.index().adopt(inode, tier, copy))) {
          return true;
        }
        if (tier.availableBytes() >= inode.attributes().size()) {
          return false;
        }
      }
    }
    return false;
  }

  private List<LentCopy> lent(Inode inode) {
    FileName path = namespace.path(inode.number());
    List<LentCopy> found =
        path == null ? List.of() : lenders.find(path, inode.attributes().version());
    return found.stream().filter(copy -> copy.isOf(inode.identity(), inode.attributes())).toList();
  }

  /** Records that a task wants a copy of the file here. */
  void wanted(Inode inode) {
    guests.wanted(inode.number());
  }

  /**
   * Reserves room for a file, in one thread at a time, unless another thread's fetch was committed
   * since the caller found no copy. A thread that waited for a fetch to end may get here before
   * that fetch is removed from the map.
   */
  private @Nullable Fetch runningOrNew(
      Inode inode, Placement placement, boolean staged, BooleanSupplier wanted) {
    return running.compute(
        inode.number(),
        (number, fetch) -> {
          if (fetch != null && fetch.isRunning()) {
            return fetch;
          }
          return copies.index().has(inode, placement) || !wanted.getAsBoolean()
              ? null
              : reserve(inode, placement, staged);
        });
  }

  private @Nullable Fetch reserve(Inode inode, Placement placement, boolean staged) {
    boolean isGuest = guests.isGuest(inode);
    for (Tier tier : copies.tiers()) {
      boolean isAllowed =
          placement.allows(tier.name())
              && (!isGuest || staged || Guests.hasRoomToSpare(tier, inode.attributes().size()));
      BlockWriter writer = isAllowed ? copies.create(inode, tier, isGuest) : null;
      if (writer != null) {
        return begin(inode, writer, staged);
      }
    }
    return null;
  }

  private Fetch begin(Inode inode, BlockWriter writer, boolean staged) {
    try {
      Fetch fetch = new Fetch(inode, writer, staged);
      active.incrementAndGet();
      return fetch;
    } catch (RuntimeException | Error e) {
      writer.close();
      throw e;
    }
  }

  /** Makes room by compacting bundles; false if that freed none. */
  boolean compact(Placement placement) {
    return evictor.compact(placement);
  }

  /** Makes room for one of this node's own files by evicting guests; false if there were none. */
  boolean displaceGuests(Inode inode, Placement placement) {
    return !guests.isGuest(inode) && evictor.displaceGuests(inode.attributes().size(), placement);
  }

  private void noRoom(Inode inode) {
    if (marks.compareAndSet(inode.number(), (byte) 0, NO_ROOM)) {
      skippedNoRoom.increment();
    }
    evictor.makeRoom(inode.attributes().size());
  }

  /**
   * Reads a whole block that the caller claimed. If it cannot be read or is of another version of
   * the file, the fetch ends (with a line in the log): no thread may claim the block again, because
   * the version check after the last block would no longer cover what was read.
   */
  boolean fetch(Fetch fetch, int block, ByteBuffer destination) {
    try (var lease = sources.acquire(fetch.inode())) {
      return fetch(fetch, block, destination, lease.handle());
    } catch (FsException e) {
      fail(fetch, String.valueOf(e.getMessage()));
      return false;
    } catch (RuntimeException | Error e) {
      fail(fetch, e.toString());
      throw e;
    }
  }

  /** Like {@link #fetch(Fetch, int, ByteBuffer)}, from a file that the caller opened. */
  boolean fetch(Fetch fetch, int block, ByteBuffer destination, OpenSources.OpenSource open) {
    Inode inode = fetch.inode();
    try {
      int expected = destination.remaining();
      int count = open.read(Blocks.offset(block), destination);
      // The thread that reads the last block, in whatever order they come, checks that all blocks
      // are of one version.
      if (count == expected && (fetch.countRead() ? open.isUnchanged() : open.isTheFile())) {
        destination.flip();
        return true;
      }
      marks.set(inode.number(), UNFIT);
      fail(fetch, "it changed in the source while mounted");
    } catch (FsException e) {
      fail(fetch, String.valueOf(e.getMessage()));
    }
    return false;
  }

  /**
   * Whether the kernel may read the file of a fetch by itself. What it reads stays in the page
   * cache until it is copied, if there is not too much of it.
   *
   * @param most bytes of all such files
   */
  boolean lend(Fetch fetch, long most) {
    synchronized (fetch) {
      if (fetch.isLent()) {
        return true;
      }
      long size = fetch.inode().attributes().size();
      boolean fits = lentBytes.addAndGet(size) <= most;
      if (!fits || !fetch.lend()) {
        lentBytes.addAndGet(-size);
        return false;
      }
      return true;
    }
  }

  /** How many threads should fill a fetch at the same time. */
  int streams(Fetch fetch) {
    if (fetch.blockCount() == 1) {
      return 1;
    }
    try (var lease = sources.acquire(fetch.inode())) {
      return lease.handle().streams();
    } catch (FsException e) {
      // The read fails too, and reports why.
      return 1;
    }
  }

  /** Claims the block that the source can deliver best now; -1 if there is none. */
  int claimNext(Fetch fetch) {
    if (fetch.blockCount() == 1) {
      return fetch.claimFree();
    }
    try (var lease = sources.acquire(fetch.inode())) {
      if (lease.handle().streams() > 1) {
        BitSet missing = fetch.missing();
        int block = missing.isEmpty() ? -1 : lease.handle().choose(missing);
        return block >= 0 && fetch.claimIfMissing(block) ? block : -1;
      }
    } catch (FsException e) {
      // Reading the first block fails too, and reports why.
    }
    return fetch.claimFree();
  }

  /** The running fetch of this version of a file; null if there is none. */
  @Nullable Fetch running(Inode inode) {
    Fetch fetch = running.get(inode.number());
    return fetch != null
            && fetch.inode().identity().equals(inode.identity())
            && fetch.inode().attributes().version().equals(inode.attributes().version())
        ? fetch
        : null;
  }

  private void fail(Fetch fetch, String problem) {
    if (warnings.tryAcquire()) {
      log.warn("{} is not copied to a tier: {}", name(fetch.inode()), problem);
    }
    failed.increment();
    end(fetch, new Fetch.Ending(Fetch.Ending.Kind.SOURCE, problem));
  }

  /** Writes a block that was read to the tier; the last one completes the copy. */
  void store(Fetch fetch, int block, ByteBuffer content) {
    boolean stored = false;
    Fetch.Ending.Kind kind = Fetch.Ending.Kind.TIER;
    String problem = "it could not be stored";
    try {
      int checksum = Blocks.checksum(content);
      fetch.writer().write(block, content);
      blocksStored.increment();
      if (fetch.stored(block, checksum)) {
        commit(fetch);
      }
      stored = true;
    } catch (NoRoomException e) {
      kind = Fetch.Ending.Kind.NO_ROOM;
      problem = String.valueOf(e.getMessage());
      marks.set(fetch.inode().number(), UNFIT);
      skippedNoRoom.increment();
    } catch (IOException e) {
      // The tier has logged it and shows it in its status.
      problem = fetch.writer().tier().name() + ": " + e.getMessage();
    } finally {
      if (!stored) {
        failed.increment();
        end(fetch, new Fetch.Ending(kind, problem));
      }
    }
  }

  private void commit(Fetch fetch) throws IOException {
    if (!copies.index().commit(fetch.inode(), fetch.writer(), fetch.record(), fetch::isRunning)) {
      if (fetch.isRunning()) {
        fail(
            fetch,
            namespace.failure() == null
                ? "it changed while it was copied"
                : "copies cannot be recorded");
      }
      return;
    }
    completed.increment();
    boolean isRead = fetch.isStaged() || fetch.isReadToItsEnd();
    if (copied.add(fetch.inode().number(), !isRead)) {
      copiedAgain.increment();
    }
    if (guests.isGuest(fetch.inode())) {
      guests.changed();
    }
    if (!fetch.isStaged()) {
      guests.madeForReader(fetch.inode().number());
    }
    // Before end(): while eviction is pending, staging must not look idle.
    if (!fetch.isStaged()) {
      evictor.keepRoom(fetch.writer().tier(), fetch.inode().attributes().size());
    }
    end(fetch, Fetch.Ending.WHOLE);
  }

  /** Gives up a file's fetch: it is not committed after this returns, unless it was before. */
  void giveUp(long number) {
    Fetch fetch = running.get(number);
    if (fetch != null) {
      giveUp(fetch);
    }
  }

  /** Gives up a fetch that a reader started; a staged one is ended by its {@link Staging}. */
  void giveUpUnstaged(long number) {
    Fetch fetch = running.get(number);
    if (fetch != null && !fetch.isStaged()) {
      giveUp(fetch);
    }
  }

  /** Ends an incomplete fetch; its readers continue with the tier or the source. */
  void giveUp(Fetch fetch) {
    end(fetch, new Fetch.Ending(Fetch.Ending.Kind.GIVEN_UP, "it was given up"));
  }

  private void end(Fetch fetch, Fetch.Ending how) {
    if (fetch.end(how)) {
      running.remove(fetch.inode().number(), fetch);
      sources.invalidate(fetch.inode().number());
      active.decrementAndGet();
      if (fetch.isLent()) {
        lentBytes.addAndGet(-fetch.inode().attributes().size());
      }
    }
  }

  /** The file's name in messages. */
  String name(Inode inode) {
    return sources.name(inode);
  }

  /** The status of copying, with the counts of the fetch threads' queue. */
  StagerStatus status(long queued, long dropped) {
    return new StagerStatus(
        active.get(),
        queued,
        completed.sum(),
        copiedAgain.sum(),
        dropped,
        skippedNoRoom.sum(),
        failed.sum(),
        evictor.evicted(),
        evictor.isEvicting());
  }

  /** Counts bytes requested from the source, or a peer, for a reader. */
  void countForReaders(long bytes) {
    readerBytes.add(bytes);
  }

  /** The sum of {@link #countForReaders}. */
  long bytesForReaders() {
    return readerBytes.sum();
  }

  /** Blocks that tiers have taken. */
  long blocksStored() {
    return blocksStored.sum();
  }

  /** See {@link CopiedFiles#isJustCopied}. */
  boolean isJustCopied(long number, boolean toItsEnd) {
    return copied.isJustCopied(number, toItsEnd);
  }

  boolean isStopping() {
    return stopping;
  }

  /** Starts no new fetches from now on. */
  void stop() {
    stopping = true;
  }

  /** Gives up all running fetches. */
  void endAll() {
    running.values().forEach(this::giveUp);
  }
}
