package io.pmfs.fs;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import com.google.common.util.concurrent.Striped;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A cache of extended attributes. A reader who asks for two entries of a directory in a row, as
 * {@code ls -l} does, will ask for the rest: those are fetched concurrently ahead of the reader.
 * Thread-safe.
 */
public final class KeptAttributes {
  private static final Logger log = LoggerFactory.getLogger(KeptAttributes.class);

  private static final int AT_ONCE = 8;
  private static final int LOCKS = 1024;
  private static final int MOST_DIRECTORIES = 10_000;
  private static final int BATCH = 256;

  private final Namespace namespace;
  private final BackingStore source;
  private final Executor threads;

  /** Held while the source is asked, so that each inode is requested once. */
  private final Striped<Lock> locks = Striped.lazyWeakLock(LOCKS);

  private final AtomicLong lastDirectory = new AtomicLong();

  /** Directories whose entries were fetched ahead. */
  private final Cache<Long, Boolean> ahead =
      CacheBuilder.newBuilder().maximumSize(MOST_DIRECTORIES).build();

  KeptAttributes(Namespace namespace, BackingStore source, Executor threads) {
    this.namespace = namespace;
    this.source = source;
    this.threads = threads;
  }

  public boolean isKept(long number) {
    return namespace.extendedAttributes(number) != null;
  }

  /** The attributes of an inode. */
  public Map<FileName, byte[]> of(long number) throws FsException {
    Map<FileName, byte[]> kept = namespace.extendedAttributes(number);
    return kept == null ? ask(number) : kept;
  }

  /**
   * The attributes of an inode, for a reader who may continue with the other entries of its
   * directory.
   */
  public Map<FileName, byte[]> of(long number, long directory) throws FsException {
    Map<FileName, byte[]> kept = namespace.extendedAttributes(number);
    if (kept != null) {
      return kept;
    }
    // The root is its own parent.
    if (number != directory
        && lastDirectory.getAndSet(directory) == directory
        && ahead.asMap().putIfAbsent(directory, true) == null) {
      readAhead(new Rest(directory));
    }
    return ask(number);
  }

  private Map<FileName, byte[]> ask(long number) throws FsException {
    Lock lock = locks.get(number);
    lock.lock();
    try {
      Map<FileName, byte[]> kept = namespace.extendedAttributes(number);
      if (kept != null) {
        return kept;
      }
      FileName path = namespace.path(number);
      if (path == null) {
        throw new FsException(Errno.ESTALE, "inode " + number + " has no path");
      }
      Map<FileName, byte[]> attributes = source.extendedAttributes(path);
      namespace.putExtendedAttributes(number, attributes);
      return attributes;
    } finally {
      lock.unlock();
    }
  }

  private void readAhead(Rest rest) {
    try {
      for (int i = 0; i < AT_ONCE; i++) {
        threads.execute(() -> readAll(rest));
      }
    } catch (RejectedExecutionException | OutOfMemoryError e) {
      log.debug("no thread to read extended attributes ahead: {}", e.toString());
    }
  }

  private void readAll(Rest rest) {
    for (Long number = rest.next(); number != null; number = rest.next()) {
      try {
        of(number);
      } catch (FsException e) {
        // The reader gets the error itself.
        log.debug("reading extended attributes ahead: {}", e.getMessage());
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
