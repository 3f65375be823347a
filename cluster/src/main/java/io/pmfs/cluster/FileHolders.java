package io.pmfs.cluster;

import com.google.common.collect.HashMultiset;
import com.google.common.collect.Multiset;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.HeldBlocks;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Decides which block of a large file to read next, and from which node: it knows the blocks that
 * other nodes have, and those that the owner offers. All of this is hints. Safe for use by many
 * threads; no method asks a node.
 */
final class FileHolders {
  /** How many threads read a file: enough to read from several nodes at once. */
  static final int STREAMS = 4;

  /** The most nodes to ask for blocks, besides the owner. */
  static final int MOST_HOLDERS = 16;

  private static final int MOST_READS_OF_ONE = 2;

  /** Time until a node without news is asked again, multiplied by the number of known nodes. */
  private static final long AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  private static final long LEAST_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  /** Time until an owner is asked again, multiplied by the number of nodes that ask it. */
  private static final long OWNER_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private static final long LEAST_OWNER_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  /** Time until a node that refused or failed is asked again; doubles each time. */
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private static final int MOST_DOUBLINGS = 6;

  private static final long OVERDUE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  /** After this long without a block, the owner is also asked for blocks that it did not offer. */
  private static final long STALL_NANOS = TimeUnit.SECONDS.toNanos(3);

  /** Time until a node that has the whole file is asked again. */
  private static final long WHOLE_AGAIN_NANOS = TimeUnit.SECONDS.toNanos(10);

  private final int count;
  private final LongSupplier nanoTime;
  private final Node owner; // its fields are GUARDED_BY(this)
  private final Map<UUID, Node> others = new LinkedHashMap<>(); // GUARDED_BY(this)

  /** Blocks offered by the owner, in its order. */
  private final Set<Integer> granted = new LinkedHashSet<>(); // GUARDED_BY(this)

  /** Blocks that readers wait for; the threads that fill the copy skip them. */
  private final Multiset<Integer> awaited = HashMultiset.create(); // GUARDED_BY(this)

  /** Blocks that a thread is about to read, with the node to read from. */
  private final Map<Integer, Node> planned = new HashMap<>(); // GUARDED_BY(this)

  /** Blocks being read from the owner that it did not offer. */
  private final Set<Integer> unoffered = new HashSet<>(); // GUARDED_BY(this)

  /** When a block was last read as planned. */
  private long progressNanos; // GUARDED_BY(this)

  private long turns; // GUARDED_BY(this)

  enum End {
    READ,
    /** The node was busy sending to others. */
    BUSY,
    FAILED
  }

  private static final class Node {
    private final Member member;
    private @Nullable HeldBlocks held;
    private boolean isAsking;
    private long dueNanos;
    private long busyUntilNanos;
    private int reads;
    private int failures;
    private long turn;

    Node(Member member, long now) {
      this.member = member;
      this.dueNanos = now;
      this.busyUntilNanos = now;
    }

    boolean has(int block) {
      HeldBlocks known = held;
      return known != null && known.has(block);
    }
  }

  /** Starts with this many blocks and no other node. */
  FileHolders(Member owner, int count, LongSupplier nanoTime) {
    this.count = count;
    this.nanoTime = nanoTime;
    this.owner = new Node(owner, nanoTime.getAsLong());
    this.progressNanos = nanoTime.getAsLong();
  }

  Member owner() {
    return owner.member;
  }

  private boolean isOwner(Member member) {
    return member.equals(owner.member);
  }

  private @Nullable Node node(Member member) {
    return isOwner(member) ? owner : others.get(member.id());
  }

  synchronized void add(Member member) {
    if (!isOwner(member) && others.size() < MOST_HOLDERS) {
      others.putIfAbsent(member.id(), new Node(member, nanoTime.getAsLong()));
    }
  }

  /**
   * Chooses a missing block that a node can send now; -1 if there is none. {@link #take} then
   * returns the node.
   */
  synchronized int plan(BitSet missing) {
    planned.keySet().removeIf(block -> !missing.get(block));
    granted.removeIf(block -> !missing.get(block) && !awaited.contains(block));
    Node best = null;
    int chosen = -1;
    int offered =
        granted.stream()
            .filter(block -> missing.get(block) && !planned.containsKey(block))
            .findFirst()
            .orElse(-1);
    if (offered >= 0 && load(owner) < mostOfOwner()) {
      best = owner;
      chosen = offered;
    }
    for (Node node : others.values()) {
      boolean isBetter =
          load(node) < MOST_READS_OF_ONE
              && !isBusy(node)
              && (best == null || comesBefore(node, best));
      int block = isBetter ? firstOf(node, missing) : -1;
      if (block >= 0) {
        best = node;
        chosen = block;
      }
    }
    if (best != null) {
      plan(chosen, best);
    }
    return chosen;
  }

  /** Like {@link #plan}, but from the owner without its offer, when nothing else helps. */
  synchronized int planOfOwner(BitSet missing) {
    for (int block = missing.nextSetBit(0); block >= 0; block = missing.nextSetBit(block + 1)) {
      if (!planned.containsKey(block)) {
        unoffered.add(block);
        plan(block, owner);
        return block;
      }
    }
    return -1;
  }

  private void plan(int block, Node from) {
    planned.put(block, from);
    from.turn = ++turns;
  }

  private boolean isBusy(Node node) {
    return node.busyUntilNanos - nanoTime.getAsLong() > 0;
  }

  private int load(Node node) {
    return node.reads + (int) planned.values().stream().filter(from -> from == node).count();
  }

  private int mostOfOwner() {
    HeldBlocks known = owner.held;
    return known != null && known.askers() > 1 ? MOST_READS_OF_ONE : STREAMS;
  }

  private boolean comesBefore(Node node, Node other) {
    int difference = load(node) - load(other);
    return difference < 0 || (difference == 0 && node.turn < other.turn);
  }

  private int firstOf(Node node, BitSet missing) {
    if (node.held != null) {
      for (int block = missing.nextSetBit(0); block >= 0; block = missing.nextSetBit(block + 1)) {
        if (node.has(block) && !planned.containsKey(block)) {
          return block;
        }
      }
    }
    return -1;
  }

  /** A reader starts waiting for a block; an offer of it is kept until then. */
  synchronized void awaits(int block) {
    awaited.add(block);
  }

  /** A reader has the block, or gave up. */
  synchronized void awaitsNoMore(int block) {
    awaited.remove(block);
  }

  /**
   * The node to read a block from: the planned one, else the owner if it offered the block, else a
   * node that has it; null if none is known. The caller reads the block and calls {@link #done}.
   */
  synchronized @Nullable Member take(int block) {
    Node best = planned.remove(block);
    if (best == null) {
      best = granted.contains(block) ? owner : null;
      for (Node node : others.values()) {
        if (node.has(block) && !isBusy(node) && (best == null || comesBefore(node, best))) {
          best = node;
        }
      }
    }
    if (best == null) {
      return null;
    }
    granted.remove(block);
    best.reads++;
    best.turn = ++turns;
    return best.member;
  }

  synchronized void done(int block, Member from, End end) {
    Node node = node(from);
    boolean isOffered = !unoffered.remove(block);
    if (node == null) {
      return;
    }
    node.reads--;
    switch (end) {
      case READ -> {
        if (isOffered) {
          progressNanos = nanoTime.getAsLong();
        }
        node.failures = 0;
      }
      case BUSY -> node.busyUntilNanos = nanoTime.getAsLong() + LEAST_AGAIN_NANOS;
      case FAILED -> failed(node);
    }
    notifyAll();
  }

  /** The node claims what it does not have, or cannot be reached. */
  private void failed(Node node) {
    node.held = null;
    node.dueNanos = nanoTime.getAsLong() + (PAUSE_NANOS << node.failures);
    node.failures = Math.min(node.failures + 1, MOST_DOUBLINGS);
    if (node == owner) {
      granted.clear();
    }
  }

  /** A node to ask now; null if none is due. The caller asks it and calls {@link #heard}. */
  synchronized @Nullable Member due() {
    long now = nanoTime.getAsLong();
    if (isOwnerDue(now)) {
      owner.isAsking = true;
      return owner.member;
    }
    for (Node node : others.values()) {
      if (isDue(node, now)) {
        node.isAsking = true;
        return node.member;
      }
    }
    return null;
  }

  /**
   * A node about which more must be known to choose well: the owner if it is idle, nodes that had
   * nothing yet, and those not asked for long.
   */
  synchronized @Nullable Member overdue() {
    long now = nanoTime.getAsLong();
    if (isOwnerDue(now) && load(owner) == 0) {
      owner.isAsking = true;
      return owner.member;
    }
    for (Node node : others.values()) {
      boolean hasNothing = node.held == null || node.held.units().isEmpty();
      if (isDue(node, now) && (hasNothing || now - node.dueNanos > OVERDUE_NANOS)) {
        node.isAsking = true;
        return node.member;
      }
    }
    return null;
  }

  private boolean isOwnerDue(long now) {
    return !owner.isAsking && granted.isEmpty() && now - owner.dueNanos >= 0;
  }

  private static boolean isDue(Node node, long now) {
    return !node.isAsking && now - node.dueNanos >= 0;
  }

  /** Takes a node's answer; null if it has nothing or did not answer. */
  synchronized void heard(Member member, @Nullable HeldBlocks held) {
    Node node = node(member);
    if (node == null) {
      return;
    }
    node.isAsking = false;
    if (held == null) {
      failed(node);
    } else if (node == owner) {
      owner.held = held;
      held.granted().stream().filter(block -> block < count).forEach(granted::add);
      boolean isOfUse = !granted.isEmpty() && held.askers() <= Handout.MOST_PENDING;
      node.dueNanos = nanoTime.getAsLong() + (isOfUse ? 0 : ownerAgain(held.askers()));
    } else {
      node.held = held;
      boolean isWhole = held.units().cardinality() == (count + held.unit() - 1) / held.unit();
      long again = Math.max(LEAST_AGAIN_NANOS, others.size() * AGAIN_NANOS);
      node.dueNanos = nanoTime.getAsLong() + (isWhole ? WHOLE_AGAIN_NANOS : again);
    }
    notifyAll();
  }

  private static long ownerAgain(int askers) {
    return Math.max(LEAST_OWNER_AGAIN_NANOS, Math.min(askers, 1024) * OWNER_AGAIN_NANOS);
  }

  synchronized HeldBlocks.Wanted wanted(BitSet missing) {
    List<Integer> missed = new ArrayList<>();
    List<Integer> more = new ArrayList<>();
    for (int block = missing.nextSetBit(0);
        block >= 0 && missed.size() < HeldBlocks.MOST_LISTED;
        block = missing.nextSetBit(block + 1)) {
      if (!planned.containsKey(block) && !awaited.contains(block)) {
        if (isMissed(block)) {
          missed.add(block);
        } else if (more.size() < HeldBlocks.MOST_LISTED) {
          more.add(block);
        }
      }
    }
    return new HeldBlocks.Wanted(missed, more);
  }

  /** The blocks to ask the owner for, for a reader that waits for one. */
  synchronized HeldBlocks.Wanted wanted(int block) {
    List<Integer> one = List.of(block);
    return isMissed(block)
        ? new HeldBlocks.Wanted(one, List.of())
        : new HeldBlocks.Wanted(List.of(), one);
  }

  private boolean isMissed(int block) {
    return others.values().stream().noneMatch(node -> node.has(block));
  }

  /** Whether the owner does not offer blocks, or no node has sent one for long. */
  synchronized boolean isStuck() {
    return (owner.held == null && !owner.isAsking && load(owner) < STREAMS)
        || nanoTime.getAsLong() - progressNanos > STALL_NANOS;
  }

  /** Waits for news, for a short time. */
  @SuppressWarnings("WaitNotInLoop") // the caller looks again
  synchronized void awaitNews() throws InterruptedException {
    wait(TimeUnit.NANOSECONDS.toMillis(AGAIN_NANOS));
  }
}
