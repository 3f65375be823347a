package io.pmfs.cluster;

import io.pmfs.cluster.peers.HeldBlocks;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Distributes the blocks of a large file among the nodes that read it at the same time: the owner
 * sends each block to one node, which passes it on. Few are sent at once, so that each arrives
 * soon. Takes 512 KiB at most. Thread-safe.
 */
final class Handout {
  /** Limit of blocks being sent to all nodes. */
  static final int MOST_PENDING = 16;

  /** Limit of blocks being sent to one node, which may be dead or malicious. */
  static final int MOST_PENDING_OF_ONE = MOST_PENDING / 2;

  /** After this time, a block that did not arrive is offered to another node. */
  static final long LEASE_NANOS = TimeUnit.SECONDS.toNanos(3);

  /** After this time, a sent block has arrived: a node that still misses it has lost it. */
  static final long ARRIVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

  /** After this time without a question, a node no longer counts; without any, all is reset. */
  static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(10);

  /** Blocks that are this far apart share an entry: 64 GiB. */
  private static final int MOST_ENTRIES = 1 << 16;

  private static final int MOST_ASKERS = 1024;

  private final int count;
  private final LongSupplier nanoTime;

  /** When each block was last given, in milliseconds after the start plus one; 0 if never. */
  private final int[] given; // GUARDED_BY(this)

  /** The node that got each block: the hash code of its id. */
  private final int[] givenTo; // GUARDED_BY(this)

  /** Blocks being sent, oldest first, with their start. */
  private final Map<Integer, Long> pending = new LinkedHashMap<>(); // GUARDED_BY(this)

  /** The asking nodes, least recent first, with the time of their question. */
  private final Map<UUID, Long> askers = new LinkedHashMap<>(16, 0.75f, true); // GUARDED_BY(this)

  private final long startNanos;
  private long lastNanos; // GUARDED_BY(this)
  private int next; // GUARDED_BY(this); all blocks below it were given

  /** Starts with this many blocks, none of them given. */
  Handout(int count, LongSupplier nanoTime) {
    this.count = count;
    this.nanoTime = nanoTime;
    this.given = new int[Math.min(count, MOST_ENTRIES)];
    this.givenTo = new int[given.length];
    this.startNanos = nanoTime.getAsLong();
    this.lastNanos = startNanos;
  }

  /**
   * The blocks that a node should read from this one; none if enough are being sent.
   *
   * @param asker null for a node that keeps no copies: it gets what it wants
   */
  synchronized List<Integer> grant(@Nullable UUID asker, HeldBlocks.Wanted wanted) {
    if (asker == null) {
      return wanted.missed().isEmpty() ? wanted.more() : wanted.missed();
    }
    long now = nanoTime.getAsLong();
    if (now - lastNanos > IDLE_NANOS) {
      next = 0;
      Arrays.fill(given, 0);
    }
    lastNanos = now;
    askers.put(asker, now);
    removeOld(askers, now - IDLE_NANOS, MOST_ASKERS);
    removeOld(pending, now - LEASE_NANOS, MOST_PENDING);
    int most = Math.max(2, MOST_PENDING / 2 / askers.size());
    List<Integer> granted = new ArrayList<>();
    // Blocks that were offered before: the node missed the offer or forgot it.
    Stream.of(wanted.missed(), wanted.more())
        .flatMap(List::stream)
        .filter(block -> isOfferedTo(asker, block))
        .limit(most)
        .forEach(granted::add);
    giveOf(wanted.missed(), asker, most, granted, now);
    if (wanted.missed().isEmpty()) {
      // Others have all the wanted blocks, but this node's link is free.
      giveOf(wanted.more(), asker, most, granted, now);
    }
    while (next < count && hasRoom(asker, granted, most)) {
      int block = next++;
      if (isNew(block, now)) {
        give(block, asker, granted, now);
      }
    }
    if (next >= count && wanted.missed().isEmpty()) {
      // Every block was given, so this node's link helps with the rest.
      for (int block : wanted.more()) {
        if (hasRoom(asker, granted, most)
            && !pending.containsKey(block)
            && !granted.contains(block)) {
          give(block, asker, granted, now);
        }
      }
    }
    return granted;
  }

  private static <T> void removeOld(Map<T, Long> entries, long beforeNanos, int most) {
    var oldest = entries.entrySet().iterator();
    while (oldest.hasNext()) {
      if (oldest.next().getValue() - beforeNanos >= 0 && entries.size() <= most) {
        return;
      }
      oldest.remove();
    }
  }

  private boolean isOfferedTo(UUID asker, int block) {
    return pending.containsKey(block) && givenTo[block % given.length] == asker.hashCode();
  }

  private void giveOf(List<Integer> blocks, UUID asker, int most, List<Integer> granted, long now) {
    for (int block : blocks) {
      if (hasRoom(asker, granted, most) && block < count && isFree(block, asker, now)) {
        give(block, asker, granted, now);
      }
    }
  }

  private boolean hasRoom(UUID asker, List<Integer> granted, int most) {
    return granted.size() < most
        && pending.size() < MOST_PENDING
        && pending.keySet().stream().filter(block -> isOfferedTo(asker, block)).count()
            < MOST_PENDING_OF_ONE;
  }

  /** Whether a block was never given; a node that was given it and misses it asks for it. */
  private boolean isNew(int block, long now) {
    return given[block % given.length] == 0 || (count > given.length && isOld(block, now));
  }

  /** Whether no other node was given a block lately: the asking node has lost it. */
  private boolean isFree(int block, UUID asker, long now) {
    int entry = block % given.length;
    return given[entry] == 0
        || isOld(block, now)
        || (givenTo[entry] == asker.hashCode()
            && !pending.containsKey(block)
            && age(block, now) >= TimeUnit.NANOSECONDS.toMillis(ARRIVAL_NANOS));
  }

  private boolean isOld(int block, long now) {
    return age(block, now) >= TimeUnit.NANOSECONDS.toMillis(LEASE_NANOS);
  }

  private int age(int block, long now) {
    return millis(now) - given[block % given.length];
  }

  private int millis(long now) {
    return (int) TimeUnit.NANOSECONDS.toMillis(now - startNanos) + 1;
  }

  private void give(int block, UUID asker, List<Integer> granted, long now) {
    given[block % given.length] = millis(now);
    givenTo[block % given.length] = asker.hashCode();
    pending.put(block, now);
    granted.add(block);
  }

  /** Some other nodes that are reading the file now. */
  synchronized List<UUID> others(@Nullable UUID asker) {
    List<UUID> others = new ArrayList<>(askers.keySet());
    others.remove(asker);
    Collections.shuffle(others);
    return List.copyOf(others.subList(0, Math.min(HolderHints.MAX_NAMED, others.size())));
  }

  synchronized void sent(int block) {
    pending.remove(block);
  }

  synchronized int askers() {
    return askers.size();
  }
}
