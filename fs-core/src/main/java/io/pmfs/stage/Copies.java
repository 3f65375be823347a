package io.pmfs.stage;

import com.google.common.util.concurrent.Striped;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Extent;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.tier.CopyReader;
import io.pmfs.tier.ReadSink;
import io.pmfs.tier.Tier;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.Lock;
import java.util.function.BooleanSupplier;
import java.util.function.IntPredicate;
import java.util.function.LongConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which tier holds a copy of which file, and reading from there. Knows the copies that the records
 * name, serves none whose checksums were not compared in this session, and drops what does not
 * match.
 *
 * <p>INVARIANT: a tier is named in {@link #where} only after its copy was committed and recorded,
 * or read from the records; a copy is of the version that the inode's checked attributes describe,
 * because whoever sees another version calls {@link #drop} first.
 */
public final class Copies implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Copies.class);

  /** An open waits for so much to be verified: some milliseconds. */
  private static final long VERIFIED_AT_OPEN_BYTES = 8L * Blocks.SIZE;

  private static final int OPEN_COPIES = 512;

  /** More than all readers together need for frames of which they want a part. */
  private static final int FRAME_POOL_BYTES = 32 << 20;

  private static final Duration IDLE = Duration.ofSeconds(30);

  private final Namespace namespace;
  private final List<Tier> tiers;
  private final List<CopyFormat> formats;
  private final FramePool frames = new FramePool(FRAME_POOL_BYTES);
  private final InodeBytes where = new InodeBytes();
  private final HandleTable<OpenCopy> handles = new HandleTable<>(OPEN_COPIES, IDLE);

  /**
   * Held while the records of an inode and what the tiers have of it change together. The inode's
   * number selects the lock. Nothing is called out with it but the namespace and a tier.
   */
  private final Striped<Lock> recordLocks = Striped.lock(64);

  private volatile LongConsumer dropListener = number -> {};
  private final LongAdder verified = new LongAdder();
  private final LongAdder mismatches = new LongAdder();

  /**
   * Serves what the namespace's records say the tiers hold.
   *
   * @param tiers fastest first; closed with this
   */
  public Copies(Namespace namespace, List<Tier> tiers) {
    this(namespace, tiers, tiers.stream().map(tier -> CopyFormat.raw()).toList());
  }

  /**
   * The same, with copies compressed.
   *
   * @param formats how each tier's copies are stored; closed with this
   */
  public Copies(Namespace namespace, List<Tier> tiers, List<CopyFormat> formats) {
    if (tiers.size() != formats.size()) {
      throw new IllegalArgumentException("each tier has one format");
    }
    if (tiers.size() > Whereabouts.MAX_TIERS) {
      throw new IllegalArgumentException(
          "there may be " + Whereabouts.MAX_TIERS + " tiers at most");
    }
    this.namespace = namespace;
    this.tiers = List.copyOf(tiers);
    this.formats = List.copyOf(formats);
  }

  public List<Tier> tiers() {
    return tiers;
  }

  /** How each tier's copies are stored. */
  public List<CopyFormat> formats() {
    return formats;
  }

  /** Raw copies whose checksums were compared and matched. */
  public long verified() {
    return verified.sum();
  }

  /** Copies that were dropped because their bytes, length or file were not what was recorded. */
  public long mismatches() {
    return mismatches.sum();
  }

  /** Reserves room in a tier for a file's copy; null if there is none. */
  @Nullable BlockWriter create(Inode inode, Tier tier) {
    return BlockWriter.create(inode, tier, format(tier), frames);
  }

  CopyFormat format(Tier tier) {
    return formats.get(tiers.indexOf(tier));
  }

  /**
   * Whether some tier is known to hold a copy; not every known copy can be read when it comes to
   * it.
   */
  public boolean has(Inode inode) {
    return Whereabouts.isInTier(locate(inode));
  }

  /**
   * Reads a range, which must lie within the file, from the fastest tier that holds a copy.
   *
   * @return whether all of it was passed to the sink; if not, nothing was
   */
  boolean read(Inode inode, long offset, int size, ReadSink sink) {
    long number = inode.number();
    // Each round that fails drops the copy it tried, or its tier failed: twice the tiers is more
    // than enough.
    for (int round = 0; round < 2 * tiers.size(); round++) {
      byte state = locate(inode);
      if (!Whereabouts.isInTier(state)) {
        return false;
      }
      Tier tier = tiers.get(Whereabouts.tierIndex(state));
      try (var lease =
          handles.acquire(number, () -> open(inode, tier, Whereabouts.isVerified(state)))) {
        if (lease == null) {
          missing(inode, tier);
          continue;
        }
        lease.handle().read(offset, size, sink);
        return true;
      } catch (MismatchException e) {
        dropBad(inode, tier, String.valueOf(e.getMessage()));
      } catch (EOFException e) {
        dropBad(inode, tier, "it is shorter than it was");
      } catch (IOException e) {
        // The record stays: what is on the disk may serve the next session.
        tier.failed(e);
        handles.invalidate(number);
      }
    }
    return false;
  }

  /**
   * The file of a copy that was verified whole in this session, for a kernel that reads it without
   * us; null if there is none. A small copy is verified here and now.
   */
  @Nullable Path file(Inode inode) {
    byte state = locate(inode);
    if (!Whereabouts.isRawFile(state)) {
      return null;
    }
    if (!Whereabouts.isVerified(state)) {
      if (inode.attributes().size() > VERIFIED_AT_OPEN_BYTES || !verify(inode)) {
        return null;
      }
    }
    state = locate(inode);
    return Whereabouts.isVerified(state) && Whereabouts.isRawFile(state)
        ? tiers.get(Whereabouts.tierIndex(state)).file(inode.number())
        : null;
  }

  /** Whether there is a copy that the kernel cannot read without us. */
  public boolean isReadByUs(Inode inode) {
    byte state = locate(inode);
    return Whereabouts.isInTier(state) && !Whereabouts.isRawFile(state);
  }

  /** Verifies a whole copy, block by block; says whether there is one and it is good. */
  boolean verify(Inode inode) {
    long size = inode.attributes().size();
    for (long offset = 0; offset < size; offset += Blocks.SIZE) {
      int count = (int) Math.min(Blocks.SIZE, size - offset);
      if (!read(inode, offset, count, NoSink.NO_SINK)) {
        return false;
      }
    }
    return true;
  }

  /**
   * Compares a whole copy with its checksums, though it may have been compared before; says what is
   * wrong with it, or null if nothing is or it went away.
   *
   * @param goesOn is told how many bytes were compared, as they are; false ends it
   * @throws IOException if the tier failed
   */
  public @Nullable String compare(Inode inode, CopyRecord copy, IntPredicate goesOn)
      throws IOException {
    int index = tierIndex(copy.tier());
    if (index == tiers.size()) {
      return "there is no such tier any more";
    }
    Tier tier = tiers.get(index);
    try (OpenCopy fresh = open(inode, tier, false)) {
      if (fresh == null) {
        boolean isGone = tier.hasFailed() || !namespace.copies(inode.number()).contains(copy);
        return isGone ? null : "its file is not there";
      }
      long size = copy.version().size();
      boolean goOn = true;
      for (long offset = 0; offset < size && goOn; offset += Blocks.SIZE) {
        int count = (int) Math.min(Blocks.SIZE, size - offset);
        fresh.read(offset, count, NoSink.NO_SINK);
        goOn = goesOn.test(count);
      }
      return null;
    } catch (MismatchException e) {
      return String.valueOf(e.getMessage());
    } catch (EOFException e) {
      return "it is shorter than it was";
    } catch (IOException e) {
      tier.failed(e);
      handles.invalidate(inode.number());
      throw e;
    }
  }

  /**
   * Serves a bad copy no more in this session: it is dropped, or stays where it is until the file
   * is read and copied again.
   */
  public void reject(Inode inode, CopyRecord copy, String why, boolean drop) {
    int index = tierIndex(copy.tier());
    if (drop && index < tiers.size()) {
      dropBad(inode, tiers.get(index), why);
      return;
    }
    where.set(inode.number(), Whereabouts.NOWHERE);
    handles.invalidate(inode.number());
    dropListener.accept(inode.number());
  }

  /** Has the listener told of every inode whose copy goes away, by any thread. */
  public void onDrop(LongConsumer listener) {
    dropListener = listener;
  }

  /** Whether a copy is known where the placement wants it. */
  boolean has(Inode inode, Placement placement) {
    return has(inode)
        && (placement.tier() == null
            || namespace.copies(inode.number()).stream()
                .anyMatch(copy -> placement.allows(copy.tier()) && serves(copy, inode)));
  }

  private boolean serves(CopyRecord copy, Inode inode) {
    int index = tierIndex(copy.tier());
    return index < tiers.size()
        && !tiers.get(index).hasFailed()
        && copy.version().equals(inode.attributes().version());
  }

  /**
   * Pins the copies if that is wanted, and if one tier is wanted, drops those in others; false if
   * there is none there any more.
   */
  boolean place(Inode inode, Placement placement) {
    if (placement.equals(Placement.ANYWHERE)) {
      return true;
    }
    List<CopyRecord> records = namespace.copies(inode.number());
    // What was pinned stays so where it goes.
    boolean pins = placement.pin() || records.stream().anyMatch(CopyRecord::pinned);
    boolean placed = false;
    for (CopyRecord copy : records) {
      if (placement.allows(copy.tier())) {
        placed |= serves(copy, inode) && (!pins || pin(inode, copy.tier()));
      }
    }
    for (CopyRecord copy : records) {
      int index = tierIndex(copy.tier());
      if (placed && index < tiers.size() && !placement.allows(copy.tier())) {
        evict(inode.number(), tiers.get(index));
      }
    }
    return placed;
  }

  private boolean pin(Inode inode, String tier) {
    Lock lock = lockRecords(inode.number());
    try {
      CopyRecord copy = namespace.copy(inode.number(), tier);
      if (copy != null && !copy.pinned()) {
        namespace.putCopy(inode.number(), copy.pinned(true));
      }
      return copy != null;
    } finally {
      lock.unlock();
    }
  }

  /** Why no tier that may be used works; null if one does. */
  @Nullable String failure(Placement placement) {
    String failure = "there is no such tier";
    for (Tier tier : tiers) {
      if (placement.allows(tier.name())) {
        if (!tier.hasFailed()) {
          return null;
        }
        failure = tier.name() + ": " + tier.status().reason();
      }
    }
    return failure;
  }

  /** Whether the copy there was of a file is of another version than the file. */
  public boolean isOutdated(long number) {
    return where.get(number) == Whereabouts.OUTDATED;
  }

  /**
   * Commits and records a copy, whose checksums were computed from what was written; false if the
   * file is known to be of another version by now, or the copy is not wanted any more.
   *
   * @param wanted asked while no record of the file changes: after it was false, and the copies
   *     were dropped, none comes
   */
  boolean commit(Inode inode, BlockWriter writer, CopyRecord copy, BooleanSupplier wanted)
      throws IOException {
    long number = inode.number();
    Lock lock = lockRecords(number);
    try {
      Inode now = namespace.inode(number);
      if (now == null
          || !now.attributes().version().equals(copy.version())
          || !wanted.getAsBoolean()) {
        return false;
      }
      Tier tier = writer.tier();
      CopyRecord placed = copy.at(writer.commit());
      CopyRecord replaced = namespace.copy(number, tier.name());
      namespace.putCopy(number, placed);
      format(tier).count(copy.version().size());
      if (replaced != null) {
        format(tier).count(-replaced.version().size());
        if (replaced.extent() != null || placed.extent() != null) {
          tier.remove(number, replaced.extent());
        }
      }
      handles.invalidate(number);
      where.set(number, Whereabouts.written(placed, tiers.indexOf(tier)));
      return true;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Removes all copies of an inode and their records, for its content changed or it is gone.
   *
   * @return whether there were any
   */
  public boolean drop(long number) {
    return remove(number, Whereabouts.OUTDATED, copy -> true);
  }

  /** The same, because they are not wanted any more. */
  public boolean evict(long number) {
    return remove(number, Whereabouts.UNKNOWN, copy -> true);
  }

  /** The same, but for those that are pinned. */
  public boolean evictUnpinned(long number) {
    return remove(number, Whereabouts.UNKNOWN, copy -> !copy.pinned());
  }

  private boolean remove(long number, byte why, Predicate<CopyRecord> which) {
    List<CopyRecord> records;
    Lock lock = lockRecords(number);
    try {
      records = namespace.copies(number).stream().filter(which).toList();
      for (CopyRecord copy : records) {
        int index = tierIndex(copy.tier());
        if (index < tiers.size()) {
          tiers.get(index).remove(number, copy.extent());
          format(tiers.get(index)).count(-copy.version().size());
        }
        namespace.removeCopy(number, copy.tier());
      }
      if (!records.isEmpty()) {
        where.set(number, why);
      } else if (why == Whereabouts.OUTDATED && where.get(number) != Whereabouts.OUTDATED) {
        where.set(number, Whereabouts.NOWHERE);
      }
      handles.invalidate(number);
    } finally {
      lock.unlock();
    }
    if (!records.isEmpty() || why == Whereabouts.OUTDATED) {
      dropListener.accept(number);
    }
    return !records.isEmpty();
  }

  /** Removes the copy in one tier, to make room. */
  void evict(long number, Tier tier) {
    Lock lock = lockRecords(number);
    try {
      CopyRecord copy = namespace.copy(number, tier.name());
      namespace.removeCopy(number, tier.name());
      where.set(number, Whereabouts.UNKNOWN);
      if (copy != null) {
        format(tier).count(-copy.version().size());
        tier.remove(number, copy.extent());
      }
      handles.invalidate(number);
    } finally {
      lock.unlock();
    }
    dropListener.accept(number);
  }

  /**
   * Moves what is wanted of sparse bundles of a tier together, which makes room; false if there was
   * nothing to do. By one thread at a time.
   */
  boolean compact(Tier tier) {
    Set<Long> bundles = tier.sparseBundles();
    if (bundles.isEmpty()) {
      return false;
    }
    List<Long> numbers = new ArrayList<>();
    namespace.listCopies(
        Namespace.ROOT,
        (number, copy) -> {
          if (copy.tier().equals(tier.name()) && isIn(bundles, copy)) {
            numbers.add(number);
          }
          return true;
        });
    return numbers.stream().filter(number -> move(number, tier, bundles)).count() > 0;
  }

  private static boolean isIn(Set<Long> bundles, CopyRecord copy) {
    Extent extent = copy.extent();
    return extent != null && bundles.contains(extent.bundle());
  }

  private boolean move(long number, Tier tier, Set<Long> bundles) {
    Lock lock = lockRecords(number);
    try {
      CopyRecord copy = namespace.copy(number, tier.name());
      Extent from = copy == null ? null : copy.extent();
      Extent to = copy == null || from == null || !isIn(bundles, copy) ? null : tier.move(from);
      if (copy == null || to == null) {
        return false;
      }
      namespace.putCopy(number, copy.at(to));
      // What was read from the old place is compared where it is now.
      where.set(number, Whereabouts.UNKNOWN);
      tier.remove(number, from);
      handles.invalidate(number);
      return true;
    } finally {
      lock.unlock();
    }
  }

  private Lock lockRecords(long number) {
    Lock lock = recordLocks.get(number);
    lock.lock();
    return lock;
  }

  /**
   * A copy that was to be there is not: its tier failed, somebody evicted it meanwhile, or its file
   * was taken away.
   */
  private void missing(Inode inode, Tier tier) {
    where.set(inode.number(), Whereabouts.UNKNOWN);
    // The record goes before the file and comes after it: only if it was there all the time is the
    // file what is missing.
    CopyRecord record = namespace.copy(inode.number(), tier.name());
    if (!tier.hasFailed()
        && record != null
        && !isThere(inode, tier, record)
        && record.equals(namespace.copy(inode.number(), tier.name()))) {
      dropBad(inode, tier, "its file is not there");
    }
  }

  private static boolean isThere(Inode inode, Tier tier, CopyRecord record) {
    try (CopyReader reader = tier.open(inode.number(), record.extent())) {
      return reader != null;
    } catch (IOException e) {
      // The tier has failed, and says so.
      return true;
    }
  }

  private void dropBad(Inode inode, Tier tier, String why) {
    mismatches.increment();
    log.warn(
        "the copy of {} in tier {} is dropped: {}; it is read from the source again",
        namespace.path(inode.number()),
        tier.name(),
        why);
    evict(inode.number(), tier);
  }

  /** The state of an inode, from the records if it is not in memory yet. */
  private byte locate(Inode inode) {
    long number = inode.number();
    byte state = where.get(number);
    if (state != Whereabouts.UNKNOWN
        && (!Whereabouts.isInTier(state) || !tiers.get(Whereabouts.tierIndex(state)).hasFailed())) {
      return state;
    }
    int best = tiers.size();
    byte found = Whereabouts.NOWHERE;
    for (CopyRecord copy : namespace.copies(number)) {
      int index = tierIndex(copy.tier());
      if (index < best && serves(copy, inode)) {
        best = index;
        found = Whereabouts.recorded(copy, index);
      }
    }
    where.compareAndSet(number, state, found);
    return found;
  }

  private int tierIndex(String name) {
    for (int i = 0; i < tiers.size(); i++) {
      if (tiers.get(i).name().equals(name)) {
        return i;
      }
    }
    return tiers.size();
  }

  private @Nullable OpenCopy open(Inode inode, Tier tier, boolean trusted) throws IOException {
    // A raw file that was verified needs none.
    boolean known = trusted && Whereabouts.isRawFile(where.get(inode.number()));
    CopyRecord record = known ? null : namespace.copy(inode.number(), tier.name());
    if (record == null && !known) {
      // Evicted just now.
      return null;
    }
    CopyReader reader = tier.open(inode.number(), record == null ? null : record.extent());
    if (reader == null) {
      return null;
    }
    boolean opened = false;
    try {
      if (trusted && !Whereabouts.isVerified(where.get(inode.number()))) {
        // Evicted just now; what was opened may be a later copy of another kind.
        return null;
      }
      CopyRecord compared = trusted ? null : record;
      OpenCopy copy =
          format(tier).open(inode, reader, compared, frames, () -> verified(inode, tier));
      opened = true;
      return copy;
    } finally {
      if (!opened) {
        reader.close();
      }
    }
  }

  private void verified(Inode inode, Tier tier) {
    verified.increment();
    byte state = where.get(inode.number());
    if (Whereabouts.isInTier(state) && Whereabouts.tierIndex(state) == tiers.indexOf(tier)) {
      where.compareAndSet(inode.number(), state, Whereabouts.verified(state));
    }
  }

  /** Closes what is open, then the tiers. */
  @Override
  public void close() {
    handles.close();
    formats.forEach(CopyFormat::close);
    tiers.forEach(Tier::close);
  }
}
