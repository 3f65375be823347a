package io.pmfs.stage.copies;

import com.google.common.base.Ticker;
import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Open files by inode number. In page-cache mode the kernel reports neither opens nor closes, so
 * frequently read files are kept open here: up to a maximum number, for a while after the last use.
 * A file is closed once it has left the table and its last user has released it.
 *
 * <p>A file in use is found in {@link #recent}, without a lock on the table or an object.
 */
public final class HandleTable<H extends AutoCloseable> implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(HandleTable.class);

  /** A power of two. */
  private static final int RECENT = 4096;

  /** One in this many uses of a file resets its expiry in the table. A power of two. */
  private static final int USES_UNTIL_TOUCHED = 64;

  private final Cache<Long, Lease> entries;

  /** Some of the entries, each at a position determined by its number. */
  private final AtomicReferenceArray<@Nullable Lease> recent = new AtomicReferenceArray<>(RECENT);

  /** Counts of invalidations, each at a position determined by the number. */
  private final AtomicIntegerArray invalidations = new AtomicIntegerArray(RECENT);

  /** Files that a thread is opening. */
  private final Map<Long, CompletableFuture<Void>> opening = new ConcurrentHashMap<>();

  public HandleTable(int capacity, Duration idle) {
    this(capacity, idle, Ticker.systemTicker());
  }

  public HandleTable(int capacity, Duration idle, Ticker ticker) {
    entries =
        CacheBuilder.newBuilder()
            .ticker(ticker)
            .maximumSize(capacity)
            .expireAfterAccess(idle)
            .concurrencyLevel(8)
            .<Long, Lease>removalListener(removal -> removal.getValue().retire())
            .build();
  }

  /** Opens a file that is not in the table; null if there is nothing to open. */
  public interface Opener<H, X extends Exception> {
    @Nullable H open() throws X;
  }

  /**
   * The open file, kept open until the lease is closed; null if the opener found nothing. If
   * several threads want the same file at once, one opens it.
   */
  public <X extends Exception> @Nullable Lease acquire(long number, Opener<H, X> opener) throws X {
    Lease there = present(number);
    if (there != null) {
      return there;
    }
    CompletableFuture<Void> mine = new CompletableFuture<>();
    CompletableFuture<Void> others = opening.putIfAbsent(number, mine);
    if (others != null) {
      others.join();
      there = present(number);
      // If that failed, each thread tries on its own, because trying in turn might take long.
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

  /** The open file if it is in the table, kept open until the lease is closed; else null. */
  @Nullable Lease present(long number) {
    int place = place(number);
    Lease last = recent.get(place);
    if (last != null && last.number == number && last.enter()) {
      if (last.isToBeTouched()) {
        entries.getIfPresent(number);
      }
      return last;
    }
    Lease present = entries.getIfPresent(number);
    if (present == null || !present.enter()) {
      return null;
    }
    recent.set(place, present);
    return present;
  }

  private static int place(long number) {
    return (int) number & (RECENT - 1);
  }

  private <X extends Exception> @Nullable Lease open(long number, Opener<H, X> opener) throws X {
    int before = invalidations.get(place(number));
    H handle = opener.open();
    if (handle == null) {
      return null;
    }
    Lease opened = new Lease(number, handle);
    opened.enter();
    // In one step: a file that was opened before an invalidation is not found after it.
    Lease kept = entries.asMap().compute(number, (key, other) -> choose(other, opened, before));
    if (kept != opened) {
      opened.retire();
    }
    return opened;
  }

  /** The lease to keep: that of another thread, else this one if it is still to be used. */
  private @Nullable Lease choose(@Nullable Lease other, Lease opened, int before) {
    boolean isValid = invalidations.get(place(opened.number)) == before;
    return other == null && isValid ? opened : other;
  }

  /** Removes a file from the table, also one being opened now; its next use opens it again. */
  public void invalidate(long number) {
    invalidations.incrementAndGet(place(number));
    // The cache may call its listener later, on another thread.
    Lease former = entries.asMap().remove(number);
    if (former != null) {
      former.retire();
    }
  }

  @Override
  public void close() {
    entries.invalidateAll();
  }

  /** An open file shared by its users, each of which closes it once. */
  public final class Lease implements AutoCloseable {
    private final long number;
    private final H handle;
    private int users; // GUARDED_BY(this)
    private int uses; // GUARDED_BY(this)
    private boolean retired; // GUARDED_BY(this)

    private Lease(long number, H handle) {
      this.number = number;
      this.handle = handle;
    }

    public H handle() {
      return handle;
    }

    private synchronized boolean isToBeTouched() {
      return uses % USES_UNTIL_TOUCHED == 0;
    }

    private synchronized boolean enter() {
      if (retired) {
        return false;
      }
      users++;
      uses++;
      return true;
    }

    @Override
    public void close() {
      boolean last;
      synchronized (this) {
        users--;
        last = retired && users == 0;
      }
      if (last) {
        closeHandle();
      }
    }

    private void retire() {
      recent.compareAndSet(place(number), this, null);
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
