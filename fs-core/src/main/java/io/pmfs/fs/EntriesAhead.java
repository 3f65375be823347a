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
 * Requests something about the entries of a directory, many at once, ahead of a reader: one who
 * asks about two of them in a row, as {@code ls -l} does, will probably ask about the rest. In a
 * directory with many entries, each question of the reader permits some requests ahead: a reader of
 * a few files does not cause requests for all. Thread-safe.
 */
final class EntriesAhead {
  private static final Logger log = LoggerFactory.getLogger(EntriesAhead.class);

  private static final int AT_ONCE = 8;

  /** Requests ahead for each question of a reader: what the threads do while it is answered. */
  private static final int FOR_EACH_QUESTION = 2 * AT_ONCE;

  /** What is known of further directories is forgotten: their entries are requested again. */
  private static final int MOST_DIRECTORIES = 1_000;

  private static final int BATCH = 64;

  /** Requests what a reader will ask for, and caches it. */
  interface Request {
    Object of(long number) throws FsException;
  }

  private final Namespace namespace;
  private final Executor threads;
  private final Request request;
  private final AtomicLong lastDirectory = new AtomicLong();

  /** The directories whose entries are requested ahead. */
  private final Cache<Long, Rest> ahead =
      CacheBuilder.newBuilder().maximumSize(MOST_DIRECTORIES).build();

  EntriesAhead(Namespace namespace, Executor threads, Request request) {
    this.namespace = namespace;
    this.threads = threads;
    this.request = request;
  }

  /** Call when a reader asks about an entry of a directory and the answer is not cached. */
  void asked(long number, long directory) {
    // The root is its own parent.
    if (number == directory || lastDirectory.getAndSet(directory) != directory) {
      return;
    }
    Rest rest = ahead.asMap().computeIfAbsent(directory, Rest::new);
    int missing = rest.permit();
    try {
      for (; missing > 0; missing--) {
        threads.execute(() -> requestAll(rest));
      }
    } catch (RejectedExecutionException | OutOfMemoryError e) {
      log.debug("no thread to read ahead of a reader: {}", e.toString());
      rest.leave(missing);
    }
  }

  private void requestAll(Rest rest) {
    boolean isOver = false;
    try {
      for (Long number = rest.next(); number != null; number = rest.next()) {
        try {
          request.of(number);
        } catch (FsException e) {
          // The reader gets the error itself.
          log.debug("reading ahead of a reader: {}", e.getMessage());
        }
      }
      isOver = true;
    } finally {
      if (!isOver) {
        rest.leave(1);
      }
    }
  }

  /** The entries of a directory not yet taken by a thread. */
  private final class Rest {
    private final long directory;
    private final ArrayDeque<Long> batch = new ArrayDeque<>(); // GUARDED_BY(this)
    private long position; // GUARDED_BY(this)
    private int permitted; // GUARDED_BY(this)
    private int running; // GUARDED_BY(this)
    private boolean isDone; // GUARDED_BY(this)

    Rest(long directory) {
      this.directory = directory;
    }

    /** Permits more requests; returns how many threads are to be started for them. */
    synchronized int permit() {
      if (isDone) {
        return 0;
      }
      permitted = FOR_EACH_QUESTION;
      int missing = AT_ONCE - running;
      running = AT_ONCE;
      return missing;
    }

    synchronized void leave(int count) {
      running -= count;
    }

    /** The next entry; null if the calling thread is to end. */
    synchronized @Nullable Long next() {
      if (permitted > 0 && batch.isEmpty() && !isDone) {
        namespace.list(
            directory,
            position,
            entry -> {
              batch.add(entry.inode());
              position = entry.position();
              return batch.size() < BATCH;
            });
        isDone = batch.isEmpty();
      }
      Long number = permitted > 0 ? batch.poll() : null;
      if (number == null) {
        running--;
      } else {
        permitted--;
      }
      return number;
    }
  }
}
