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
 * Background messages between a node and the owner of its mount: closes, forgotten inodes, opens
 * without an answer, obsolete data files and the drain status. Thread-safe.
 */
final class Upkeep {
  private static final Logger log = LoggerFactory.getLogger(Upkeep.class);

  /** Timeout of commands, and of the first access to the root, while the owner does not answer. */
  static final long COMMAND_MILLIS = 2000;

  private static final long LOOK_MILLIS = 1000;

  /** Obsolete data files are looked up at every third status request. */
  private static final int TIDY_LOOKS = 3;

  /** Limit of one wait for the source, so that none outlives this node; repeated. */
  private static final long DRAIN_MILLIS = 20_000;

  private static final int KEPT_LATER = 100_000;

  private final Owner owner;
  private final KeptContent kept;
  private final BlockingQueue<Later> later = new LinkedBlockingQueue<>(KEPT_LATER);
  private final Thread looking = DaemonThread.lasting("pmfs-owner", this::look);
  private volatile boolean closed;
  private volatile Report report = new Report(DrainStatus.NONE, null, null);

  /**
   * The drain status.
   *
   * @param failure why the mount is read-only now; null if it is not
   * @param sourceFailure says that the owner's source does not answer; null if it does
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

  /**
   * A report to the owner.
   *
   * @param number of the inode; of the request that got no answer
   * @param handle that was closed; else 0
   */
  private record Later(OwnerRequest report, long number, long handle) {
    MessageWriter values() {
      MessageWriter values = Message.request().number(number);
      return report == OwnerRequest.RELEASE
          ? values.number(handle)
          : values.caller(KeptContent.NO_CALLER);
    }
  }

  Upkeep(Owner owner, KeptContent kept) {
    this.owner = owner;
    this.kept = kept;
  }

  /**
   * Starts, after a first request.
   *
   * @param patienceMillis limit of the owner's first answer; null to skip that request
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

  // ---- reports to the owner

  /** The last close of a handle; until it is reported, the kernel repeats it to the next daemon. */
  void closed(long inode, long handle) {
    Later closing = new Later(OwnerRequest.RELEASE, inode, handle);
    try {
      send(closing);
    } catch (FsException e) {
      log.debug("closing inode {}: {}", inode, e.getMessage());
      sendLater(closing);
    }
  }

  void forgotten(long inode) {
    sendLater(new Later(OwnerRequest.FORGET, inode, 0));
  }

  /** The owner may have opened a file for a request to which there was no answer. */
  void unanswered(long unique) {
    sendLater(new Later(OwnerRequest.CLOSE_UNANSWERED, unique, 0));
  }

  private void sendLater(Later next) {
    if (!later.offer(next)) {
      log.debug("{} {} is left to the end of the session", next.report(), next.number());
    }
  }

  private void send(Later next) throws FsException {
    owner.ask(next.report(), next.values(), Owner.NOTHING);
  }

  void sendAll() throws FsException {
    for (Later next = later.peek(); next != null; next = later.peek()) {
      if (next.report() != OwnerRequest.FORGET) {
        send(next);
        later.remove(next);
      } else {
        List<Later> forgotten =
            later.stream()
                .takeWhile(one -> one.report() == OwnerRequest.FORGET)
                .limit(Message.LISTED)
                .toList();
        MessageWriter values =
            Message.request().list(forgotten, (to, one) -> to.number(one.number()));
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
          sendAll();
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

  // ---- drain status

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
      // Whether an unreachable owner's state is recorded is unknown.
      DrainStatus last = report.status().withLocalBytes(kept.bytes());
      if (e.getCause() instanceof NodeAway away) {
        report = new Report(last.without(away), null, null);
      } else if (e.getCause() instanceof BusyException) {
        report = report.with(last);
      } else {
        report = new Report(last, e.getMessage(), null);
      }
    }
  }

  /** Waits until everything closed before the call is at the source. */
  boolean drain(long timeoutMillis) throws InterruptedException {
    long begin = System.nanoTime();
    try {
      sendAll();
      while (true) {
        long left = timeoutMillis - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
        long part = Math.max(0, Math.min(left, DRAIN_MILLIS));
        long start = System.nanoTime();
        MessageWriter values = Message.request().number(part);
        boolean isDone =
            owner.ask(COMMAND_MILLIS, OwnerRequest.DRAIN, values, MessageReader::isNext);
        boolean isOver = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start) >= part;
        if (isDone || !isOver || part >= left) {
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

  /** Paths of changes that the source lacks; none if the owner does not answer. */
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
