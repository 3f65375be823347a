package io.pmfs.cluster;

import io.pmfs.cluster.client.Patience;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Asks peers, except those that failed recently, and counts their answers. Thread-safe. */
final class PeerQuestions implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(PeerQuestions.class);

  private final Owners owners;
  private final Suspects suspects;

  /** Peers that wait for a source that answers this node; they are asked for copies only. */
  private final Suspects withoutSource;

  private final SourceProbes probes;
  private final LongAdder answers = new LongAdder();
  private final LongAdder misses = new LongAdder();

  /**
   * @param patience how long a peer may wait before this node asks the source the same question
   */
  PeerQuestions(Owners owners, Suspects suspects, Suspects withoutSource, Duration patience) {
    this.owners = owners;
    this.suspects = suspects;
    this.withoutSource = withoutSource;
    this.probes = new SourceProbes(withoutSource, patience);
  }

  long answers() {
    return answers.sum();
  }

  long misses() {
    return misses.sum();
  }

  /** Whether a peer failed and has not answered since. */
  boolean isSuspected(Member peer) {
    return suspects.isSuspected(peer);
  }

  /** Whether a peer failed to reach the source and has not answered since. */
  boolean lacksSource(Member peer) {
    return withoutSource.isSuspected(peer);
  }

  interface Question<T> {
    T ask(Member peer, Patience patience) throws PeerException;
  }

  /**
   * The first answer of a member; null if none comes before this node's turn or within the reader's
   * patience.
   *
   * @param same asks the source the same question
   */
  <T> @Nullable T ask(
      List<Member> members, Question<T> question, Patience patience, SourceProbes.Probe same) {
    for (Member member : members) {
      if (owners.isSelf(member)) {
        return null;
      }
      T answer = ask(member, question, patience, same);
      if (answer != null) {
        return answer;
      }
    }
    return null;
  }

  <T> @Nullable T ask(
      Member peer, Question<T> question, Patience patience, SourceProbes.Probe same) {
    if (patience.isOver() || !suspects.mayAsk(peer) || !withoutSource.mayAsk(peer)) {
      return null;
    }
    long askedNanos = withoutSource.nanoTime();
    SourceProbes.Question open = probes.begin(peer, same);
    try {
      T answer = askNow(peer, question, patience);
      if (answer != null) {
        withoutSource.answered(peer, askedNanos);
      }
      return answer;
    } finally {
      open.close();
    }
  }

  /** Asks a peer for a copy, which needs no source, unless the peer failed recently. */
  <T> @Nullable T askForCopy(Member peer, Question<T> question, Patience patience) {
    return mayAskForCopy(peer, patience) ? askNow(peer, question, patience) : null;
  }

  private boolean mayAskForCopy(Member peer, Patience patience) {
    return !patience.isOver() && suspects.mayAsk(peer);
  }

  /** Asks a peer a question whose answer has no content; not counted. */
  <T> @Nullable T askAside(Member peer, Question<T> question, Patience patience) {
    if (!mayAskForCopy(peer, patience)) {
      return null;
    }
    try {
      return asked(peer, question, patience);
    } catch (PeerException e) {
      return null;
    }
  }

  private <T> @Nullable T askNow(Member peer, Question<T> question, Patience patience) {
    try {
      T answer = asked(peer, question, patience);
      answers.increment();
      return answer;
    } catch (PeerException e) {
      misses.increment();
      return null;
    }
  }

  private <T> T asked(Member peer, Question<T> question, Patience patience) throws PeerException {
    long usedBefore = patience.usedNanos();
    try {
      T answer = question.ask(peer, patience);
      suspects.answered(peer);
      return answer;
    } catch (PeerException e) {
      note(peer, e);
      boolean isSilent =
          e.kind() == PeerException.Kind.UNREACHABLE || e.kind() == PeerException.Kind.LATE;
      if (isSilent) {
        patience.lost(patience.usedNanos() - usedBefore);
      }
      throw e;
    }
  }

  private void note(Member peer, PeerException failure) {
    switch (failure.kind()) {
      case UNREACHABLE, CORRUPT -> suspects.failed(peer, String.valueOf(failure.getMessage()));
      case LATE -> log.debug("{}: {}", peer, failure.getMessage());
      case REFUSED, OTHER_VERSION, BUSY, FAILED -> {
        suspects.answered(peer);
        log.debug("{}: {}", peer, failure.getMessage());
      }
    }
  }

  @Override
  public void close() {
    probes.close();
  }
}
