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
 * What commands wait for: that everything which was closed before they asked is at the source. Each
 * has a thread of its own. Safe for use by many threads.
 */
public final class Drains implements AutoCloseable {
  /** Commands that may wait at once. */
  static final int MOST = 16;

  /** Ended ones whose outcome can still be read. */
  private static final int REMEMBERED = 64;

  private static final int NAMES = 20;

  private static final Logger log = LoggerFactory.getLogger(Drains.class);

  private final WritableFileSystem outputs;
  private final Supplier<List<MissingNode>> missing;
  private final AtomicInteger running = new AtomicInteger();

  // GUARDED_BY(this); the oldest first
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
   * The state of one.
   *
   * @param state {@link #RUNNING}, {@link #DONE}, or {@link #LEFT} if the source refused changes
   * @param waiting some paths of what is not at the source yet
   * @param missing nodes of the cluster of whose changes nothing is known; null in the report of an
   *     older daemon
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

    /** The missing nodes; none in the report of an older daemon. */
    public List<MissingNode> absent() {
      return missing == null ? List.of() : missing;
    }
  }

  /**
   * Nobody waits yet.
   *
   * @param missing the nodes of the cluster that are missing
   */
  public Drains(WritableFileSystem outputs, Supplier<List<MissingNode>> missing) {
    this.outputs = outputs;
    this.missing = missing;
  }

  /**
   * Begins to wait.
   *
   * @throws IllegalStateException if too many wait
   */
  public synchronized Report start() {
    if (running.get() >= MOST) {
      throw new IllegalStateException(MOST + " commands wait for this mount already");
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
          "no thread can wait for the source now: " + e.getMessage(), e);
    }
    return report(id, self[0]);
  }

  /** What was told of conflicts and refusals until now, and is told no longer. */
  public OutputsReport acknowledge() throws FsException {
    return OutputsReport.of(outputs.acknowledge());
  }

  /** The paths of changes about which something was done. */
  public record Changes(List<String> paths) {}

  /** Has refused changes tried again. */
  public Changes retry(FileName path) throws FsException {
    return new Changes(outputs.retry(path));
  }

  /** Gives refused changes up. */
  public Changes drop(FileName path) throws FsException {
    return new Changes(outputs.drop(path));
  }

  private void run(Drain drain) {
    String outcome = Report.LEFT;
    try {
      outcome = outputs.drain(Long.MAX_VALUE) ? Report.DONE : Report.LEFT;
    } catch (InterruptedException e) {
      log.debug("a command waits no longer");
    } catch (RuntimeException | Error e) {
      log.error("waiting for the source", e);
    } finally {
      drain.state = outcome;
      running.decrementAndGet();
    }
  }

  /** The state of one; null if it is not known, for example to a daemon that has taken over. */
  @Nullable
  public Report find(long id) {
    Drain drain;
    synchronized (this) {
      drain = drains.get(id);
    }
    return drain == null ? null : report(id, drain);
  }

  private Report report(long id, Drain drain) {
    String state = drain.state; // before the rest: what is done must not show as left
    return new Report(
        id, state, OutputsReport.of(outputs.drainStatus()), outputs.waiting(NAMES), missing.get());
  }

  /** Waits no longer for one; what was copied stays. */
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
