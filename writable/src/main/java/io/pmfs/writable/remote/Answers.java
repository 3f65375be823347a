package io.pmfs.writable.remote;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The answers to a node's changes, for requests that it repeats. A node has one request at a time
 * in each of its slots, so the last answer of each is enough. Thread-safe.
 */
final class Answers {
  /** Far more than a node has threads. */
  private static final int MOST_SLOTS = 4096;

  /** The latest request in each slot, since the node last joined. */
  private final Map<Integer, Message.Head> latest = new HashMap<>(); // GUARDED_BY(this)

  /** By the keys of requests; also those of slots that a former process of the node had. */
  private final Map<Long, byte[]> made = // GUARDED_BY(this)
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, byte[]> eldest) {
          return size() > MOST_SLOTS;
        }
      };

  /** The node may be another process, which repeats what its kernel had asked the former one. */
  synchronized void join() {
    latest.clear();
  }

  /**
   * A request has arrived.
   *
   * @return whether it is late: the node has its answer, or has given it up
   */
  synchronized boolean isLate(Message.Head head) {
    if (head.slot() < 0 || head.slot() >= MOST_SLOTS) {
      throw new IllegalArgumentException("slot " + head.slot());
    }
    Message.Head before = latest.getOrDefault(head.slot(), head);
    if (before.number() > head.number()) {
      return true;
    }
    latest.put(head.slot(), head);
    if (before.key() != head.key()) {
      made.remove(before.key());
    }
    return false;
  }

  synchronized byte @Nullable [] find(Message.Head head) {
    return made.get(head.key());
  }

  synchronized void keep(Message.Head head, byte[] answer) {
    made.put(head.key(), answer);
  }
}
