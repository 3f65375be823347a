package io.pmfs.writable.remote;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.mount.WritableMount;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.LongPredicate;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves a writable mount to the other nodes; this node owns all names. A change that a node
 * requests again, because it got no answer, is made only once. Thread-safe.
 */
public final class OwnerServer {
  private static final Logger log = LoggerFactory.getLogger(OwnerServer.class);

  /** Longer than the replacement of a daemon takes. */
  private static final long AWAY_NANOS = TimeUnit.SECONDS.toNanos(30);

  /** Limit of nodes, far more than a cluster has. */
  private static final int MOST_NODES = 4096;

  /** How often requests that a node gave up are interrupted, while the next one waits for them. */
  private static final long INTERRUPT_MILLIS = 50;

  /** The answer to a request of an era that is over; the node repeats it if it was not given up. */
  private static final byte[] GIVEN_UP = empty(Message.Kind.GIVEN_UP);

  private final WritableMount mount;
  private final LongSupplier nanoTime;

  /** Changes that are being made, by the numbers of their requests; each has a thread. */
  private final Map<Long, Making> making = new ConcurrentHashMap<>();

  /** Answers to changes of each node, also of sessions that have ended. */
  private final Cache<UUID, Answers> answers =
      CacheBuilder.newBuilder().maximumSize(MOST_NODES).build();

  /** Numbers of requests among the mount's own; kernels use positive ones. */
  private final AtomicLong keys = new AtomicLong();

  private final Map<UUID, Joined> joined = new HashMap<>(); // GUARDED_BY(this)

  /** What closes the files of sessions that have ended. */
  private final Queue<Runnable> former = new ConcurrentLinkedQueue<>();

  private static final class Joined {
    final int node;
    final Answers answers;

    /** Held shared by each request, and exclusively to end an era. */
    final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();

    final Set<Running> running = ConcurrentHashMap.newKeySet();
    volatile long era;

    /** Whether the session ends: none of its requests begins any more. */
    volatile boolean isEnding;

    /** Time since which it is away; 0 if it is present. */
    long awaySince; // GUARDED_BY(OwnerServer.this)

    Joined(int node, Answers answers, long era) {
      this.node = node;
      this.answers = answers;
      this.era = era;
    }
  }

  /** A request of a node that waits for its answer, which the first of its kind makes. */
  private record Running(Message.Head head, Making making) {}

  /** A request that is being made, and perhaps repeated. */
  private static final class Making {
    /** By which the mount can interrupt it. */
    final long key;

    final CompletableFuture<byte[]> answer = new CompletableFuture<>();

    /** Whether it was interrupted because its era was over. */
    volatile boolean isGivenUp;

    Making(long key) {
      this.key = key;
    }
  }

  public OwnerServer(WritableMount mount) {
    this(mount, System::nanoTime);
  }

  /** With another clock, for tests. */
  public OwnerServer(WritableMount mount, LongSupplier nanoTime) {
    this.mount = mount;
    this.nanoTime = nanoTime;
  }

  public byte[] answer(String title, byte[] body) {
    OwnerRequest request = OwnerRequest.of(title);
    if (request == null) {
      throw new IllegalArgumentException(title + ": no such request");
    }
    try {
      MessageReader in = new MessageReader(body);
      Message.Head head = in.head();
      if (!head.isOurVersion()) {
        return empty(Message.Kind.OTHER_VERSION);
      }
      if (request == OwnerRequest.JOIN) {
        return join(in.id(), in.id(), in.text(), head.era());
      }
      Joined asker = find(head.node());
      if (asker == null) {
        return empty(Message.Kind.NOT_JOINED);
      }
      if (request == OwnerRequest.INTERRUPT) {
        long number = in.number();
        interrupt(asker, running -> running.number() == number, false);
        return empty(Message.Kind.RESULT);
      }
      if (request == OwnerRequest.END_SESSION) {
        return endSession(asker, head);
      }
      return request.waits()
          ? performOnce(asker, request, head, in)
          : answerInTime(asker, request, head, in);
    } catch (IOException e) {
      throw new IllegalArgumentException(title + ": " + e.getMessage(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Message.failure(new FsException(Errno.EINTR, "the mount ends", e));
    }
  }

  private static byte[] empty(Message.Kind kind) {
    return Message.sealed(Message.answer(kind));
  }

  /** A request that a node gave up may arrive late; it must not run among later requests. */
  private byte[] answerInTime(
      Joined asker, OwnerRequest request, Message.Head head, MessageReader in)
      throws InterruptedException {
    if (head.era() > asker.era) {
      change(asker, head.era(), other -> other < head.era());
    }
    asker.lock.readLock().lock();
    try {
      if (asker.isEnding || head.era() < asker.era) {
        return GIVEN_UP;
      }
      return performOnce(asker, request, head, in);
    } finally {
      asker.lock.readLock().unlock();
    }
  }

  /** Changes the era once the requests of those that are over have ended, interrupted. */
  private void change(Joined asker, long era, LongPredicate isOver) throws InterruptedException {
    while (!asker.lock.writeLock().tryLock(INTERRUPT_MILLIS, TimeUnit.MILLISECONDS)) {
      interrupt(asker, running -> isOver.test(running.era()), true);
    }
    try {
      if (!asker.isEnding && isOver.test(asker.era)) {
        asker.era = era;
      }
    } finally {
      asker.lock.writeLock().unlock();
    }
  }

  private void interrupt(Joined asker, Predicate<Message.Head> which, boolean isGivenUp) {
    for (Running one : asker.running) {
      if (which.test(one.head())) {
        if (isGivenUp) {
          one.making().isGivenUp = true;
        }
        mount.interrupts().interrupt(one.making().key);
      }
    }
  }

  // ---- members

  /** A session that joins again stays the same: its earlier requests may still be running. */
  private byte[] join(UUID member, UUID session, String name, long era)
      throws InterruptedException {
    synchronized (this) {
      if (joined.size() >= MOST_NODES && !joined.containsKey(member)) {
        return Message.failure(new FsException(Errno.EAGAIN, MOST_NODES + " nodes have joined"));
      }
    }
    try {
      int node = mount.join(session, member, name);
      Joined asker = joined(member, node, era);
      if (era < asker.era) {
        change(asker, era, other -> other > era); // A new process, with a clock that is behind.
      }
      mount.isBack(member);
      leaveSoon();
      return Message.sealed(Message.answer(Message.Kind.RESULT).small(node).text(mount.id()));
    } catch (FsException e) {
      return Message.failure(e);
    }
  }

  /** Waits for the requests of an earlier session, and of one that was away for too long. */
  private Joined joined(UUID member, int node, long era) throws InterruptedException {
    while (true) {
      Joined before;
      synchronized (this) {
        before = joined.get(member);
        if (before == null || (before.node == node && !before.isEnding)) {
          Joined now = before == null ? new Joined(node, answersTo(member), era) : before;
          now.answers.join();
          now.awaySince = 0;
          joined.put(member, now);
          return now;
        }
        before.isEnding = true;
      }
      former.add(end(before));
    }
  }

  private Answers answersTo(UUID member) {
    return answers.asMap().computeIfAbsent(member, key -> new Answers());
  }

  /**
   * Ends a session once none of its requests runs any more.
   *
   * @return what closes everything that it had open
   */
  private Runnable end(Joined one) throws InterruptedException {
    change(one, one.era, other -> true);
    synchronized (this) {
      return joined.values().remove(one) ? mount.leaving(one.node) : () -> {};
    }
  }

  private byte[] endSession(Joined asker, Message.Head head) throws InterruptedException {
    if (head.era() < asker.era) {
      return GIVEN_UP;
    }
    asker.isEnding = true;
    leave(end(asker));
    return empty(Message.Kind.RESULT);
  }

  /**
   * Closing may require asking the node, which is waiting for another answer or does not answer.
   */
  private void leaveSoon() {
    for (Runnable next = former.poll(); next != null; next = former.poll()) {
      Runnable closing = next;
      if (!start(() -> leave(closing))) {
        former.add(closing);
        return;
      }
    }
  }

  private void leave(Runnable closing) {
    boolean isDone = false;
    try {
      closing.run();
      isDone = true;
    } finally {
      if (!isDone) {
        former.add(closing);
      }
    }
  }

  private static boolean start(Runnable leaving) {
    try {
      DaemonThread.start("pmfs-node-left", leaving);
      return true;
    } catch (OutOfMemoryError e) {
      log.debug(
          "closing the files of a lost node is retried at the next check of the members: {}",
          e.toString());
      return false;
    }
  }

  private void endGone(Joined one) {
    try {
      leave(end(one));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized @Nullable Joined find(int node) {
    return joined.values().stream().filter(one -> one.node == node).findFirst().orElse(null);
  }

  /** The present members of the cluster; files that others had open are closed after a while. */
  public void present(Set<UUID> members) {
    List<Joined> gone = new ArrayList<>();
    List<UUID> back = new ArrayList<>();
    long now = nanoTime.getAsLong();
    synchronized (this) {
      for (Map.Entry<UUID, Joined> entry : joined.entrySet()) {
        Joined one = entry.getValue();
        if (members.contains(entry.getKey())) {
          if (one.awaySince != 0) {
            back.add(entry.getKey());
          }
          one.awaySince = 0;
        } else if (one.awaySince == 0) {
          one.awaySince = now == 0 ? 1 : now;
        } else if (now - one.awaySince > AWAY_NANOS && !one.isEnding) {
          one.isEnding = true;
          gone.add(one);
        }
      }
    }
    leaveSoon();
    for (Joined one : gone) {
      if (!start(() -> endGone(one))) {
        one.isEnding = false;
      }
    }
    back.forEach(mount::isBack);
  }

  // ---- requests to the file system

  /** Answers a request, which can be interrupted by its number meanwhile. */
  private byte[] performOnce(
      Joined asker, OwnerRequest request, Message.Head head, MessageReader in) {
    if (asker.answers.isLate(head)) {
      return GIVEN_UP;
    }
    Making own = new Making(keys.decrementAndGet());
    long unique = head.key();
    Making before = unique == 0 ? null : making.putIfAbsent(unique, own);
    Running running = new Running(head, before == null ? own : before);
    asker.running.add(running);
    try {
      if (before != null) {
        return before.answer.join();
      }
      return unique == 0 ? perform(own, request, in) : performFirst(own, asker, request, head, in);
    } finally {
      asker.running.remove(running);
    }
  }

  /** Repetitions get the same answer, also those that come while it is being made. */
  private byte[] performFirst(
      Making own, Joined asker, OwnerRequest request, Message.Head head, MessageReader in) {
    try {
      byte[] known = asker.answers.find(head);
      byte[] answer = known == null ? perform(own, request, in) : known;
      if (answer != GIVEN_UP) {
        // Before it leaves the others, so that it is in one of them.
        asker.answers.keep(head, answer);
      }
      own.answer.complete(answer);
      return answer;
    } finally {
      making.remove(head.key());
      own.answer.completeExceptionally(new IllegalStateException("the request failed"));
    }
  }

  private byte[] perform(Making own, OwnerRequest request, MessageReader in) {
    try {
      mount.interrupts().begin(own.key);
      return request.make(mount, in);
    } catch (FsException e) {
      boolean isOver = own.isGivenUp && e.errno() == Errno.EINTR;
      return isOver ? GIVEN_UP : Message.failure(e);
    } catch (IOException e) {
      return Message.failure(new FsException(Errno.EPROTO, request.title + ": " + e.getMessage()));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (RuntimeException | Error e) {
      log.error("cannot answer a node's {}", request.title, e);
    } finally {
      mount.interrupts().end(own.key);
    }
    return Message.failure(new FsException(Errno.EIO, "the owner failed; see its log"));
  }
}
