package io.pmfs.stage;

import com.google.common.util.concurrent.RateLimiter;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.tier.FsException;
import io.pmfs.tier.Tier;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The copies in the making, one for a file at most, and the steps that each of their blocks goes
 * through: read from the source, written to the tier, and with the last one the copy is recorded.
 */
final class Fetches {
  private static final Logger log = LoggerFactory.getLogger(Fetches.class);

  private static final byte NO_ROOM = 1;

  /**
   * Readers do not have it copied again: it changed while it was mounted, or found no room late.
   */
  private static final byte UNFIT = 2;

  private final Namespace namespace;
  private final OpenSources sources;
  private final Copies copies;
  private final Evictor evictor;
  private final Guests guests;

  /**
   * INVARIANT: each fetch in here has a task in a pool, or a {@link Staging}, that will end it, or
   * a reader that will give it one.
   */
  private final ConcurrentHashMap<Long, Fetch> running = new ConcurrentHashMap<>();

  /** {@link #NO_ROOM} or {@link #UNFIT}, so that each is counted, and logged, once. */
  private final InodeBytes marks = new InodeBytes();

  private final CopiedFiles copied = new CopiedFiles(System::nanoTime);

  private final AtomicLong active = new AtomicLong();
  private final LongAdder completed = new LongAdder();
  private final LongAdder copiedAgain = new LongAdder();
  private final LongAdder readerBytes = new LongAdder();
  private final LongAdder skippedNoRoom = new LongAdder();
  private final LongAdder failed = new LongAdder();

  /** At most a few lines a second of the same kind in the log. */
  @SuppressWarnings("UnstableApiUsage")
  private final RateLimiter warnings = RateLimiter.create(5);

  private volatile boolean stopping;

  Fetches(Namespace namespace, OpenSources sources, Copies copies, Evictor evictor, Guests guests) {
    this.namespace = namespace;
    this.sources = sources;
    this.copies = copies;
    this.evictor = evictor;
    this.guests = guests;
  }

  /** The running fetch of a file, a new one, or null if it is not to be copied now. */
  @Nullable Fetch forReader(Inode inode) {
    Fetch fetch = running.get(inode.number());
    if ((fetch != null && fetch.isRunning()) || stopping || marks.get(inode.number()) == UNFIT) {
      return fetch;
    }
    if (namespace.failure() != null) {
      // A copy that is not recorded would be lost room.
      return null;
    }
    boolean isGuest = guests.isGuest(inode);
    if (isGuest && guests.isOnlyRead()) {
      return null;
    }
    fetch = runningOrNew(inode, Placement.ANYWHERE, false, () -> true);
    if (fetch == null && !isGuest && !copies.has(inode)) {
      noRoom(inode);
    }
    return fetch;
  }

  /**
   * The same for a file that was asked for by name; makes no room for it by eviction.
   *
   * @param wanted asked when there is neither a copy nor a running fetch: false, and there is none
   */
  @Nullable Fetch forStaging(Inode inode, Placement placement, BooleanSupplier wanted) {
    marks.compareAndSet(inode.number(), UNFIT, (byte) 0);
    return stopping || namespace.failure() != null
        ? null
        : runningOrNew(inode, placement, true, wanted);
  }

  /**
   * One reservation at a time for a file, and none for one that another's fetch committed between
   * the caller's miss and now. Who waited for a fetch to end may be here before it is taken out.
   */
  private @Nullable Fetch runningOrNew(
      Inode inode, Placement placement, boolean staged, BooleanSupplier wanted) {
    return running.compute(
        inode.number(),
        (number, fetch) -> {
          if (fetch != null && fetch.isRunning()) {
            return fetch;
          }
          return copies.has(inode, placement) || !wanted.getAsBoolean()
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
        active.incrementAndGet();
        return new Fetch(inode, writer, staged);
      }
    }
    return null;
  }

  /** Makes room by moving copies together; says whether there may be some now. */
  boolean compact(Placement placement) {
    return evictor.compact(placement);
  }

  /** Makes room for one of this node's own files; says whether there may be some now. */
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
   * Reads a whole block that the caller claimed. If it could not be read or is of another version
   * of the file, the fetch ends (with a line in the log): nobody may claim the block again, for
   * what was read of it is not looked at as a whole any more.
   */
  boolean read(Fetch fetch, int block, ByteBuffer destination) {
    try (var lease = sources.acquire(fetch.inode())) {
      return read(fetch, block, destination, lease.handle());
    } catch (FsException e) {
      fail(fetch, String.valueOf(e.getMessage()));
      return false;
    } catch (RuntimeException e) {
      fail(fetch, e.toString());
      throw e;
    }
  }

  /** The same from a file that the caller opened. */
  boolean read(Fetch fetch, int block, ByteBuffer destination, OpenSources.OpenSource open) {
    Inode inode = fetch.inode();
    try {
      int expected = destination.remaining();
      int count = open.read(Blocks.offset(block), destination);
      // Whoever reads the last of the blocks, in whatever order they come, sees whether all of them
      // are of one version.
      if (count == expected && (fetch.countRead() ? open.isUnchanged() : open.isTheFile())) {
        destination.flip();
        return true;
      }
      marks.set(inode.number(), UNFIT);
      fail(fetch, "it changed while it is mounted");
    } catch (FsException e) {
      fail(fetch, String.valueOf(e.getMessage()));
    }
    return false;
  }

  private void fail(Fetch fetch, String problem) {
    if (warnings.tryAcquire()) {
      log.warn("{} is not copied to a tier: {}", name(fetch.inode()), problem);
    }
    failed.increment();
    end(fetch, new Fetch.Ending(Fetch.Ending.Kind.SOURCE, problem));
  }

  /** Writes a block that was read to the tier; the last one makes the copy whole. */
  void store(Fetch fetch, int block, ByteBuffer content) {
    int checksum = Blocks.checksum(content);
    boolean stored = false;
    Fetch.Ending.Kind kind = Fetch.Ending.Kind.TIER;
    String problem = "it could not be stored";
    try {
      fetch.writer().write(block, content);
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
      // The tier has said so in the log and in its status.
      problem = fetch.writer().tier().name() + ": " + e.getMessage();
    } finally {
      if (!stored) {
        failed.increment();
        end(fetch, new Fetch.Ending(kind, problem));
      }
    }
  }

  private void commit(Fetch fetch) throws IOException {
    if (!copies.commit(fetch.inode(), fetch.writer(), fetch.record(), fetch::isRunning)) {
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
    // Before the end: until eviction is under way there is something left to do.
    if (!fetch.isStaged()) {
      evictor.keepRoom(fetch.writer().tier(), fetch.inode().attributes().size());
    }
    end(fetch, Fetch.Ending.WHOLE);
  }

  /** Gives up what runs for a file: it is not committed once this returns, or was before. */
  void giveUp(long number) {
    Fetch fetch = running.get(number);
    if (fetch != null) {
      giveUp(fetch);
    }
  }

  /** The same for what readers began: what is staged is ended by who stages it. */
  void giveUpUnstaged(long number) {
    Fetch fetch = running.get(number);
    if (fetch != null && !fetch.isStaged()) {
      giveUp(fetch);
    }
  }

  /** Ends a fetch that is not to be finished; readers of it go to the tier or to the source. */
  void giveUp(Fetch fetch) {
    end(fetch, new Fetch.Ending(Fetch.Ending.Kind.GIVEN_UP, "it was given up"));
  }

  private void end(Fetch fetch, Fetch.Ending how) {
    if (fetch.end(how)) {
      running.remove(fetch.inode().number(), fetch);
      sources.invalidate(fetch.inode().number());
      active.decrementAndGet();
    }
  }

  /** For messages. */
  String name(Inode inode) {
    FileName path = namespace.path(inode.number());
    return path == null ? "inode " + inode.number() : path.toString();
  }

  long active() {
    return active.get();
  }

  long completed() {
    return completed.sum();
  }

  /** The source, or a peer, was asked for so many bytes because of a reader. */
  void countForReaders(long bytes) {
    readerBytes.add(bytes);
  }

  /** What it was asked for so. */
  long bytesForReaders() {
    return readerBytes.sum();
  }

  /** See {@link CopiedFiles#isJustCopied}. */
  boolean isJustCopied(long number, boolean toItsEnd) {
    return copied.isJustCopied(number, toItsEnd);
  }

  long copiedAgain() {
    return copiedAgain.sum();
  }

  long skippedNoRoom() {
    return skippedNoRoom.sum();
  }

  long failed() {
    return failed.sum();
  }

  boolean isStopping() {
    return stopping;
  }

  /** No new ones from now on. */
  void stop() {
    stopping = true;
  }

  /** Gives up what runs. */
  void endAll() {
    running.values().forEach(this::giveUp);
  }
}
