package io.pmfs.cluster.client;

import io.pmfs.cluster.peers.HttpLimits;
import io.pmfs.cluster.peers.PeerException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Reads of small files from one peer. While fewer requests than a limit are in progress, a read is
 * sent at once, alone. Otherwise it waits until a request ends, and is sent together with all
 * waiting reads by the thread that has waited longest. When a peer turns out to be unreachable, the
 * waiting reads fail without asking it again. A read also fails when its reader's patience ends.
 * Thread-safe.
 */
final class SmallReads {
  /** Sends one request for one or several files, and ends each read. */
  interface Sender {
    /** Returns the reason if the peer is unreachable, else null. */
    @Nullable PeerException send(List<SmallRead> reads, Patience patience);
  }

  private final int aloneCount;
  private final Sender sender;
  private final BooleanSupplier isWorthWaiting;
  private final ArrayDeque<SmallRead> waiting = new ArrayDeque<>(); // GUARDED_BY(this)
  private int underWay; // GUARDED_BY(this)

  /**
   * @param isWorthWaiting whether the peer itself waits, so that its readers lose nothing by
   *     waiting
   */
  SmallReads(int aloneCount, Sender sender, BooleanSupplier isWorthWaiting) {
    this.aloneCount = aloneCount;
    this.sender = sender;
    this.isWorthWaiting = isWorthWaiting;
  }

  /** Returns when the read has ended. */
  void perform(SmallRead read) {
    List<SmallRead> mine = enter(read) ? List.of(read) : read.await(isWorthWaiting);
    if (mine == null) {
      return;
    }
    PeerException absence = null;
    try {
      absence = sender.send(mine, read.patience());
    } finally {
      leave(absence);
    }
  }

  private synchronized boolean enter(SmallRead read) {
    if (underWay < aloneCount) {
      underWay++;
      return true;
    }
    waiting.add(read);
    return false;
  }

  private void leave(@Nullable PeerException absence) {
    List<SmallRead> vain = List.of();
    if (absence != null) {
      synchronized (this) {
        vain = List.copyOf(waiting);
        waiting.clear();
      }
    }
    for (SmallRead read : vain) {
      read.fail(Objects.requireNonNull(absence));
    }
    List<SmallRead> batch = next();
    while (!batch.isEmpty() && !batch.get(0).lead(batch)) {
      // Its reader has left.
      batch = batch.size() > 1 ? batch.subList(1, batch.size()) : next();
    }
  }

  /** What to ask for now; empty if nothing is waiting, and the caller's turn is over. */
  private synchronized List<SmallRead> next() {
    waiting.removeIf(SmallRead::hasEnded);
    List<SmallRead> batch = new ArrayList<>();
    long room = HttpLimits.MAX_BATCH_BYTES;
    while (!waiting.isEmpty() && batch.size() < HttpLimits.MAX_BATCH_ITEMS) {
      room -= waiting.getFirst().item().expected().size();
      if (room < 0) {
        break;
      }
      batch.add(waiting.removeFirst());
    }
    if (batch.isEmpty()) {
      underWay--;
    }
    return batch;
  }
}
