package io.pmfs.cluster.peers;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/**
 * Remembers which requests were seen, for each client: a window of its last {@value #WIDTH}
 * numbers, as in IPsec (RFC 4303, 3.4.3). A client that has been silent for as long as a signature
 * is valid may be forgotten. Thread-safe.
 */
final class ReplayWindows {
  /** Requests of one client use several connections and so arrive out of order. */
  static final int WIDTH = 4096;

  private final int maxClients;
  private final long keepMillis;
  private final Map<Long, Window> clients = new HashMap<>(); // GUARDED_BY(this)

  ReplayWindows(int maxClients, long keepMillis) {
    this.maxClients = maxClients;
    this.keepMillis = keepMillis;
  }

  /**
   * Returns whether a client's request is new, and remembers it.
   *
   * @param nowMillis may be later than now, for a request that becomes valid then
   */
  synchronized boolean isNew(long client, long number, long nowMillis) {
    Window window = clients.get(client);
    if (window == null) {
      if (clients.size() >= maxClients && !forget(nowMillis)) {
        return false;
      }
      window = new Window();
      clients.put(client, window);
    }
    window.usedMillis = Math.max(window.usedMillis, nowMillis);
    return window.isNew(number);
  }

  private boolean forget(long nowMillis) {
    for (Iterator<Window> i = clients.values().iterator(); i.hasNext(); ) {
      if (nowMillis - i.next().usedMillis > keepMillis) {
        i.remove();
      }
    }
    return clients.size() < maxClients;
  }

  private static final class Window {
    private final long[] seen = new long[WIDTH / Long.SIZE];
    private long highest = -1;
    private long usedMillis;

    boolean isNew(long number) {
      if (number < 0 || number <= highest - WIDTH) {
        return false;
      }
      for (long n = Math.max(highest, number - WIDTH) + 1; n <= number; n++) {
        seen[word(n)] &= ~bit(n);
      }
      highest = Math.max(highest, number);
      boolean isNew = (seen[word(number)] & bit(number)) == 0;
      seen[word(number)] |= bit(number);
      return isNew;
    }

    private static int word(long number) {
      return (int) (number % WIDTH) / Long.SIZE;
    }

    private static long bit(long number) {
      return 1L << number; // Java uses the low six bits of the distance
    }
  }
}
