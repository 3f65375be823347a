package io.pmfs.cluster;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads of small files of one peer. While fewer than a limit are under way a read leaves at once,
 * alone; else it waits until one returns, and leaves together with all that wait, by the thread of
 * the one that waits longest. Safe for use by many threads.
 */
final class SmallReads {
  /** Sends one request for one or several files, and ends each of them. */
  interface Sender {
    void send(List<SmallRead> reads);
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
  void read(SmallRead read) {
    List<SmallRead> mine = enter(read) ? List.of(read) : read.await();
    if (mine == null) {
      return;
    }
    try {
      sender.send(mine);
    } finally {
      leave();
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

  private void leave() {
    List<SmallRead> batch = new ArrayList<>();
    synchronized (this) {
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
        return;
      }
    }
    batch.get(0).lead(batch);
  }
}
