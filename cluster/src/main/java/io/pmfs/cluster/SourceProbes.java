package io.pmfs.cluster;

import io.pmfs.tier.FsException;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells a slow source from a peer that alone does not reach it. A peer that waits for the source is
 * waited for, by all who asked it; when that takes long, one thread of this node asks the source
 * the same. If that is answered, and the peer does not follow, it is suspected and readers go to
 * the source themselves. If it is not, only this thread more waits for the source, and a few after
 * it. Safe for use by many threads.
 */
final class SourceProbes implements AutoCloseable {
  /** Longer than a source takes that works. */
  static final Duration PATIENCE = Duration.ofSeconds(10);

  /**
   * Threads that ask in the place of one peer, each begun when the one before has had its time:
   * part of a source may hang, and the first question be about that.
   */
  static final int MOST = 4;

  private static final Logger log = LoggerFactory.getLogger(SourceProbes.class);

  private final Suspects suspects;
  private final long patienceNanos;
  private final Set<Question> open = ConcurrentHashMap.newKeySet();
  private final Map<UUID, Probing> probings = new ConcurrentHashMap<>();
  private final CountDownLatch closed = new CountDownLatch(1);

  /** What a peer is asked, asked of the source. */
  interface Probe {
    void run() throws FsException;
  }

  SourceProbes(Suspects suspects, Duration patience) {
    this.suspects = suspects;
    this.patienceNanos = patience.toNanos();
    daemon("pmfs-slow-peers", this::watch);
  }

  private static void daemon(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }

  /** The threads that ask in the place of one peer. */
  private final class Probing {
    private int running; // GUARDED_BY(this)
    private long lastNanos; // GUARDED_BY(this)

    synchronized boolean enter() {
      long now = System.nanoTime();
      if (running == MOST || (running > 0 && now - lastNanos < patienceNanos)) {
        return false;
      }
      running++;
      lastNanos = now;
      return true;
    }

    synchronized void leave() {
      running--;
    }
  }

  /** A question to a peer, until it is closed. */
  final class Question implements AutoCloseable {
    private final Member peer;
    private final Probe probe;
    private volatile long sinceNanos = System.nanoTime();
    private volatile boolean isProbed;

    private Question(Member peer, Probe probe) {
      this.peer = peer;
      this.probe = probe;
    }

    private boolean isOld() {
      return !isProbed && System.nanoTime() - sinceNanos > patienceNanos;
    }

    private void ask(Probing probing) {
      try {
        // When a source answers again, it does so to all at once.
        if (answers()
            && !closed.await(patienceNanos / 2, TimeUnit.NANOSECONDS)
            && open.contains(this)) {
          suspects.failed(peer, "it waits for the source, which answers this node");
        }
        sinceNanos = System.nanoTime();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } finally {
        isProbed = false;
        probing.leave();
      }
    }

    private boolean answers() {
      try {
        probe.run();
        return true;
      } catch (FsException e) {
        log.debug("the source, asked in the place of {}: {}", peer, e.getMessage());
        return false;
      }
    }

    @Override
    public void close() {
      open.remove(this);
    }
  }

  /** A question that a peer is about to be asked. To be closed when that has ended. */
  Question begin(Member peer, Probe probe) {
    Question question = new Question(peer, probe);
    open.add(question);
    return question;
  }

  private void watch() {
    try {
      while (!closed.await(patienceNanos / 4, TimeUnit.NANOSECONDS)) {
        for (Question question : open) {
          if (question.isOld()) {
            Probing probing = probings.computeIfAbsent(question.peer.id(), id -> new Probing());
            if (probing.enter()) {
              question.isProbed = true;
              daemon("pmfs-source-probe", () -> question.ask(probing));
            }
          }
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Idempotent. A thread that waits for the source is left behind. */
  @Override
  public void close() {
    closed.countDown();
  }
}
