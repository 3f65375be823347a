package io.pmfs.cli.status;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.TimeSpan;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.posix.DaemonThread;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Collects the answers of several mounts' daemons. Other users' daemons are asked in parallel, with
 * one time limit for all daemons of a user. Whatever they answer or fail to answer affects only
 * their own mounts.
 */
final class Replies {
  /** How many daemons of another user are asked at a time. */
  private static final int AT_A_TIME = 8;

  /** The most failures listed for another user; the last one counts the rest. */
  private static final int MOST_FAILURES = 3;

  /**
   * The reply of one daemon.
   *
   * @param value null after a failure
   * @param failure null after success, or if an earlier reply counts this failure
   */
  record Reply<T>(DaemonRecord mount, @Nullable T value, @Nullable MountFailure failure) {}

  interface Asker<T> {
    T ask(DaemonRecord mount) throws MountFailure;
  }

  private Replies() {}

  /**
   * Asks all daemons; the replies are in the order of the mounts.
   *
   * @param owner the daemon's user; negative for this user
   * @param own asks a daemon of this user; called in this thread, one after another
   * @param strange asks another user's daemon, in any thread; may throw anything, or hang
   * @param limit the time for all daemons of another user
   */
  static <T> List<Reply<T>> of(
      List<DaemonRecord> mounts,
      ToLongFunction<DaemonRecord> owner,
      Asker<T> own,
      Asker<T> strange,
      Duration limit) {
    Map<Long, ExecutorService> workers = new HashMap<>();
    Map<DaemonRecord, FutureTask<T>> asked = new HashMap<>();
    long deadline = System.nanoTime() + limit.toNanos();
    try {
      for (DaemonRecord mount : mounts) {
        if (owner.applyAsLong(mount) >= 0) {
          FutureTask<T> task = new FutureTask<>(() -> strange.ask(mount));
          asked.put(mount, task);
          workers
              .computeIfAbsent(
                  owner.applyAsLong(mount),
                  user ->
                      Executors.newFixedThreadPool(AT_A_TIME, DaemonThread.numbered("strangers")))
              .execute(task);
        }
      }
      List<Reply<T>> replies = new ArrayList<>();
      for (DaemonRecord mount : mounts) {
        if (!asked.containsKey(mount)) {
          replies.add(reply(mount, own));
        }
      }
      for (DaemonRecord mount : mounts) {
        FutureTask<T> task = asked.get(mount);
        if (task != null) {
          replies.add(reply(mount, ignored -> result(mount, task, deadline, limit)));
        }
      }
      return counted(inOrder(replies, mounts), owner);
    } finally {
      workers.values().forEach(ExecutorService::shutdownNow);
    }
  }

  private static <T> Reply<T> reply(DaemonRecord mount, Asker<T> asker) {
    try {
      return new Reply<>(mount, asker.ask(mount), null);
    } catch (MountFailure e) {
      return new Reply<>(mount, null, e);
    }
  }

  private static <T> T result(DaemonRecord mount, FutureTask<T> task, long deadline, Duration limit)
      throws MountFailure {
    try {
      return task.get(Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof MountFailure failure) {
        throw failure;
      }
      // The answer of an untrusted daemon can cause any exception.
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: pid %d: its answer is malformed".formatted(mount.mountpoint(), mount.pid()),
          e);
    } catch (TimeoutException e) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: pid %d: no answer within %s"
              .formatted(mount.mountpoint(), mount.pid(), TimeSpan.format(limit)),
          e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new MountFailure(ExitStatus.FAILED, "interrupted", e);
    }
  }

  private static <T> List<Reply<T>> inOrder(List<Reply<T>> replies, List<DaemonRecord> mounts) {
    Map<DaemonRecord, Reply<T>> byMount = new HashMap<>();
    replies.forEach(reply -> byMount.put(reply.mount(), reply));
    List<Reply<T>> ordered = new ArrayList<>();
    for (DaemonRecord mount : mounts) {
      Reply<T> reply = byMount.get(mount);
      if (reply != null) {
        ordered.add(reply);
      }
    }
    return ordered;
  }

  private static <T> List<Reply<T>> counted(
      List<Reply<T>> replies, ToLongFunction<DaemonRecord> owner) {
    Map<Long, Integer> failures = new HashMap<>();
    for (Reply<T> reply : replies) {
      if (reply.failure() != null) {
        failures.merge(owner.applyAsLong(reply.mount()), 1, Integer::sum);
      }
    }
    Map<Long, Integer> shown = new HashMap<>();
    List<Reply<T>> counted = new ArrayList<>();
    for (Reply<T> reply : replies) {
      long user = owner.applyAsLong(reply.mount());
      MountFailure failure = reply.failure();
      if (failure == null || user < 0) {
        counted.add(reply);
        continue;
      }
      int number = shown.merge(user, 1, Integer::sum);
      int more = failures.getOrDefault(user, 0) - MOST_FAILURES;
      boolean isLast = number == MOST_FAILURES && more > 0;
      counted.add(
          new Reply<>(
              reply.mount(),
              null,
              isLast
                  ? new MountFailure(
                      ExitStatus.FAILED,
                      "%s; and %d more mounts of user %d".formatted(failure.line(), more, user),
                      failure)
                  : number > MOST_FAILURES ? null : failure));
    }
    return counted;
  }
}
