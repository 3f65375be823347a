package io.pmfs.cluster.peers;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reads of small files from one peer. While fewer requests than a limit are in progress, a read is
 * sent at once, alone. Otherwise it waits until a request ends, and is sent together with all
 * waiting reads by the thread that has waited longest. When a peer turns out to be unreachable, the
 * waiting reads fail without asking it again. Safe for use by many threads.
 */
final class SmallReads {
  /** Sends one request for one or several files, and ends each read. */
  interface Sender {
    /** Returns the reason if the peer is unreachable, else null. */
    @Nullable PeerException send(List<SmallRead> reads);
  }

  private final int aloneCount;
  private final Sender sender;
  private final ArrayDeque<SmallRead> waiting = new ArrayDeque<>(); // GUARDED_BY(this)
  private int underWay; // GUARDED_BY(this)

  SmallReads(int aloneCount, Sender sender) {
    this.aloneCount = aloneCount;
    this.sender = sender;
  }

  /** Returns when the read has ended. */
  void perform(SmallRead read) {
    List<SmallRead> mine = enter(read) ? List.of(read) : read.await();
    if (mine == null) {
      return;
    }
    PeerException absence = null;
    try {
      absence = sender.send(mine);
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
    List<SmallRead> batch = new ArrayList<>();
    List<SmallRead> vain = List.of();
    synchronized (this) {
      if (absence != null) {
        vain = List.copyOf(waiting);
        waiting.clear();
      }
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
    }
    if (absence != null) {
      vain.forEach(read -> read.fail(absence));
    }
    if (!batch.isEmpty()) {
      batch.get(0).lead(batch);
    }
  }
}
