package io.pmfs.writable.remote;

import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.Interrupts;
import io.pmfs.writable.NodeAway;
import io.pmfs.writable.remote.RemoteFileSystem.Self;
import java.io.IOException;
import java.util.BitSet;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends requests to the owner of a writable mount, and repeats them while it does not answer, for
 * as long as its daemon may take to be replaced. Thread-safe.
 */
final class Owner {
  private static final Logger log = LoggerFactory.getLogger(Owner.class);

  /** Reads an answer without values. */
  static final MessageReader.Reading<Boolean> NOTHING = in -> true;

  private static final long FIRST_PAUSE_MILLIS = 20;
  private static final long LONGEST_PAUSE_MILLIS = 500;

  private static final int KERNEL_STEP = 2;

  /** Far more than there are; the numbers stay below those of sessions. */
  private static final int COMMANDS_PER_MILLI = 32;

  /** How often an interrupt is repeated, because it may overtake its request. */
  private static final long INTERRUPT_MILLIS = 100;

  private final OwnerLink link;
  private final Self self;
  private final long patienceMillis;

  /** Grows whenever a request is given up; starts above that of an earlier process. */
  private final AtomicLong era = new AtomicLong(System.currentTimeMillis());

  private final AtomicLong numbers = new AtomicLong();

  /** The slots that requests have now; see {@link Answers}. */
  private final BitSet slots = new BitSet(); // GUARDED_BY(slots)

  /** Odd numbers, for kernels use even ones; above those of an earlier process. */
  private final AtomicLong commands =
      new AtomicLong(System.currentTimeMillis() * COMMANDS_PER_MILLI + 1);

  /** The number of the request that each thread waits for. */
  private final Map<Thread, Long> waiting = new ConcurrentHashMap<>();

  private final Interrupts interrupts = new Interrupts(this::interrupt);

  /** The number of this node's session; 0 before it has joined. */
  private volatile int node;

  /** How often it has joined. */
  private volatile long joins;

  /**
   * Time since which the owner does not answer as to a node that has joined, as {@link
   * System#nanoTime}; 0 if it does.
   */
  private volatile long lostSince;

  private volatile boolean closed;

  Owner(OwnerLink link, Self self, long patienceMillis) {
    this.link = link;
    this.self = self;
    this.patienceMillis = patienceMillis;
  }

  String name() {
    return link.owner();
  }

  /** Whether the last request had no answer. */
  boolean isLost() {
    return lostSince != 0;
  }

  /** Whether the owner may have let another node write files that this one had open. */
  boolean isCutOff() {
    long since = lostSince;
    return since != 0 && millisSince(since) >= patienceMillis;
  }

  /** From now on, requests without an answer fail at once. */
  void close() {
    closed = true;
  }

  <T> T ask(OwnerRequest request, MessageWriter values, MessageReader.Reading<T> result)
      throws FsException {
    return ask(patienceMillis, request, values, result);
  }

  /**
   * Sends a request. If too many others wait, it waits like those, as long as the source does; with
   * a patience of its own, not longer than that.
   *
   * @param patience limit of how long the owner may have been away, in milliseconds
   */
  <T> T ask(
      long patience, OwnerRequest request, MessageWriter values, MessageReader.Reading<T> result)
      throws FsException {
    return ask(patience, request, values.toBytes(), null, result);
  }

  /**
   * Sends a request.
   *
   * @param shorter sent instead if too many others wait
   */
  void send(OwnerRequest request, MessageWriter values, MessageWriter shorter) throws FsException {
    ask(patienceMillis, request, values.toBytes(), shorter.toBytes(), NOTHING);
  }

  private <T> T ask(
      long patience,
      OwnerRequest request,
      byte[] whole,
      byte @Nullable [] shorter,
      MessageReader.Reading<T> result)
      throws FsException {
    int slot = takeSlot();
    try {
      return ask(slot, patience, request, whole, shorter, result);
    } finally {
      freeSlot(slot);
    }
  }

  private int takeSlot() {
    synchronized (slots) {
      int free = slots.nextClearBit(0);
      slots.set(free);
      return free;
    }
  }

  private void freeSlot(int slot) {
    synchronized (slots) {
      slots.clear(slot);
    }
  }

  private <T> T ask(
      int slot,
      long patience,
      OwnerRequest request,
      byte[] whole,
      byte @Nullable [] shorter,
      MessageReader.Reading<T> result)
      throws FsException {
    byte[] body = whole;
    if (request.isNumbered()) {
      Message.once(commands.addAndGet(KERNEL_STEP), body);
    }
    long number = numbers.incrementAndGet();
    long pause = FIRST_PAUSE_MILLIS;
    Attempts attempts = new Attempts(patienceMillis);
    long start = System.nanoTime();
    boolean mayArrive = false;
    long now = era.get();
    while (true) {
      attempts.begin();
      try {
        long asking = joins;
        now = era.get();
        Message.from(node, now, number, slot, body);
        Message.Answer answer = Message.Answer.of(exchange(request, number, body));
        switch (answer.kind()) {
          case RESULT -> {
            lostSince = 0;
            return result.from(answer.in());
          }
          case FAILURE -> {
            lostSince = 0;
            throw answer.in().failure();
          }
          case NOT_JOINED -> join(asking);
          case GIVEN_UP -> {
            if (era.get() == now) {
              join(asking); // It belongs to an earlier process whose clock was ahead, or to none.
            }
          }
          case OTHER_VERSION ->
              throw new FsException(
                  Errno.EPROTO, link.owner() + " runs another version of pmfs; use the same one");
        }
      } catch (BusyException e) {
        attempts.end();
        body = shorter == null ? body : shorter;
        boolean isLate = patience != patienceMillis && millisSince(start) >= patience;
        if (isLate || closed || interrupts.isInterrupted() || !sleep(pause)) {
          giveUp(request, now, mayArrive);
          throw new FsException(
              interrupts.isInterrupted() ? Errno.EINTR : Errno.EIO,
              "too many requests wait for " + link.owner(),
              e);
        }
        pause = Math.min(LONGEST_PAUSE_MILLIS, 2 * pause);
      } catch (IOException e) {
        mayArrive = true;
        long away = awayMillis(attempts);
        if (away >= patience || closed || !sleep(pause)) {
          giveUp(request, now, mayArrive);
          throw new FsException(
              Errno.EIO,
              "%s, which owns this mount's names, does not answer: %s"
                  .formatted(link.owner(), e.getMessage()),
              new NodeAway(link.owner(), true, away, e));
        }
        pause = Math.min(LONGEST_PAUSE_MILLIS, 2 * pause);
      }
    }
  }

  private void giveUp(OwnerRequest request, long now, boolean mayArrive) {
    if (mayArrive && request.endsEra()) {
      era.compareAndSet(now, now + 1);
    }
  }

  private static long millisSince(long start) {
    return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
  }

  private byte[] exchange(OwnerRequest request, long number, byte[] body) throws IOException {
    Thread self = Thread.currentThread();
    waiting.put(self, number);
    try {
      if (interrupts.isInterrupted()) {
        interrupt(self);
      }
      return link.ask(request.title, body);
    } finally {
      waiting.remove(self);
    }
  }

  /** How long the owner has answered nothing, or not this request, which has just failed. */
  private long awayMillis(Attempts attempts) {
    long now = System.nanoTime();
    long since = lostSince;
    if (since == 0) {
      since = now == 0 ? 1 : now;
      lostSince = since;
    }
    return Math.max(TimeUnit.NANOSECONDS.toMillis(now - since), attempts.failedMillis());
  }

  private static boolean sleep(long millis) {
    try {
      Thread.sleep(millis);
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private synchronized void join(long before) throws FsException, IOException {
    if (joins != before) {
      return; // Another thread has joined meanwhile.
    }
    byte[] joining =
        Message.request().id(self.member()).id(self.session()).text(self.name()).toBytes();
    Message.from(0, era.get(), 0, 0, joining);
    Message.Answer answer = Message.Answer.of(link.ask(OwnerRequest.JOIN.title, joining));
    switch (answer.kind()) {
      case RESULT -> {
        Message.Joined joined = answer.in().joined();
        self.files().use(joined.mount());
        node = joined.node();
        joins++;
      }
      case FAILURE -> throw answer.in().failure();
      default -> throw new IOException("the owner rejected the request");
    }
  }

  // ---- interrupts

  Interrupts interrupts() {
    return interrupts;
  }

  /** The owner interrupts the request that a thread waits for, if it waits for one. */
  private void interrupt(Thread asking) {
    Long number = waiting.get(asking);
    if (number == null) {
      return;
    }
    try {
      DaemonThread.start("pmfs-owner-interrupt", () -> interrupt(asking, number));
    } catch (OutOfMemoryError e) {
      log.debug("a request goes on in spite of a signal: {}", e.toString());
    }
  }

  private void interrupt(Thread asking, Long number) {
    byte[] body = Message.request().number(number).toBytes();
    Message.from(node, era.get(), 0, 0, body);
    do {
      try {
        link.ask(OwnerRequest.INTERRUPT.title, body);
      } catch (IOException e) {
        log.debug("interrupting a request: {}", e.getMessage());
      }
    } while (sleep(INTERRUPT_MILLIS) && number.equals(waiting.get(asking)));
  }
}
