package io.pmfs.source;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;

/**
 * The source of a mount that another process took over. A separate thread opens it and retries
 * until it succeeds; meanwhile the mount serves the copies in its tiers. A request waits for the
 * first attempt, as for a source that hangs; later requests fail with the error of the last
 * attempt. If no thread can be started, requests open the source themselves.
 */
public final class ReopenedStore implements BackingStore {
  private static final Duration SHORTEST_PAUSE = Duration.ofSeconds(1);
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(16);

  /** Opens the source; fails if it is not the one with which the mount began. */
  @FunctionalInterface
  public interface Opener {
    BackingStore open() throws FsException;
  }

  /** Waits for some time. */
  @FunctionalInterface
  public interface Pause {
    void of(Duration time) throws InterruptedException;
  }

  private final Opener opener;
  private final Executor thread;
  private final Pause pause;
  private final RandomGenerator random;
  private final Consumer<String> report;

  private volatile @Nullable BackingStore store; // written under this
  private volatile @Nullable FsException failure; // written under this
  private @Nullable Thread opening; // GUARDED_BY(this)
  private boolean isThreadless; // GUARDED_BY(this)
  private long lastTriedNanos; // GUARDED_BY(this); by a request
  private boolean closed; // GUARDED_BY(this)

  /**
   * Starts opening the source.
   *
   * @param thread runs one task, which lasts until the source is opened, and may restart it @param
   *     report receives a line when the source becomes unavailable, when the reason changes, and
   *     when the source is available again
   */
  public ReopenedStore(
      Opener opener,
      Executor thread,
      Pause pause,
      RandomGenerator random,
      Consumer<String> report) {
    this.opener = opener;
    this.thread = thread;
    this.pause = pause;
    this.random = random;
    this.report = report;
    try {
      thread.execute(this::open);
    } catch (OutOfMemoryError e) {
      isThreadless = true;
      lastTriedNanos = System.nanoTime() - SHORTEST_PAUSE.toNanos();
    }
  }

  private void open() {
    synchronized (this) {
      opening = Thread.currentThread();
    }
    try {
      for (Duration longest = SHORTEST_PAUSE;
          store == null && !tryOnce();
          longest = next(longest)) {
        pause.of(jittered(longest));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt(); // closed
    }
  }

  private static Duration next(Duration pause) {
    Duration doubled = pause.multipliedBy(2);
    return doubled.compareTo(LONGEST_PAUSE) > 0 ? LONGEST_PAUSE : doubled;
  }

  /** A random time between half and all of the pause, so that many nodes do not return at once. */
  private Duration jittered(Duration longest) {
    long half = longest.toMillis() / 2;
    return Duration.ofMillis(half + random.nextLong(half + 1));
  }

  /** Tries to open the source; true if no further attempt is needed. */
  private boolean tryOnce() {
    try {
      return succeeded(opener.open());
    } catch (FsException e) {
      return failed(e);
    } catch (RuntimeException | Error e) {
      return failed(new FsException(Errno.EIO, String.valueOf(e), e));
    }
  }

  /**
   * Called by a request: starts the thread that could not be started before, or tries to open the
   * source.
   */
  private void openWithoutThread() {
    synchronized (this) {
      long now = System.nanoTime();
      if (!isThreadless || store != null || now - lastTriedNanos < SHORTEST_PAUSE.toNanos()) {
        return;
      }
      lastTriedNanos = now;
      try {
        thread.execute(this::open);
        isThreadless = false;
        return;
      } catch (OutOfMemoryError e) {
        // There is still no thread.
      }
    }
    tryOnce();
  }

  private boolean succeeded(BackingStore opened) {
    FsException before;
    synchronized (this) {
      if (closed) {
        opened.close();
        return true;
      }
      before = failure;
      store = opened;
      failure = null;
      opening = null;
      notifyAll();
    }
    if (before != null) {
      report.accept("is available again");
    }
    return true;
  }

  private boolean failed(FsException e) {
    FsException before;
    synchronized (this) {
      before = failure;
      failure = e;
      notifyAll();
      if (closed) {
        return true;
      }
    }
    String reason = String.valueOf(e.getMessage());
    if (before == null || !reason.equals(before.getMessage())) {
      report.accept(
          "is unavailable: "
              + reason
              + "; known names and copied files are served, other requests fail");
    }
    return false;
  }

  public @Nullable String absence() {
    FsException last = failure;
    if (store != null) {
      return null;
    }
    return last == null ? "it has not answered yet" : String.valueOf(last.getMessage());
  }

  private BackingStore store(FileName path) throws FsException {
    BackingStore there = store;
    if (there != null) {
      return there;
    }
    openWithoutThread();
    synchronized (this) {
      try {
        while (store == null && failure == null && !closed) {
          wait();
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new FsException(Errno.EINTR, path.toString(), e);
      }
      there = store;
      FsException last = failure;
      if (there == null) {
        throw new FsException(
            last == null ? Errno.EIO : last.errno(), path + ": the source is unavailable");
      }
      return there;
    }
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    return store(path).status(path);
  }

  @Override
  public SourceStatus ownStatus(FileName path) throws FsException {
    return store(path).ownStatus(path);
  }

  @Override
  public boolean isSecondHand() {
    BackingStore there = store;
    return there != null && there.isSecondHand();
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    store(directory).list(directory, batches);
  }

  @Override
  public boolean listWithStatus(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException {
    return store(directory).listWithStatus(directory, batches);
  }

  @Override
  public boolean listsAtOnce(FileName directory) {
    BackingStore there = store;
    return there != null && there.listsAtOnce(directory);
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws FsException {
    return store(path).readSymbolicLink(path);
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    return store(path).open(path);
  }

  @Override
  public SourceFile openVersion(FileName path, SourceVersion expected) throws FsException {
    return store(path).openVersion(path, expected);
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    return store(path).extendedAttributes(path);
  }

  @Override
  public SourceAccess access(FileName path) throws FsException {
    return store(path).access(path);
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    return store(FileName.of("")).statistics();
  }

  /** Lends nothing while the source is unavailable. */
  @Override
  public boolean lends() {
    BackingStore there = store;
    return there != null && there.lends();
  }

  /** While the source is unavailable, its files count as independent. */
  @Override
  public int sequenceCount() {
    BackingStore there = store;
    return there == null ? 0 : there.sequenceCount();
  }

  @Override
  public SourceSequence sequence(int index, ByteBuffer window, Runnable beforeRequest)
      throws FsException {
    return store(FileName.of("")).sequence(index, window, beforeRequest);
  }

  /** Does not wait for an attempt that hangs. */
  @Override
  public void close() {
    BackingStore there;
    synchronized (this) {
      closed = true;
      there = store;
      notifyAll();
      Thread trying = opening;
      if (trying != null) {
        trying.interrupt();
      }
    }
    if (there != null) {
      there.close();
    }
  }
}
