package io.pmfs.cluster;

import io.pmfs.cluster.members.Member;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.FsException;
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
 * Distinguishes a slow source from a peer that cannot reach it. While a peer waits long for the
 * source, one thread of this node asks the source the same question. If the source answers here but
 * the peer still does not, the peer is suspected and readers ask the source themselves. If the
 * source does not answer, only that thread waits for it, and later a few more. Thread-safe.
 */
final class SourceProbes implements AutoCloseable {
  /** Longer than a working source takes to answer. */
  static final Duration PATIENCE = Duration.ofSeconds(10);

  /**
   * The most threads that ask the source in place of one peer. Each starts at least {@link
   * #PATIENCE} after the previous one: part of a source may hang, and the first question may
   * concern that part.
   */
  static final int MOST = 4;

  private static final Logger log = LoggerFactory.getLogger(SourceProbes.class);

  private final Suspects suspects;
  private final long patienceNanos;
  private final Set<Question> open = ConcurrentHashMap.newKeySet();
  private final Map<UUID, Probing> probings = new ConcurrentHashMap<>();
  private final CountDownLatch closed = new CountDownLatch(1);

  /** Asks the source what a peer was asked. */
  interface Probe {
    void run() throws FsException;
  }

  SourceProbes(Suspects suspects, Duration patience) {
    this.suspects = suspects;
    this.patienceNanos = patience.toNanos();
    DaemonThread.lasting("pmfs-slow-peers", this::watch).start();
  }

  /** The threads that ask the source in place of one peer. */
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

  /** A question to a peer, open until it is closed. */
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
        // A source that recovers answers all nodes at once, so the peer gets time to follow.
        if (answers()
            && !closed.await(patienceNanos / 2, TimeUnit.NANOSECONDS)
            && open.contains(this)) {
          suspects.failed(peer, "it waits for the source, although the source answers this node");
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
        log.debug("asked the source in place of {}: {}", peer, e.getMessage());
        return false;
      }
    }

    @Override
    public void close() {
      open.remove(this);
    }
  }

  /** Registers a question to a peer. The caller closes it when the question has ended. */
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
              probe(question, probing);
            }
          }
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static void probe(Question question, Probing probing) {
    question.isProbed = true;
    try {
      DaemonThread.start("pmfs-source-probe", () -> question.ask(probing));
    } catch (RuntimeException | Error e) {
      question.isProbed = false;
      probing.leave();
      throw e;
    }
  }

  /** Idempotent. Does not wait for threads that wait for the source. */
  @Override
  public void close() {
    closed.countDown();
  }
}
