package io.pmfs.stage;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Open files by inode number. The kernel tells us neither of opens nor of closes in page-cache
 * mode, so what is read often is kept open here, up to a number of files and for a while after the
 * last use. A file is closed when it left the table and its last user let go.
 */
final class HandleTable<H extends AutoCloseable> implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(HandleTable.class);

  private final Cache<Long, Entry> entries;

  HandleTable(int capacity, Duration idle) {
    entries =
        CacheBuilder.newBuilder()
            .maximumSize(capacity)
            .expireAfterAccess(idle)
            .concurrencyLevel(8)
            .<Long, Entry>removalListener(removal -> removal.getValue().retire())
            .build();
  }

  /** Opens what is not in the table; null if there is nothing to open. */
  interface Opener<H, X extends Exception> {
    @Nullable H open() throws X;
  }

  /** The open file, kept open until the lease is closed; null if the opener found nothing. */
  <X extends Exception> @Nullable Lease acquire(long number, Opener<H, X> opener) throws X {
    Entry present = entries.getIfPresent(number);
    if (present != null && present.enter()) {
      return new Lease(present);
    }
    H handle = opener.open();
    if (handle == null) {
      return null;
    }
    Entry opened = new Entry(handle);
    opened.enter();
    // Two threads may have opened the same file: the later entry replaces the earlier, which closes
    // after its last user.
    entries.put(number, opened);
    return new Lease(opened);
  }

  /** Takes a file out of the table. */
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
