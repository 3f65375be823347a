package io.pmfs.writable.tree;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.table.StateException;
import io.pmfs.writable.Interrupts;
import io.pmfs.writable.tree.SourceTree.Look;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads of the source's names and attributes (looks) for requests of programs. Each runs in its own
 * thread. If the source does not answer in a moment, the request uses cached values, up to an age
 * that the user sets. A request without cached values waits for the source, unless its program is
 * interrupted. Thread-safe.
 */
public final class SourceLooks {
  private static final Logger log = LoggerFactory.getLogger(SourceLooks.class);

  /** Limit of simultaneous looks, including those without an answer. */
  private static final int MOST = 64;

  private static final long IDLE_SECONDS = 10;

  /** How often a waiting request checks whether it was interrupted. */
  private static final long POLL_MILLIS = 50;

  /** How long a request waits for a further look while the source does not answer. */
  private static final long SHORT_MILLIS = 20;

  /** The log reports at most this often that the source does not answer. */
  private static final long LOG_PAUSE_NANOS = TimeUnit.MINUTES.toNanos(1);

  private static final int KEPT_FAILURES = 10_000;
  private static final long CLOSE_MILLIS = 1000;

  private final long momentNanos;
  private final long patienceNanos;
  private final Interrupts interrupts;
  private final ThreadPoolExecutor threads =
      new ThreadPoolExecutor(
          0,
          2 * MOST,
          IDLE_SECONDS,
          TimeUnit.SECONDS,
          new SynchronousQueue<>(),
          work -> DaemonThread.of("pmfs-source-look", work));
  private final Semaphore free = new Semaphore(MOST);
  private final Set<Looking<?>> all = ConcurrentHashMap.newKeySet();
  private final Set<Thread> lookers = ConcurrentHashMap.newKeySet();
  private final Map<Object, Looking<?>> byKey = new ConcurrentHashMap<>();

  /** When looks began to fail, in nanoseconds, by key. */
  private final Cache<Object, Long> failing =
      CacheBuilder.newBuilder().maximumSize(KEPT_FAILURES).build();

  private volatile long answeredNanos = System.nanoTime();
  private volatile @Nullable Failed failed;

  /** Bounded by the process's limit of descriptors. */
  private final Queue<Integer> unclosed = new ConcurrentLinkedQueue<>();

  private final AtomicLong loggedNanos = new AtomicLong(System.nanoTime() - 2 * LOG_PAUSE_NANOS);
  private final AtomicBoolean isClosing = new AtomicBoolean();

  /** The first failure since the last answer. */
  private record Failed(long beginNanos, FsException why) {}

  public interface Known<T> {
    /** Null if there is none. */
    @Nullable T get() throws FsException;
  }

  public SourceLooks(long momentMillis, long patienceMillis, Interrupts interrupts) {
    this.momentNanos = TimeUnit.MILLISECONDS.toNanos(momentMillis);
    this.patienceNanos = TimeUnit.MILLISECONDS.toNanos(patienceMillis);
    this.interrupts = interrupts;
  }

  private final class Looking<T> implements Runnable {
    private final @Nullable Object key;
    private final Look<T> look;
    private final long beginNanos = System.nanoTime();
    private final CountDownLatch done = new CountDownLatch(1);
    private final @Nullable Consumer<T> unwanted;
    private boolean isUnwanted; // GUARDED_BY(this)
    private @Nullable T found; // GUARDED_BY(this)
    private @Nullable Throwable thrown; // GUARDED_BY(this)

    Looking(@Nullable Object key, Look<T> look, @Nullable Consumer<T> unwanted) {
      this.key = key;
      this.look = look;
      this.unwanted = unwanted;
    }

    @Override
    public void run() {
      lookers.add(Thread.currentThread());
      try {
        T answer = look.at();
        note(null);
        finish(answer, null);
      } catch (FsException | RuntimeException | Error e) {
        note(e);
        finish(null, e);
      } finally {
        lookers.remove(Thread.currentThread());
        all.remove(this);
        if (key != null) {
          byKey.remove(key, this);
        }
        free.release();
        done.countDown();
      }
    }

    private void note(@Nullable Throwable e) {
      Object of = key;
      long since = beginNanos;
      if (e instanceof FsException why && isAway(why)) {
        if (of != null) {
          Long before = failing.getIfPresent(of);
          failing.put(of, before == null ? since : before);
        }
        if (failed == null) {
          failed = new Failed(since, why);
          log.warn("the source fails: {}; cached names and attributes are used", why.getMessage());
        }
      } else if (e == null || e instanceof FsException) {
        if (of != null) {
          failing.invalidate(of);
        }
        if (failed != null) {
          failed = null;
          log.info("the source answers again");
        }
        answeredNanos = System.nanoTime();
      }
    }

    private synchronized void finish(@Nullable T answer, @Nullable Throwable e) {
      found = answer;
      thrown = e;
      if (isUnwanted && answer != null && unwanted != null) {
        unwanted.accept(answer);
      }
    }

    /** The request that started it has ended. */
    synchronized void abandon() {
      isUnwanted = true;
      T answer = found;
      if (answer != null && unwanted != null) {
        unwanted.accept(answer);
      }
    }

    boolean await(long nanos) throws FsException {
      try {
        return done.await(nanos, TimeUnit.NANOSECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new FsException(Errno.EINTR, "waiting for the source", e);
      }
    }

    synchronized @Nullable FsException failure() {
      return thrown instanceof FsException e ? e : null;
    }

    synchronized T answer() throws FsException {
      Throwable e = thrown;
      if (e instanceof FsException failure) {
        throw failure;
      }
      if (e instanceof RuntimeException failure) {
        throw failure;
      }
      if (e instanceof Error failure) {
        throw failure;
      }
      T answer = found;
      if (answer == null) {
        throw new IllegalStateException("no answer from the source");
      }
      return answer;
    }
  }

  /**
   * Looks at the source, or returns the cached value if the source does not answer in a moment or
   * is away. The look then continues, and others with the same key join it.
   *
   * @param look runs at most once at a time for a key, unless the source answers; not null
   */
  @SuppressWarnings("unchecked") // All looks with the same key have the same type.
  public <T> T ask(Object key, Look<T> look, Known<T> known) throws FsException {
    if (lookers.contains(Thread.currentThread())) {
      return look.at(); // A look within a look.
    }
    boolean isSilent = isSilent();
    Looking<T> looking = (Looking<T>) older(key);
    if (looking == null) {
      looking = begin(key, look, null);
    }
    long limit =
        isSilent ? Math.min(momentNanos, TimeUnit.MILLISECONDS.toNanos(SHORT_MILLIS)) : momentNanos;
    if (looking != null && looking.await(limit - (System.nanoTime() - looking.beginNanos))) {
      FsException failure = looking.failure();
      T instead = failure == null || !isAway(failure) || isOver(key, looking) ? null : known.get();
      return instead == null ? looking.answer() : instead;
    }
    tellSilence();
    T instead = isOver(key, looking) ? null : known.get();
    return instead == null ? await(key, looking, look, null) : instead;
  }

  /**
   * Looks at the source for something that is not cached.
   *
   * @param unwanted gets an answer that arrives after the request was interrupted
   */
  public <T> T await(Look<T> look, Consumer<T> unwanted) throws FsException {
    if (lookers.contains(Thread.currentThread())) {
      return look.at();
    }
    return await(null, begin(null, look, unwanted), look, unwanted);
  }

  /**
   * Looks in the calling thread, with all looks within: for the committer, which may be moving a
   * name, so that another thread's look would wait for it.
   */
  public <T> T here(Look<T> look) throws FsException {
    lookers.add(Thread.currentThread());
    try {
      return look.at();
    } finally {
      lookers.remove(Thread.currentThread());
    }
  }

  /** Starts a look without waiting for it, unless the same look is running. */
  public <T> void begin(Object key, Look<T> look) throws FsException {
    if (!byKey.containsKey(key)) {
      begin(key, look, null);
    }
  }

  private <T> T await(
      @Nullable Object key,
      @Nullable Looking<T> begun,
      Look<T> look,
      @Nullable Consumer<T> unwanted)
      throws FsException {
    Looking<T> looking = begun;
    try {
      while (looking == null) {
        checkInterrupted();
        awaitFree();
        looking = begin(key, look, unwanted);
      }
      while (!looking.await(TimeUnit.MILLISECONDS.toNanos(POLL_MILLIS))) {
        checkInterrupted();
      }
    } catch (FsException e) {
      if (looking != null && unwanted != null) {
        looking.abandon();
      }
      throw e;
    }
    return looking.answer();
  }

  /**
   * Checks a request that waits for the source in another way.
   *
   * @throws FsException with EINTR if it was interrupted
   */
  public void checkInterrupted() throws FsException {
    interrupts.check("waiting for the source");
  }

  private void awaitFree() throws FsException {
    try {
      if (free.tryAcquire(POLL_MILLIS, TimeUnit.MILLISECONDS)) {
        free.release();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new FsException(Errno.EINTR, "waiting for the source", e);
    }
  }

  /** Whether a look has run so long that a new one is started, whose answer may differ. */
  private @Nullable Looking<?> older(Object key) {
    Looking<?> same = byKey.get(key);
    boolean isOld =
        same != null
            && System.nanoTime() - same.beginNanos > TimeUnit.MILLISECONDS.toNanos(SHORT_MILLIS);
    return isOld ? same : null;
  }

  /** Null if too many are running. */
  private <T> @Nullable Looking<T> begin(
      @Nullable Object key, Look<T> look, @Nullable Consumer<T> unwanted) throws FsException {
    if (!free.tryAcquire()) {
      return null;
    }
    Looking<T> begun = new Looking<>(key, look, unwanted);
    all.add(begun);
    if (key != null) {
      byKey.put(key, begun);
    }
    try {
      threads.execute(begun);
    } catch (RejectedExecutionException e) {
      all.remove(begun);
      free.release();
      throw new FsException(Errno.EIO, "the mount ends", e);
    } catch (OutOfMemoryError e) {
      begun.run(); // No thread can be started now.
    }
    return begun;
  }

  /** Whether an error means that the source failed, not the file. */
  public static boolean isAway(FsException e) {
    if (e.getCause() instanceof StateException) {
      return false; // The error came from the mount's tables.
    }
    return switch (e.errno()) {
      case EIO,
          ESTALE,
          ENOTCONN,
          ESHUTDOWN,
          ENODEV,
          EHOSTDOWN,
          EREMOTEIO,
          ETIMEDOUT,
          EHOSTUNREACH,
          ENETDOWN,
          ENETUNREACH,
          ECONNREFUSED,
          ECONNRESET ->
          true;
      default -> false;
    };
  }

  private void tellSilence() {
    long now = System.nanoTime();
    long age = now - oldestNanos();
    long before = loggedNanos.get();
    if (isSilent() && now - before > LOG_PAUSE_NANOS && loggedNanos.compareAndSet(before, now)) {
      log.warn(
          "the source has not answered for {} ms; cached names and attributes are used",
          TimeUnit.NANOSECONDS.toMillis(age));
    }
  }

  /** Whether cached values are too old to use. */
  private boolean isOver(Object key, @Nullable Looking<?> looking) {
    long since = looking == null ? oldestNanos() : looking.beginNanos;
    Long before = failing.getIfPresent(key);
    long now = System.nanoTime();
    long age = Math.max(now - since, before == null ? 0 : now - before);
    return age > patienceNanos;
  }

  private long oldestNanos() {
    long now = System.nanoTime();
    long oldest = now;
    for (Looking<?> one : all) {
      oldest = one.beginNanos - oldest < 0 ? one.beginNanos : oldest;
    }
    return oldest;
  }

  /** Whether a look has waited for a moment while no other was answered. */
  private boolean isSilent() {
    if (all.isEmpty()) {
      return false;
    }
    long now = System.nanoTime();
    return now - oldestNanos() > momentNanos && now - answeredNanos > momentNanos;
  }

  /** The source's failure: since when, and the error if it answered with one. */
  public record Silence(long millis, @Nullable FsException failure) {}

  /** Null if the source answers. */
  @Nullable
  public Silence silence() {
    long now = System.nanoTime();
    long age = now - oldestNanos();
    Failed failure = failed;
    if (isSilent()) {
      return new Silence(TimeUnit.NANOSECONDS.toMillis(age), null);
    }
    return failure == null
        ? null
        : new Silence(TimeUnit.NANOSECONDS.toMillis(now - failure.beginNanos()), failure.why());
  }

  // ---- closing

  /**
   * Closes a descriptor of the source in another thread, because that may take as long as the
   * source does not answer.
   */
  public void closeLater(int file, IntConsumer close) {
    unclosed.add(file);
    if (isClosing.compareAndSet(false, true)) {
      try {
        threads.execute(() -> closeAll(close));
      } catch (RejectedExecutionException | OutOfMemoryError e) {
        closeAll(close);
      }
    }
  }

  private void closeAll(IntConsumer close) {
    do {
      Integer file = unclosed.poll();
      while (file != null) {
        close.accept(file);
        file = unclosed.poll();
      }
      isClosing.set(false);
    } while (!unclosed.isEmpty() && isClosing.compareAndSet(false, true));
  }

  /** Starts no further looks; returns whether none is running. */
  public boolean end() {
    threads.shutdown();
    try {
      return threads.awaitTermination(CLOSE_MILLIS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
