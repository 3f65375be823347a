package io.pmfs.stage;

import com.google.common.util.concurrent.Striped;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Extent;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.tier.BufferPool;
import io.pmfs.tier.Tier;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Lock;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Which tier holds a copy of which file, in memory and in the records, and every change of that.
 * Safe for use by many threads.
 *
 * <p>INVARIANT: a tier is named in {@link #where} only after its copy was committed and recorded,
 * or read from the records; a copy is of the version that the inode's checked attributes describe,
 * because whoever sees another version calls {@link #drop} first.
 */
final class CopyIndex {
  /** Copies whose numbers are in memory at once while a tier is compacted. */
  private static final int COMPACTED_AT_ONCE = 4096;

  private final Namespace namespace;
  private final List<Tier> tiers;
  private final List<CopyFormat> formats;
  private final BufferPool memory;
  private final LongConsumer whenChanged;
  private final InodeBytes where = new InodeBytes();

  /**
   * Held while the records of an inode and what the tiers have of it change together. The inode's
   * number selects the lock. Nothing is called out with it but the namespace, a tier and {@link
   * #whenChanged}.
   */
  private final Striped<Lock> recordLocks = Striped.lock(64);

  /** What is told of each change; GUARDED_BY(any of recordLocks), set with all of them held. */
  private @Nullable TierComparison comparison;

  private volatile LongConsumer dropListener = number -> {};

  /**
   * Knows what the records say.
   *
   * @param memory lends what a copy is moved through
   * @param whenChanged is told of every inode whose copies are others now, before anybody else sees
   *     them
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
  }

  /** Has the listener told of every inode whose copy goes away, by any thread. */
  void onDrop(LongConsumer listener) {
    dropListener = listener;
  }

  CopyFormat format(Tier tier) {
    return formats.get(tiers.indexOf(tier));
  }

  /** What was last known of an inode, without asking the records. */
  byte known(long number) {
    return where.get(number);
  }

  /** The records are to be asked again. */
  void forget(long number) {
    where.set(number, Whereabouts.UNKNOWN);
  }

  /** A copy that stays where it is serves nobody in this session. */
  void ignore(long number) {
    where.set(number, Whereabouts.NOWHERE);
    whenChanged.accept(number);
    dropListener.accept(number);
  }

  /**
   * Looks whether the copies are there that a file is read from, and forgets those that are not:
   * what is known is no proof.
   */
  void confirm(Inode inode) {
    for (CopyRecord copy : namespace.copies(inode.number())) {
      if (serves(copy, inode) && !isThere(inode.number(), copy)) {
        lose(inode.number(), copy);
      }
    }
  }

  /** Whether a copy is there whole and can be read, as far as can be told without reading it. */
  boolean isThere(long number, CopyRecord copy) {
    Tier tier = tiers.get(tierIndex(copy.tier()));
    if (!format(tier).canRead(copy)) {
      return false;
    }
    try {
      return tier.has(number, copy.extent(), copy.storedSize());
    } catch (IOException e) {
      // The tier has said so in the log and in its status; what it holds may serve the next
      // session.
      return true;
    }
  }

  /**
   * Forgets a copy that was found not to be there, if that is still so; says whether it was
   * forgotten.
   */
  boolean lose(long number, CopyRecord copy) {
    Tier tier = tiers.get(tierIndex(copy.tier()));
    Lock lock = lockRecords(number);
    try {
      if (!copy.equals(namespace.copy(number, copy.tier()))
          || tier.hasFailed()
          || isThere(number, copy)) {
        return false;
      }
      remove(number, tier, copy, Whereabouts.UNKNOWN);
    } finally {
      lock.unlock();
    }
    dropListener.accept(number);
    return true;
  }

  /** The record first: a crash in between leaves a file too many, and no record too many. */
  private void remove(long number, Tier tier, CopyRecord copy, byte now) {
    // GUARDED_BY(recordLocks)
    namespace.removeCopy(number, copy.tier());
    tier.remove(number, copy.extent(), copy.storedSize());
    where.set(number, now);
    changed(number, tier, copy, null);
  }

  /** That a file's copy in a tier is another now; null stands for none. */
  private void changed(
      long number, Tier tier, @Nullable CopyRecord before, @Nullable CopyRecord after) {
    // GUARDED_BY(recordLocks)
    format(tier).count(size(after) - size(before));
    whenChanged.accept(number);
    TierComparison watching = comparison;
    if (watching != null) {
      watching.changed(number, tier, before, after);
    }
  }

  private static long size(@Nullable CopyRecord copy) {
    return copy == null ? 0 : copy.version().size();
  }

  /** Runs something while no record, and nothing that a tier has of them, changes. */
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

  /** Tells a comparison of each change from now on; none, if it is null. */
  void watch(@Nullable TierComparison next) {
    whileNothingChanges(() -> comparison = next);
  }

  /** Has a file of a tier discarded if no record names it; says whether none did. */
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

  /** Whether a copy is known where the placement wants it. */
  boolean has(Inode inode, Placement placement) {
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
    String unrecorded = namespace.failure();
    if (unrecorded != null) {
      return "copies cannot be recorded: " + unrecorded;
    }
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
      record(number, tier, placed);
      where.set(number, Whereabouts.written(placed, tiers.indexOf(tier)));
      changed(number, tier, null, placed);
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** Writes the record of what was committed, which is not kept if that fails. */
  private void record(long number, Tier tier, CopyRecord placed) { // GUARDED_BY(recordLocks)
    boolean recorded = false;
    try {
      namespace.putCopy(number, placed);
      recorded = true;
    } finally {
      if (!recorded) {
        tier.remove(number, placed.extent(), placed.storedSize());
      }
    }
  }

  /**
   * Removes all copies of an inode and their records, for its content changed or it is gone.
   *
   * @return whether there were any
   */
  boolean drop(long number) {
    return remove(number, Whereabouts.OUTDATED, copy -> true);
  }

  /** The same, because they are not wanted any more. */
  boolean evict(long number) {
    return remove(number, Whereabouts.UNKNOWN, copy -> true);
  }

  /** The same, but for those that are pinned. */
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

  /**
   * Removes the copy in one tier, to make room or because it is bad; says whether there was one.
   */
  boolean evict(long number, Tier tier) {
    return evictIf(number, tier, () -> true);
  }

  /**
   * The same of a copy that may be another by now.
   *
   * @param isBad looks at the copy that is there; none takes its place meanwhile
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
   * Moves what is wanted of sparse bundles of a tier together, which makes room; false if there was
   * nothing to do. By one thread at a time.
   */
  boolean compact(Tier tier) {
    Set<Long> bundles = tier.sparseBundles();
    if (bundles.isEmpty()) {
      return false;
    }
    // Not while the records are listed: each move writes records.
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
      // What was read from the old place is compared where it is now.
      where.set(number, Whereabouts.UNKNOWN);
      tier.remove(number, from, from.size());
      changed(number, tier, copy, moved);
      return true;
    } finally {
      lock.unlock();
    }
  }

  private @Nullable Extent move(Tier tier, Extent from) {
    if (from.size() > FrameWriter.MAX_BYTES) {
      // Nothing that large was ever put into a bundle.
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

  /** The state of an inode, from the records if it is not in memory yet. */
  byte locate(Inode inode) {
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

  int tierIndex(String name) {
    for (int i = 0; i < tiers.size(); i++) {
      if (tiers.get(i).name().equals(name)) {
        return i;
      }
    }
    return tiers.size();
  }

  /** A raw copy was compared whole, and matched. */
  void verified(Inode inode, Tier tier) {
    byte state = where.get(inode.number());
    if (Whereabouts.isInTier(state) && Whereabouts.tierIndex(state) == tiers.indexOf(tier)) {
      where.compareAndSet(inode.number(), state, Whereabouts.verified(state));
    }
  }
}
