package io.pmfs.writable.remote;

import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.FsException;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.NodeAway;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a node and the owner of its mount tell each other while no program waits for it: closes and
 * forgotten inodes, which data files are of no use any more, and how far the source is. Safe for
 * use by many threads.
 */
final class Upkeep {
  private static final Logger log = LoggerFactory.getLogger(Upkeep.class);

  /** What commands, and the first look at the root, wait for an owner that does not answer. */
  static final long COMMAND_MILLIS = 2000;

  private static final long LOOK_MILLIS = 1000;

  /** Data files that are of no use any more are asked for at every third look. */
  private static final int TIDY_LOOKS = 3;

  /** A wait for the source is asked for again after this long, lest it outlives this node. */
  private static final long DRAIN_MILLIS = 20_000;

  private static final int KEPT_LATER = 100_000;

  private final Owner owner;
  private final KeptContent kept;
  private final BlockingQueue<Closing> later = new LinkedBlockingQueue<>(KEPT_LATER);
  private final Thread looking = DaemonThread.lasting("pmfs-owner", this::look);
  private volatile boolean closed;
  private volatile Report report = new Report(DrainStatus.NONE, null, null);

  /**
   * How far the source is.
   *
   * @param failure why nothing can be changed; null if it can
   * @param sourceFailure that the owner's source does not answer; null if it does
   */
  record Report(DrainStatus status, @Nullable String failure, @Nullable String sourceFailure) {
    static Report of(MessageReader in) throws IOException {
      return new Report(
          in.status(),
          in.optional(MessageReader::text).orElse(null),
          in.optional(MessageReader::text).orElse(null));
    }

    Report with(DrainStatus other) {
      return new Report(other, failure, sourceFailure);
    }
  }

  /** A last close, or a forgotten inode if the handle is 0. */
  private record Closing(long inode, long handle) {}

  Upkeep(Owner owner, KeptContent kept) {
    this.owner = owner;
    this.kept = kept;
  }

  /**
   * Begins with a question.
   *
   * @param patienceMillis how long the owner may take to answer; null not to ask
   */
  void start(@Nullable Long patienceMillis) throws FsException {
    if (patienceMillis != null) {
      report = owners(patienceMillis);
    }
    looking.start();
  }

  void close() {
    closed = true;
    looking.interrupt();
  }

  // ---- what the owner is told

  /** The last close of a handle: until it is told, the kernel asks the next daemon for the same. */
  void closed(long inode, long handle) {
    Closing closing = new Closing(inode, handle);
    try {
      tell(closing);
    } catch (FsException e) {
      log.debug("closing inode {}: {}", inode, e.getMessage());
      tellLater(closing);
    }
  }

  void forgotten(long inode) {
    tellLater(new Closing(inode, 0));
  }

  private void tellLater(Closing closing) {
    if (!later.offer(closing)) {
      log.debug("inode {} is closed by the end of the session", closing.inode());
    }
  }

  private void tell(Closing closing) throws FsException {
    MessageWriter values = Message.request().number(closing.inode()).number(closing.handle());
    owner.ask(OwnerRequest.RELEASE, values, Owner.NOTHING);
  }

  void tellAll() throws FsException {
    for (Closing next = later.peek(); next != null; next = later.peek()) {
      if (next.handle() != 0) {
        tell(next);
        later.remove(next);
      } else {
        List<Closing> forgotten =
            later.stream().takeWhile(one -> one.handle() == 0).limit(Message.LISTED).toList();
        MessageWriter values =
            Message.request().list(forgotten, (to, one) -> to.number(one.inode()));
        owner.ask(OwnerRequest.FORGET, values, Owner.NOTHING);
        forgotten.forEach(later::remove);
      }
    }
  }

  private void look() {
    int looks = 0;
    while (!closed) {
      try {
        Thread.sleep(LOOK_MILLIS);
        refresh();
        if (!owner.isLost()) {
          tellAll();
          looks++;
          if (looks % TIDY_LOOKS == 0) {
            kept.tidy();
          }
        }
      } catch (FsException e) {
        log.debug("{}", e.getMessage());
      } catch (InterruptedException e) {
        return;
      }
    }
  }

  // ---- how far the source is

  /** As it was a moment ago. */
  Report report() {
    return report;
  }

  private Report owners(long patienceMillis) throws FsException {
    return owner.ask(patienceMillis, OwnerRequest.DRAIN_STATUS, Message.request(), Report::of);
  }

  private void refresh() {
    try {
      Report now = owners(COMMAND_MILLIS);
      report = now.with(now.status().withLocalBytes(kept.bytes()));
    } catch (FsException e) {
      // Whether the state of an owner is recorded that does not answer is not known.
      DrainStatus last = report.status().withLocalBytes(kept.bytes());
      report =
          e.getCause() instanceof NodeAway away
              ? new Report(last.without(away), null, null)
              : new Report(last, e.getMessage(), null);
    }
  }

  /** Waits until what was closed before the call, or a moment later, is at the source. */
  boolean drain(long timeoutMillis) throws InterruptedException {
    long begin = System.nanoTime();
    try {
      tellAll();
      while (true) {
        long left = timeoutMillis - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
        long part = Math.max(0, Math.min(left, DRAIN_MILLIS));
        long start = System.nanoTime();
        MessageWriter values = Message.request().number(part);
        boolean isDone =
            owner.ask(COMMAND_MILLIS, OwnerRequest.DRAIN, values, MessageReader::isNext);
        boolean isOver = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start) >= part;
        if (isDone || !isOver || part == left) {
          refresh();
          return isDone;
        }
      }
    } catch (FsException e) {
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      log.warn("waiting for the source: {}", e.getMessage());
      refresh();
      return false;
    }
  }

  /** Paths of what is not at the source; none if the owner does not answer. */
  List<String> waiting(int most) {
    MessageWriter values = Message.request().small(most);
    try {
      return owner.ask(
          COMMAND_MILLIS, OwnerRequest.WAITING, values, in -> in.list(MessageReader::text));
    } catch (FsException e) {
      return List.of();
    }
  }
}
