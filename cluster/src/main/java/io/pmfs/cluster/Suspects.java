package io.pmfs.cluster;

import io.pmfs.cluster.members.Member;
import java.time.Duration;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Peers that failed recently. Each is not asked for a while, twice as long after each further
 * failure, so that readers do not wait for a dead peer each time. Thread-safe.
 */
final class Suspects {
  private static final Logger log = LoggerFactory.getLogger(Suspects.class);

  static final Duration FIRST = Duration.ofSeconds(1);
  static final Duration LAST = Duration.ofSeconds(30);

  private final LongSupplier nanoTime;
  private final ConcurrentHashMap<UUID, Suspicion> suspicions = new ConcurrentHashMap<>();

  /** Applies to one instance: a restarted peer is not suspected. */
  private record Suspicion(long instance, Duration pause, long until) {}

  Suspects(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
  }

  /** Whether to ask a peer now. After its pause, one caller may try; the others still may not. */
  boolean mayAsk(Member peer) {
    Suspicion suspicion = suspicions.get(peer.id());
    if (suspicion == null || suspicion.instance != peer.instance()) {
      return true;
    }
    long now = nanoTime.getAsLong();
    return now - suspicion.until >= 0
        && suspicions.replace(peer.id(), suspicion, suspicion(peer, suspicion.pause, now));
  }

  /** Whether a peer failed and has not answered since. */
  boolean isSuspected(Member peer) {
    Suspicion suspicion = suspicions.get(peer.id());
    return suspicion != null && suspicion.instance == peer.instance();
  }

  private static Suspicion suspicion(Member peer, Duration pause, long now) {
    return new Suspicion(peer.instance(), pause, now + pause.toNanos());
  }

  /** Records that a peer did not answer, or sent wrong data. */
  void failed(Member peer, String why) {
    long now = nanoTime.getAsLong();
    suspicions.compute(
        peer.id(),
        (id, before) -> {
          boolean isNew = before == null || before.instance != peer.instance();
          if (isNew) {
            log.warn("{} is not asked for a while: {}", peer, why);
          } else if (now - before.until < 0) {
            // Another caller asked it at the same time; the pause has already begun.
            return before;
          }
          Duration twice = isNew ? FIRST : before.pause.multipliedBy(2);
          return suspicion(peer, twice.compareTo(LAST) > 0 ? LAST : twice, now);
        });
  }

  /** Forgets peers that are no longer members. */
  void keepOnly(Set<UUID> members) {
    suspicions.keySet().retainAll(members);
  }

  void answered(Member peer) {
    if (suspicions.remove(peer.id()) != null) {
      log.info("{} answers again", peer);
    }
  }

  /** A peer answered a question asked at that time, which ends any earlier suspicion. */
  void answered(Member peer, long askedNanos) {
    Suspicion suspicion = suspicions.get(peer.id());
    if (suspicion != null
        && askedNanos - (suspicion.until - suspicion.pause.toNanos()) >= 0
        && suspicions.remove(peer.id(), suspicion)) {
      log.info("{} answers again", peer);
    }
  }

  /** The time of this object's clock. */
  long nanoTime() {
    return nanoTime.getAsLong();
  }
}
