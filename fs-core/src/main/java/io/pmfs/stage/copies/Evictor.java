package io.pmfs.stage.copies;

import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierStatus;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Evicts copies ahead of need to keep some room free in the tiers, never on a reader's thread. A
 * file that finds no room is not copied, but the next one of its size should be.
 */
public final class Evictor {
  private static final Logger log = LoggerFactory.getLogger(Evictor.class);

  /** The share of a tier that is kept free, if this is more than the last file's size. */
  private static final int HEADROOM_DIVISOR = 16;

  /** The most copies evicted in one run; the next run evicts the rest. */
  private static final int MAXIMUM_AT_ONCE = 4096;

  private final Namespace namespace;
  private final Copies copies;
  private final EvictionPolicy policy;
  private final Guests guests;
  private final Executor thread;
  private final AtomicBoolean running = new AtomicBoolean();
  private final Lock compacting = new ReentrantLock();
  private final AtomicLong compactions = new AtomicLong();
  private final Map<Tier, LongAdder> evicted = new ConcurrentHashMap<>();

  public Evictor(
      Namespace namespace, Copies copies, EvictionPolicy policy, Guests guests, Executor thread) {
    this.namespace = namespace;
    this.copies = copies;
    this.policy = policy;
    this.guests = guests;
    this.thread = thread;
  }

  public long evicted() {
    return copies.tiers().stream().mapToLong(this::evicted).sum();
  }

  public long evicted(Tier tier) {
    LongAdder count = evicted.get(tier);
    return count == null ? 0 : count.sum();
  }

  public boolean isEvicting() {
    return running.get();
  }

  /** Makes room in the first tier that could hold a file of this size, which found none. */
  public void makeRoom(long size) {
    for (Tier tier : copies.tiers()) {
      // A full or recovering tier would refuse anyway.
      if (tier.couldHold(size) && tier.status().state() == TierStatus.State.ON) {
        TierStatus status = tier.status();
        evictBelow(tier, status.usedBytes() - headroom(status, size));
        return;
      }
    }
  }

  /** Makes room for the next copy after one of this size was made. */
  public void keepRoom(Tier tier, long size) {
    TierStatus status = tier.status();
    long most = status.capacityBytes() - headroom(status, size);
    if (status.usedBytes() > most) {
      evictBelow(tier, most);
    }
  }

  private static long headroom(TierStatus status, long size) {
    return Math.max(size, status.capacityBytes() / HEADROOM_DIVISOR);
  }

  /**
   * Compacts bundles with mostly removed copies; true if any thread has done so since the call
   * began.
   */
  public boolean compact(Placement placement) {
    long before = compactions.get();
    compacting.lock();
    try {
      if (compactions.get() == before) {
        for (Tier tier : copies.tiers()) {
          if (placement.allows(tier.name()) && copies.index().compact(tier)) {
            compactions.incrementAndGet();
          }
        }
      }
      return compactions.get() != before;
    } finally {
      compacting.unlock();
    }
  }

  private void evictBelow(Tier tier, long usedBytes) {
    boolean isNeeded =
        policy != EvictionPolicy.NONE || guests.mayBeThere() || !tier.sparseBundles().isEmpty();
    if (!isNeeded || !running.compareAndSet(false, true)) {
      return;
    }
    try {
      thread.execute(() -> evict(tier, usedBytes));
    } catch (RejectedExecutionException | Error e) {
      running.set(false);
    }
  }

  /**
   * Evicts guests from the first allowed tier that could hold {@code size} bytes, and some more;
   * false if there were none. Runs on the caller's thread.
   */
  public boolean displaceGuests(long size, Placement placement) {
    for (Tier tier : copies.tiers()) {
      if (placement.allows(tier.name())
          && tier.couldHold(size)
          && tier.status().state() == TierStatus.State.ON) {
        TierStatus status = tier.status();
        return evict(tier, status.usedBytes() - headroom(status, size), EvictionPolicy.NONE);
      }
    }
    return false;
  }

  /**
   * For {@link RemoteCopies#NEVER}: drops copies that readers caused while this node held their
   * files, once the node that holds a file has a copy itself. Pinned and staged copies stay.
   *
   * @param isHeld whether the node that holds the file has a copy; may send a request
   * @return how many copies remain
   */
  public long dropGuests(Predicate<Inode> isHeld) {
    AtomicBoolean any = new AtomicBoolean();
    long left =
        guests.forEachMade(
            inode -> {
              boolean isDone = !copies.has(inode) || isHeld.test(inode);
              // The nodes may have changed during the request.
              if (isDone && guests.isGuest(inode)) {
                any.compareAndSet(false, copies.evictUnpinned(inode.number()));
              }
              return isDone;
            });
    if (any.get()) {
      compact(Placement.ANYWHERE);
    }
    return left;
  }

  /**
   * Evicts guests first. Former own files among them may be in bundles, which free no room until
   * compacted, so the sizes of evicted copies are counted too.
   */
  private boolean evict(Tier tier, long usedBytes, EvictionPolicy then) {
    long surplus = tier.status().usedBytes() - usedBytes;
    int gone = 0;
    while (gone < MAXIMUM_AT_ONCE && surplus > 0 && tier.status().usedBytes() > usedBytes) {
      long guest = guests.victim(tier);
      long victim = guest == 0 ? then.victim(tier, namespace) : guest;
      if (victim == 0) {
        break;
      }
      CopyRecord copy = namespace.copy(victim, tier.name());
      copies.index().evict(victim, tier);
      surplus -= copy == null ? 0 : copy.storedSize();
      evicted.computeIfAbsent(tier, key -> new LongAdder()).increment();
      gone++;
    }
    if (gone > 0 && !tier.sparseBundles().isEmpty()) {
      compact(Placement.ANYWHERE);
    }
    return gone > 0;
  }

  private void evict(Tier tier, long usedBytes) {
    try {
      compact(Placement.ANYWHERE);
      evict(tier, usedBytes, policy);
    } catch (RuntimeException e) {
      log.error("evicting from {} failed", tier.name(), e);
    } finally {
      running.set(false);
    }
  }
}
