package io.pmfs.fs;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.FsException;
import java.util.ArrayDeque;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Requests something about all entries of a directory, many at once, ahead of a reader: one who
 * asks about two of them in a row, as {@code ls -l} does, will ask about the rest. Thread-safe.
 */
final class EntriesAhead {
  private static final Logger log = LoggerFactory.getLogger(EntriesAhead.class);

  private static final int AT_ONCE = 8;
  private static final int MOST_DIRECTORIES = 10_000;
  private static final int BATCH = 256;

  /** Requests what a reader will ask for, and caches it. */
  interface Request {
    Object of(long number) throws FsException;
  }

  private final Namespace namespace;
  private final Executor threads;
  private final Request request;
  private final AtomicLong lastDirectory = new AtomicLong();

  /** Directories whose entries were requested ahead. */
  private final Cache<Long, Boolean> ahead =
      CacheBuilder.newBuilder().maximumSize(MOST_DIRECTORIES).build();

  EntriesAhead(Namespace namespace, Executor threads, Request request) {
    this.namespace = namespace;
    this.threads = threads;
    this.request = request;
  }

  /** Call when a reader asks about an entry of a directory and the answer is not cached. */
  void asked(long number, long directory) {
    // The root is its own parent.
    if (number != directory
        && lastDirectory.getAndSet(directory) == directory
        && ahead.asMap().putIfAbsent(directory, true) == null) {
      begin(new Rest(directory));
    }
  }

  private void begin(Rest rest) {
    try {
      for (int i = 0; i < AT_ONCE; i++) {
        threads.execute(() -> requestAll(rest));
      }
    } catch (RejectedExecutionException | OutOfMemoryError e) {
      log.debug("no thread to read ahead of a reader: {}", e.toString());
    }
  }

  private void requestAll(Rest rest) {
    for (Long number = rest.next(); number != null; number = rest.next()) {
      try {
        request.of(number);
      } catch (FsException e) {
        // The reader gets the error itself.
        log.debug("reading ahead of a reader: {}", e.getMessage());
      }
    }
  }

  /** The entries of a directory not yet taken by a thread. */
  private final class Rest {
    private final long directory;
    private final ArrayDeque<Long> batch = new ArrayDeque<>(); // GUARDED_BY(this)
    private long position; // GUARDED_BY(this)

    Rest(long directory) {
      this.directory = directory;
    }

    synchronized @Nullable Long next() {
      if (batch.isEmpty()) {
        namespace.list(
            directory,
            position,
            entry -> {
              batch.add(entry.inode());
              position = entry.position();
              return batch.size() < BATCH;
            });
      }
      return batch.poll();
    }
  }
}
