package io.pmfs.daemon.tasks;

import io.pmfs.daemon.report.MissingNode;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The drains of a writable mount: each waits, in its own thread, until the source has everything
 * that was closed before the drain started. Thread-safe.
 */
public final class Drains implements AutoCloseable {
  /** The most drains at once. */
  static final int MOST = 16;

  /** The most ended drains whose outcome can still be read. */
  private static final int REMEMBERED = 64;

  private static final int NAMES = 20;

  private static final Logger log = LoggerFactory.getLogger(Drains.class);

  private final WritableFileSystem outputs;
  private final Supplier<List<MissingNode>> missing;
  private final AtomicInteger running = new AtomicInteger();

  // GUARDED_BY(this); oldest first
  private final Map<Long, Drain> drains =
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Drain> eldest) {
          return size() > REMEMBERED;
        }
      };
  private long last; // GUARDED_BY(this)

  private static final class Drain {
    private final Thread thread;
    private volatile String state = Report.RUNNING;

    Drain(Thread thread) {
      this.thread = thread;
    }
  }

  /**
   * The state of a drain.
   *
   * @param state {@link #RUNNING}, {@link #DONE}, or {@link #LEFT} if the source refused changes
   * @param waiting some paths with changes that the source does not have yet
   * @param missing nodes of the cluster whose changes are unknown; null in the report of an older
   *     daemon
   */
  public record Report(
      long id,
      String state,
      OutputsReport outputs,
      List<String> waiting,
      @Nullable List<MissingNode> missing) {
    public static final String RUNNING = "running";
    public static final String DONE = "done";
    public static final String LEFT = "left";

    /** The missing nodes; empty in the report of an older daemon. */
    public List<MissingNode> absent() {
      return missing == null ? List.of() : missing;
    }
  }

  /**
   * Starts with no drains.
   *
   * @param missing the nodes of the cluster that are missing
   */
  public Drains(WritableFileSystem outputs, Supplier<List<MissingNode>> missing) {
    this.outputs = outputs;
    this.missing = missing;
  }

  /**
   * Starts a drain.
   *
   * @throws IllegalStateException if there are too many
   */
  public synchronized Report start() {
    if (running.get() >= MOST) {
      throw new IllegalStateException(MOST + " commands already wait for this mount");
    }
    long id = ++last;
    running.incrementAndGet();
    Drain[] self = new Drain[1];
    Thread thread = DaemonThread.of("drain-" + id, () -> run(self[0]));
    self[0] = new Drain(thread);
    drains.put(id, self[0]);
    try {
      thread.start();
    } catch (OutOfMemoryError e) {
      drains.remove(id);
      running.decrementAndGet();
      throw new IllegalStateException(
          "cannot start a thread to wait for the source: " + e.getMessage(), e);
    }
    return report(id, self[0]);
  }

  /** Returns the conflicts and refusals so far; later reports omit them. */
  public OutputsReport acknowledge() throws FsException {
    return OutputsReport.of(outputs.acknowledge());
  }

  /** The paths of retried or discarded changes. */
  public record Changes(List<String> paths) {}

  /** Retries refused changes. */
  public Changes retry(FileName path) throws FsException {
    return new Changes(outputs.retry(path));
  }

  /** Discards refused changes. */
  public Changes drop(FileName path) throws FsException {
    return new Changes(outputs.drop(path));
  }

  private void run(Drain drain) {
    String outcome = Report.LEFT;
    try {
      outcome = outputs.drain(Long.MAX_VALUE) ? Report.DONE : Report.LEFT;
    } catch (InterruptedException e) {
      log.debug("a drain was cancelled");
    } catch (RuntimeException | Error e) {
      log.error("a drain failed", e);
    } finally {
      drain.state = outcome;
      running.decrementAndGet();
    }
  }

  /** The state of a drain; null if unknown, for example because another daemon started it. */
  @Nullable
  public Report find(long id) {
    Drain drain;
    synchronized (this) {
      drain = drains.get(id);
    }
    return drain == null ? null : report(id, drain);
  }

  private Report report(long id, Drain drain) {
    String state = drain.state; // read first: the other values may only be newer
    return new Report(
        id, state, OutputsReport.of(outputs.drainStatus()), outputs.waiting(NAMES), missing.get());
  }

  /** Cancels a drain; copying continues. */
  public synchronized void cancel(long id) {
    Drain drain = drains.remove(id);
    if (drain != null) {
      drain.thread.interrupt();
    }
  }

  @Override
  public synchronized void close() {
    drains.values().forEach(drain -> drain.thread.interrupt());
  }
}
