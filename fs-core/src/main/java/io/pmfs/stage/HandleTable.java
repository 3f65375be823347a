package io.pmfs.stage;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Open files by inode number. In page-cache mode the kernel reports neither opens nor closes, so
 * files that are read often are kept open here: up to a number of files, and for a while after the
 * last use. A file is closed when it has left the table and its last user has released it.
 */
final class HandleTable<H extends AutoCloseable> implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(HandleTable.class);

  private final Cache<Long, Entry> entries;

  /** Files that a thread is opening. */
  private final Map<Long, CompletableFuture<Void>> opening = new ConcurrentHashMap<>();

  HandleTable(int capacity, Duration idle) {
    entries =
        CacheBuilder.newBuilder()
            .maximumSize(capacity)
            .expireAfterAccess(idle)
            .concurrencyLevel(8)
            .<Long, Entry>removalListener(removal -> removal.getValue().retire())
            .build();
  }

  /** Opens a file that is not in the table; null if there is nothing to open. */
  interface Opener<H, X extends Exception> {
    @Nullable H open() throws X;
  }

  /**
   * The open file, kept open until the lease is closed; null if the opener found nothing. Of
   * threads that want the same file at the same time, one opens it.
   */
  <X extends Exception> @Nullable Lease acquire(long number, Opener<H, X> opener) throws X {
    Lease there = present(number);
    if (there != null) {
      return there;
    }
    CompletableFuture<Void> mine = new CompletableFuture<>();
    CompletableFuture<Void> others = opening.putIfAbsent(number, mine);
    if (others != null) {
      others.join();
      there = present(number);
      // If that failed, each thread tries on its own: one after the other might take long.
      return there == null ? open(number, opener) : there;
    }
    try {
      there = present(number);
      return there == null ? open(number, opener) : there;
    } finally {
      opening.remove(number);
      mine.complete(null);
    }
  }

  private @Nullable Lease present(long number) {
    Entry present = entries.getIfPresent(number);
    return present != null && present.enter() ? new Lease(present) : null;
  }

  private <X extends Exception> @Nullable Lease open(long number, Opener<H, X> opener) throws X {
    H handle = opener.open();
    if (handle == null) {
      return null;
    }
    Entry opened = new Entry(handle);
    opened.enter();
    // An earlier entry is replaced, and closed after its last user.
    entries.put(number, opened);
    return new Lease(opened);
  }

  /** Removes a file from the table. */
  void invalidate(long number) {
    entries.invalidate(number);
  }

  @Override
  public void close() {
    entries.invalidateAll();
  }

  /** The right to use an open file. */
  final class Lease implements AutoCloseable {
    private final Entry entry;

    private Lease(Entry entry) {
      this.entry = entry;
    }

    H handle() {
      return entry.handle;
    }

    @Override
    public void close() {
      entry.exit();
    }
  }

  private final class Entry {
    private final H handle;
    private int users; // GUARDED_BY(this)
    private boolean retired; // GUARDED_BY(this)

    Entry(H handle) {
      this.handle = handle;
    }

    synchronized boolean enter() {
      if (retired) {
        return false;
      }
      users++;
      return true;
    }

    void exit() {
      boolean last;
      synchronized (this) {
        users--;
        last = retired && users == 0;
      }
      if (last) {
        closeHandle();
      }
    }

    void retire() {
      boolean idle;
      synchronized (this) {
        idle = !retired && users == 0;
        retired = true;
      }
      if (idle) {
        closeHandle();
      }
    }

    private void closeHandle() {
      try {
        handle.close();
      } catch (Exception e) {
        log.debug("closing a handle", e);
      }
    }
  }
}
