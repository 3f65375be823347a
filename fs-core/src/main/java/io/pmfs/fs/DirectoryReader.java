package io.pmfs.fs;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceAccess;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.Pace;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.FutureTask;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads a directory from the source for an import: its names and their attributes. It requests the
 * attributes of many names concurrently, because on a source with latency these take most of the
 * time.
 */
public final class DirectoryReader {
  private static final Logger log = LoggerFactory.getLogger(DirectoryReader.class);

  /** Passing less work to another thread is not worth it. */
  private static final long TASK_NANOS = 5_000_000;

  private static final int MOST_NAMES_PER_TASK = 64;

  /** The most files of a directory without attributes, in addition to as many as have them. */
  private static final int MOST_UNKNOWN = 16;

  private final BackingStore source;
  private final ExecutorService threads;
  private final Pace pace;
  private final BooleanSupplier stopped;
  private final BooleanSupplier withLists;

  /**
   * Limits requests to the pace, and sends them on the caller's thread and on {@code threads}.
   * Fails with EINTR once {@code stopped} is true.
   *
   * @param withLists whether access-control lists are read with the attributes
   */
  public DirectoryReader(
      BackingStore source,
      ExecutorService threads,
      Pace pace,
      BooleanSupplier stopped,
      BooleanSupplier withLists) {
    this.withLists = withLists;
    this.source = source;
    this.threads = threads;
    this.pace = pace;
    this.stopped = stopped;
  }

  /** Whether the pace may make callers wait longer than the source does. */
  boolean isPaced() {
    return pace != Pace.UNLIMITED;
  }

  /** Receives what {@link #list} finds. */
  interface Batches {
    void accept(List<SourceEntry> entries) throws FsException;
  }

  /**
   * Passes the entries of a directory to the consumer in batches.
   *
   * @param hurries whether to ignore the pace from now on
   * @param isLast whether to leave out names that the source denies right after it has listed them
   */
  void list(FileName directory, BooleanSupplier hurries, boolean isLast, Batches batches)
      throws FsException {
    BatchFailure failure = new BatchFailure();
    pace.await(1, 0, hurries);
    if (!source.listWithStatus(
        directory, entries -> failure.first(() -> batches.accept(entries)))) {
      Looks looks = new Looks(directory, hurries, isLast);
      source.list(directory, names -> failure.first(() -> batches.accept(looks.at(names))));
    }
    if (failure.cause != null) {
      throw failure.cause;
    }
  }

  /** Carries the first failure out of a consumer and skips all later steps. */
  private static final class BatchFailure {
    private @Nullable FsException cause;

    interface Step {
      void run() throws FsException;
    }

    /** Runs a step; false if it or an earlier one failed. */
    boolean first(Step step) {
      if (cause == null) {
        try {
          step.run();
        } catch (FsException e) {
          cause = e;
        }
      }
      return cause == null;
    }
  }

  SourceStatus status(FileName path, BooleanSupplier hurries) throws FsException {
    awaitTurn(path, hurries);
    return source.status(path);
  }

  private void awaitTurn(FileName path, BooleanSupplier hurries) throws FsException {
    pace.await(1, 0, hurries);
    if (stopped.getAsBoolean()) {
      throw new FsException(Errno.EINTR, path.toString());
    }
  }

  SourceEntry entry(FileName directory, FileName name, BooleanSupplier hurries) throws FsException {
    FileName path = directory.resolve(name);
    if (!withLists.getAsBoolean()) {
      SourceStatus status = status(path, hurries);
      return new SourceEntry(name, status.identity(), status.attributes());
    }
    awaitTurn(path, hurries);
    SourceAccess access = source.access(path);
    SourceStatus status = access.status();
    FileName list = access.keepsLists() ? access.list() : null;
    return new SourceEntry(name, status.identity(), status.attributes(), list);
  }

  /**
   * Reads the attributes of one directory's files. A file whose attributes the source cannot
   * deliver is listed as unknown, so that the others remain usable. If most files fail, the listing
   * fails, unless they vanish.
   */
  private final class Looks {
    private final FileName directory;
    private final BooleanSupplier hurries;
    private final boolean isLast;
    private final AtomicInteger known = new AtomicInteger();
    private final AtomicInteger unknown = new AtomicInteger();

    Looks(FileName directory, BooleanSupplier hurries, boolean isLast) {
      this.directory = directory;
      this.hurries = hurries;
      this.isLast = isLast;
    }

    /** Looks at the first name itself, and then at many at once if that took long. */
    List<SourceEntry> at(List<FileName> names) throws FsException {
      if (names.isEmpty()) {
        return List.of();
      }
      long begin = System.nanoTime();
      List<SourceEntry> entries = new ArrayList<>(atEach(names.subList(0, 1)));
      long took = Math.max(1, System.nanoTime() - begin);
      int size = (int) Math.max(1, Math.min(MOST_NAMES_PER_TASK, TASK_NANOS / took));
      List<FutureTask<List<SourceEntry>>> parts = new ArrayList<>();
      int first = Math.min(names.size(), 1 + size);
      for (int from = first; from < names.size(); from += size) {
        List<FileName> part = names.subList(from, Math.min(names.size(), from + size));
        parts.add(new FutureTask<>(() -> atEach(part)));
      }
      parts.forEach(this::handOut);
      FsException failure = null;
      try {
        entries.addAll(atEach(names.subList(1, first)));
      } catch (FsException e) {
        failure = e;
      }
      for (FutureTask<List<SourceEntry>> part : parts) {
        try {
          part.run(); // unless a thread has started it
          entries.addAll(part.get());
        } catch (ExecutionException e) {
          failure =
              e.getCause() instanceof FsException cause
                  ? cause
                  : new FsException(Errno.EIO, directory.toString(), e.getCause());
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          failure = new FsException(Errno.EINTR, directory.toString(), e);
        }
      }
      if (failure != null) {
        throw failure;
      }
      return entries;
    }

    /** If no thread can take it, the caller runs it later. */
    private void handOut(Runnable part) {
      try {
        threads.execute(part);
      } catch (RejectedExecutionException | OutOfMemoryError e) {
        log.debug("no thread to request attributes, the reader requests them: {}", e.toString());
      }
    }

    private List<SourceEntry> atEach(List<FileName> names) throws FsException {
      List<SourceEntry> entries = new ArrayList<>(names.size());
      for (FileName name : names) {
        try {
          entries.add(entry(directory, name, hurries));
          known.incrementAndGet();
        } catch (FsException e) {
          // No error makes a file disappear, as long as a change of the directory can tell whether
          // it was removed.
          if (e.errno() != Errno.ENOENT || !isLast) {
            entries.add(unknown(name, e));
          }
        }
      }
      return entries;
    }

    private SourceEntry unknown(FileName name, FsException failure) throws FsException {
      if (failure.errno() == Errno.EINTR
          || (failure.errno() != Errno.ENOENT
              && unknown.incrementAndGet() > MOST_UNKNOWN + known.get())) {
        throw failure;
      }
      log.debug("{}: listed without attributes: {}", directory, failure.getMessage());
      return SourceEntry.unknown(name);
    }
  }
}
