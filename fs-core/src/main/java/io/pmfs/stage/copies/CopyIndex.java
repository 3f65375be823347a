package io.pmfs.stage.copies;

import com.google.common.util.concurrent.Striped;
import io.pmfs.memory.BufferPool;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Extent;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.stage.formats.BlockWriter;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.stage.formats.FrameWriter;
import io.pmfs.tier.Tier;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Lock;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The index of copies by file and tier, in memory and in the records; makes all changes to it.
 * Thread-safe.
 *
 * <p>INVARIANT: a tier is named in {@link #where} only after its copy was committed and recorded,
 * or was read from the records; a copy is of the version that the inode's checked attributes
 * describe, because a thread that sees another version calls {@link #drop} first.
 */
public final class CopyIndex {
  /** The most inode numbers in memory while a tier is compacted. */
  private static final int COMPACTED_AT_ONCE = 4096;

  /** After so many files with bad copies none of other mounts is adopted. */
  private static final int MOST_BAD = 1000;

  private final Namespace namespace;
  private final List<Tier> tiers;
  private final List<CopyFormat> formats;
  private final BufferPool memory;
  private final LongConsumer whenChanged;

  /** Files with a bad copy in this session. */
  private final Set<Long> bad = ConcurrentHashMap.newKeySet();

  private final InodeBytes where = new InodeBytes();

  /** No inode with a greater number had a copy before this session. */
  private final long lastNumberBefore;

  /**
   * Held while the records of an inode and its copies in the tiers change together. The inode
   * number selects the lock. While holding it, a thread may call the namespace, a tier, the
   * comparison and {@link #whenChanged}, and wait for memory for one block, but never call the
   * source.
   */
  private final Striped<Lock> recordLocks = Striped.lock(64);

  /** Receives each change; GUARDED_BY(any of recordLocks), set with all of them held. */
  private @Nullable TierComparison comparison;

  private volatile LongConsumer dropListener = number -> {};

  /**
   * Starts from the records.
   *
   * @param memory lends buffers for moving copies
   * @param whenChanged called for every inode whose copies changed: before any other thread sees a
   *     new copy, and after a copy was removed or moved
   */
  CopyIndex(
      Namespace namespace,
      List<Tier> tiers,
      List<CopyFormat> formats,
      BufferPool memory,
      LongConsumer whenChanged) {
    this.namespace = namespace;
    this.tiers = tiers;
    this.formats = formats;
    this.memory = memory;
    this.whenChanged = whenChanged;
    this.lastNumberBefore = namespace.lastNumber();
  }

  /** Calls the listener for every inode whose copy is removed, on any thread. */
  void onDrop(LongConsumer listener) {
    dropListener = listener;
  }

  CopyFormat format(Tier tier) {
    return formats.get(tiers.indexOf(tier));
  }

  /** The last known state of an inode, without asking the records. */
  byte known(long number) {
    return where.get(number);
  }

  /** Forgets the state of an inode, so that the records are asked again. */
  void forget(long number) {
    where.set(number, Whereabouts.UNKNOWN);
  }

  /** Stops serving a copy in this session, but leaves it in place. */
  void ignore(long number) {
    where.set(number, Whereabouts.NOWHERE);
    whenChanged.accept(number);
    dropListener.accept(number);
  }

  /**
   * Checks that the copies from which a file is read exist, and forgets missing ones: a record is
   * no proof.
   */
  void confirm(Inode inode) {
    for (CopyRecord copy : namespace.copies(inode.number())) {
      if (serves(copy, inode) && !isThere(inode.number(), copy)) {
        lose(inode.number(), copy);
      }
    }
  }

  /** Whether a copy is complete and readable, as far as known without reading it. */
  boolean isThere(long number, CopyRecord copy) {
    Tier tier = tiers.get(tierIndex(copy.tier()));
    if (!format(tier).canRead(copy)) {
      return false;
    }
    try {
      return tier.has(number, copy.extent(), copy.storedSize());
    } catch (IOException e) {
      // The tier has logged it and shows it in its status; its copies may serve the next session.
      return true;
    }
  }

  /** Forgets a copy that was found missing; false if it exists again. */
  boolean lose(long number, CopyRecord copy) {
    Tier tier = tiers.get(tierIndex(copy.tier()));
    Lock lock = lockRecords(number);
    try {
      if (!copy.equals(namespace.copy(number, copy.tier()))
          || isThere(number, copy)
          // Asked last: a tier that fails meanwhile has no copies either.
          || tier.hasFailed()) {
        return false;
      }
      remove(number, tier, copy, Whereabouts.UNKNOWN);
    } finally {
      lock.unlock();
    }
    dropListener.accept(number);
    return true;
  }

  /**
   * Removes the record first: a crash in between leaves a file without a record, never a record
   * without a file.
   */
  private void remove(long number, Tier tier, CopyRecord copy, byte now) {
    // GUARDED_BY(recordLocks)
    namespace.removeCopy(number, copy.tier());
    tier.remove(number, copy.extent(), copy.storedSize());
    where.set(number, now);
    whenChanged.accept(number);
    changed(number, tier, copy, null);
  }

  /** Counts that a file's copy in a tier was replaced; null means none. */
  private void changed(
      long number, Tier tier, @Nullable CopyRecord before, @Nullable CopyRecord after) {
    // GUARDED_BY(recordLocks)
    format(tier).count(size(after) - size(before));
    TierComparison watching = comparison;
    if (watching != null) {
      watching.changed(number, tier, before, after);
    }
  }

  private static long size(@Nullable CopyRecord copy) {
    return copy == null ? 0 : copy.version().size();
  }

  /** Runs an action while neither a record nor a recorded copy in a tier changes. */
  void whileNothingChanges(Runnable action) {
    int locked = 0;
    try {
      while (locked < recordLocks.size()) {
        recordLocks.getAt(locked).lock();
        locked++;
      }
      action.run();
    } finally {
      while (locked > 0) {
        recordLocks.getAt(--locked).unlock();
      }
    }
  }

  /** Passes each change from now on to a comparison; null for none. */
  void watch(@Nullable TierComparison next) {
    whileNothingChanges(() -> comparison = next);
  }

  /** Discards a file of a tier if no record names it; false if a record does. */
  boolean discardUnrecorded(long number, Tier tier, Tier.Census census) throws IOException {
    Lock lock = lockRecords(number);
    try {
      CopyRecord copy = namespace.copy(number, tier.name());
      if (copy != null && copy.extent() == null) {
        return false;
      }
      census.discard(number);
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** Whether a copy that satisfies the placement is known. */
  public boolean has(Inode inode, Placement placement) {
    return Whereabouts.isInTier(locate(inode))
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
   * Applies a placement to existing copies: pins them if wanted, and drops those in other tiers
   * than the wanted one. False if no copy satisfies it any more.
   */
  public boolean place(Inode inode, Placement placement) {
    if (placement.equals(Placement.ANYWHERE)) {
      return true;
    }
    List<CopyRecord> records = namespace.copies(inode.number());
    // A pinned file stays pinned in its new tier.
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

  /** Why no allowed tier can take copies; null if one can. */
  @Nullable
  public String failure(Placement placement) {
    String unrecorded = namespace.failure();
    if (unrecorded != null) {
      return "copies cannot be recorded: " + unrecorded;
    }
    String failure = tiers.isEmpty() ? "the mount has no tier" : "there is no such tier";
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

  /**
   * Commits and records a copy whose checksums were computed from the bytes written; false if the
   * file has changed, or the copy is no longer wanted.
   *
   * @param wanted called while no record of the file changes: once it has returned false and the
   *     copies were dropped, no new copy appears
   */
  public boolean commit(Inode inode, BlockWriter writer, CopyRecord copy, BooleanSupplier wanted)
      throws IOException {
    long number = inode.number();
    Lock lock = lockRecords(number);
    try {
      Inode now = namespace.inode(number);
      if (now == null
          || namespace.failure() != null
          || !now.attributes().version().equals(copy.version())
          || !wanted.getAsBoolean()) {
        return false;
      }
      Tier tier = writer.tier();
      CopyRecord replaced = namespace.copy(number, tier.name());
      if (replaced != null) {
        remove(number, tier, replaced, Whereabouts.UNKNOWN);
      }
      CopyRecord placed = copy.at(writer.commit());
      show(number, tier, placed, Whereabouts.written(placed, tiers.indexOf(tier)));
      return true;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Makes a copy of another mount one of a tier, unverified, if the tier can link it and has none.
   * False for a file of which a copy was bad: the link may lead to the same bytes.
   */
  public boolean adopt(Inode inode, Tier tier, LentCopy lent) {
    long number = inode.number();
    CopyRecord copy = lent.record();
    if (bad.contains(number)
        || bad.size() >= MOST_BAD
        || !format(tier).accepts(copy, lent.tier())) {
      return false;
    }
    Lock lock = lockRecords(number);
    try {
      Inode now = namespace.inode(number);
      if (now == null
          || namespace.failure() != null
          || !now.attributes().version().equals(copy.version())
          || namespace.copy(number, tier.name()) != null) {
        return false;
      }
      Tier.Linked linked = tier.link(number, lent.file());
      if (linked == null) {
        return false;
      }
      CopyRecord placed =
          new CopyRecord(
              tier.name(),
              copy.codec(),
              copy.version(),
              copy.storedSize(),
              copy.blockSize(),
              copy.checksums(),
              false,
              linked.extent());
      show(number, tier, placed, Whereabouts.recorded(placed, tiers.indexOf(tier)));
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** Notes that a copy of a file was bad. */
  void bad(long number) {
    if (bad.size() < MOST_BAD) {
      bad.add(number);
    }
  }

  /** Makes a committed copy one that other threads see, in the records or in memory. */
  private void show(long number, Tier tier, CopyRecord placed, byte state) {
    // GUARDED_BY(recordLocks)
    whenChanged.accept(number);
    record(number, tier, placed);
    where.set(number, state);
    changed(number, tier, null, placed);
  }

  /** Records a committed copy, and removes the copy if that fails. */
  private void record(long number, Tier tier, CopyRecord placed) { // GUARDED_BY(recordLocks)
    try {
      namespace.putCopy(number, placed);
    } catch (Throwable e) {
      tier.remove(number, placed.extent(), placed.storedSize());
      throw e;
    }
  }

  /**
   * Removes all copies of an inode and their records, because its content changed or it no longer
   * exists.
   *
   * @return whether there were any
   */
  boolean drop(long number) {
    return remove(number, Whereabouts.OUTDATED, copy -> true);
  }

  /** Like {@link #drop}, because the copies are no longer wanted. */
  public boolean evict(long number) {
    return remove(number, Whereabouts.UNKNOWN, copy -> true);
  }

  /** Like {@link #evict}, except for pinned copies. */
  boolean evictUnpinned(long number) {
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
          remove(number, tiers.get(index), copy, why);
        } else {
          namespace.removeCopy(number, copy.tier());
        }
      }
      if (!records.isEmpty()) {
        where.set(number, why);
      } else if (why == Whereabouts.OUTDATED && where.get(number) != Whereabouts.OUTDATED) {
        where.set(number, Whereabouts.NOWHERE);
      }
      whenChanged.accept(number);
    } finally {
      lock.unlock();
    }
    if (!records.isEmpty() || why == Whereabouts.OUTDATED) {
      dropListener.accept(number);
    }
    return !records.isEmpty();
  }

  /** Removes the copy in one tier, to make room or because it is bad; false if there was none. */
  public boolean evict(long number, Tier tier) {
    return evictIf(number, tier, () -> true);
  }

  /**
   * Like {@link #evict(long, Tier)}, for a copy that may have been replaced.
   *
   * @param isBad checks the current copy, which is not replaced meanwhile
   */
  boolean evictIf(long number, Tier tier, BooleanSupplier isBad) {
    boolean evicted = false;
    Lock lock = lockRecords(number);
    try {
      CopyRecord copy = namespace.copy(number, tier.name());
      if (copy == null) {
        where.set(number, Whereabouts.UNKNOWN);
        whenChanged.accept(number);
      } else if (isBad.getAsBoolean()) {
        remove(number, tier, copy, Whereabouts.UNKNOWN);
        evicted = true;
      }
    } finally {
      lock.unlock();
    }
    dropListener.accept(number);
    return evicted;
  }

  /**
   * Moves the live copies out of sparse bundles of a tier, which makes room; false if there was
   * nothing to do. Called by one thread at a time.
   */
  public boolean compact(Tier tier) {
    Set<Long> bundles = tier.sparseBundles();
    if (bundles.isEmpty()) {
      return false;
    }
    // Collected first, because each move writes records.
    List<Long> numbers = new ArrayList<>();
    AtomicLong next = new AtomicLong(Namespace.ROOT);
    boolean moved = false;
    do {
      numbers.clear();
      namespace.listCopies(
          next.get(),
          (number, copy) -> {
            next.set(number + 1);
            if (copy.tier().equals(tier.name()) && isIn(bundles, copy)) {
              numbers.add(number);
            }
            return numbers.size() < COMPACTED_AT_ONCE;
          });
      for (long number : numbers) {
        moved |= move(number, tier, bundles);
      }
    } while (numbers.size() == COMPACTED_AT_ONCE);
    return moved;
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
      Extent to = copy == null || from == null || !isIn(bundles, copy) ? null : move(tier, from);
      if (copy == null || from == null || to == null) {
        return false;
      }
      CopyRecord moved = copy.at(to);
      namespace.putCopy(number, moved);
      // The copy is verified again at its new place.
      where.set(number, Whereabouts.UNKNOWN);
      tier.remove(number, from, from.size());
      whenChanged.accept(number);
      changed(number, tier, copy, moved);
      return true;
    } finally {
      lock.unlock();
    }
  }

  private @Nullable Extent move(Tier tier, Extent from) {
    if (from.size() > FrameWriter.MAX_BYTES) {
      // No bundle holds a copy this large.
      return null;
    }
    try (BufferPool.Loan loan = memory.take((int) from.size())) {
      return tier.move(from, loan.buffer());
    }
  }

  private Lock lockRecords(long number) {
    Lock lock = recordLocks.get(number);
    lock.lock();
    return lock;
  }

  /** The state of an inode, read from the records if it is not in memory yet. */
  byte locate(Inode inode) {
    long number = inode.number();
    byte state = where.get(number);
    boolean isKnown = state != Whereabouts.UNSEEN && state != Whereabouts.UNKNOWN;
    if (isKnown
        && (!Whereabouts.isInTier(state) || !tiers.get(Whereabouts.tierIndex(state)).hasFailed())) {
      return state;
    }
    boolean isNew = state == Whereabouts.UNSEEN && number > lastNumberBefore;
    byte found = isNew ? Whereabouts.NOWHERE : recorded(inode);
    where.compareAndSet(number, state, found);
    return found;
  }

  private byte recorded(Inode inode) {
    for (int index = 0; index < tiers.size(); index++) {
      CopyRecord copy = namespace.copy(inode.number(), tiers.get(index).name());
      if (copy != null && serves(copy, inode)) {
        return Whereabouts.recorded(copy, index);
      }
    }
    return Whereabouts.NOWHERE;
  }

  int tierIndex(String name) {
    for (int i = 0; i < tiers.size(); i++) {
      if (tiers.get(i).name().equals(name)) {
        return i;
      }
    }
    return tiers.size();
  }

  /** Marks a raw copy as completely verified. */
  void verified(Inode inode, Tier tier) {
    byte state = where.get(inode.number());
    if (Whereabouts.isInTier(state) && Whereabouts.tierIndex(state) == tiers.indexOf(tier)) {
      where.compareAndSet(inode.number(), state, Whereabouts.verified(state));
    }
  }
}
