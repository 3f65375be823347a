package io.pmfs.tier;

import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Small copies one behind the other in larger files or allocations, so that none costs one of its
 * own and none is rounded up. A bundle is appended to and never changed; it goes when none of its
 * copies is wanted any more. Safe for use by many threads.
 */
final class Bundles implements AutoCloseable {
  /** Bundles of which less than this share is wanted are worth being emptied: 3/4. */
  private static final int WANTED_QUARTERS = 3;

  private final BundleStore store;
  private final long fullBytes;
  private final Room room;

  private final TreeMap<Long, Bundle> bundles = new TreeMap<>(); // GUARDED_BY(this)
  private @Nullable Bundle newest; // GUARDED_BY(this); what is appended to

  /** Of earlier sessions, of which it is not known what is wanted. */
  private final Set<Long> uncounted = new HashSet<>(); // GUARDED_BY(this)

  /**
   * Finds what is there. Of these bundles none is appended to or goes before {@link #count}.
   *
   * @param store not used by anybody else
   * @param fullBytes a bundle of so many bytes or more is not appended to
   */
  Bundles(BundleStore store, long fullBytes, Room room) throws IOException {
    this.store = store;
    this.fullBytes = fullBytes;
    this.room = room;
    for (StoredBundle stored : store.list()) {
      Bundle bundle = new Bundle(stored);
      bundles.put(bundle.number, bundle);
      uncounted.add(bundle.number);
      room.found(bundle.charge());
    }
  }

  /** Whether there are none. */
  synchronized boolean isEmpty() {
    return bundles.isEmpty();
  }

  /**
   * Takes over how many bytes are wanted of each bundle that was found, and removes those of which
   * none are.
   */
  synchronized void count(Map<Long, Long> wantedBytes) {
    for (long number : uncounted) {
      Bundle bundle = bundles.get(number);
      if (bundle == null) {
        continue;
      }
      bundle.wanted = wantedBytes.getOrDefault(number, 0L);
      if (bundle.wanted == 0) {
        discard(bundle);
      }
    }
    if (newest == null && !bundles.isEmpty()) {
      newest = bundles.lastEntry().getValue();
    }
    uncounted.clear();
  }

  /** Whether the bundle of a copy is where it was, and reaches to the copy's end. */
  boolean has(Extent extent) throws IOException {
    Bundle bundle;
    synchronized (this) {
      bundle = bundles.get(extent.bundle());
      if (bundle == null || extent.end() > bundle.end) {
        return false;
      }
    }
    return bundle.stored.found() >= extent.end();
  }

  /**
   * Appends a whole copy.
   *
   * @param reserved bytes of room, at least what its bundle may then take more; taken over, unless
   *     this throws or returns null
   * @return where it is; null if there is no room for another bundle
   */
  @Nullable Extent append(ByteBuffer copy, long reserved) throws IOException {
    Bundle bundle;
    Extent extent;
    synchronized (this) {
      bundle = appendable(copy.remaining());
      if (bundle == null) {
        return null;
      }
      extent = new Extent(bundle.number, bundle.end, copy.remaining());
      long before = bundle.charge();
      bundle.end = extent.end();
      long taken = bundle.charge() - before;
      bundle.wanted += extent.size();
      bundle.users++;
      room.settle(taken);
      room.release(reserved - taken);
    }
    boolean written = false;
    try {
      bundle.stored.write(extent.offset(), copy);
      synchronized (this) {
        bundle.written = Math.max(bundle.written, extent.end());
      }
      written = true;
      return extent;
    } finally {
      leave(bundle);
      if (!written) {
        // The reservation is the caller's again, whatever of it reached the disk.
        drop(extent);
        room.found(reserved);
        room.settle(-reserved);
      }
    }
  }

  private @Nullable Bundle appendable(int size) throws IOException { // GUARDED_BY(this)
    Bundle current = newest;
    if (current != null
        && current.end < fullBytes
        && current.fits(size)
        && current.stored.found() >= current.written) {
      return current;
    }
    StoredBundle made = store.create();
    if (made == null) {
      return null;
    }
    current = new Bundle(made);
    bundles.put(current.number, current);
    newest = current;
    return current;
  }

  /** Opens a copy; null if its bundle is not there. */
  @Nullable CopyReader open(Extent extent) throws IOException {
    Bundle bundle;
    long available;
    synchronized (this) {
      bundle = bundles.get(extent.bundle());
      if (bundle == null) {
        return null;
      }
      bundle.users++;
      available = Math.max(0, Math.min(extent.size(), bundle.end - extent.offset()));
    }
    boolean opened = false;
    try {
      CopyReader reader = new Reader(bundle, bundle.stored.open(), extent.offset(), available);
      opened = true;
      return reader;
    } catch (NoSuchFileException e) {
      return null;
    } finally {
      if (!opened) {
        leave(bundle);
      }
    }
  }

  /** A copy is not wanted any more; says whether its bundle was there. */
  synchronized boolean drop(Extent extent) {
    Bundle bundle = bundles.get(extent.bundle());
    if (bundle == null || uncounted.contains(bundle.number)) {
      return bundle != null;
    }
    bundle.wanted = Math.max(0, bundle.wanted - extent.size());
    if (bundle.wanted == 0) {
      discard(bundle);
    }
    return true;
  }

  private void discard(Bundle bundle) { // GUARDED_BY(this)
    bundles.remove(bundle.number);
    if (newest == bundle) {
      newest = null;
    }
    room.free(bundle.charge());
    bundle.delete();
  }

  /**
   * Bundles that are worth being emptied by moving what is wanted of them, sparsest first; that is
   * no more than fills one.
   */
  synchronized Set<Long> sparse() {
    List<Bundle> sparse = new ArrayList<>(uncounted.isEmpty() ? bundles.values() : List.of());
    sparse.removeIf(
        bundle ->
            (bundle == newest && bundle.end < fullBytes)
                || bundle.wanted >= bundle.end / 4 * WANTED_QUARTERS);
    sparse.sort(Comparator.comparingLong(bundle -> bundle.wanted));
    long moved = 0;
    int count = 0;
    while (count < sparse.size() && (count == 0 || moved < fullBytes)) {
      moved += sparse.get(count++).wanted;
    }
    return sparse.subList(0, count).stream()
        .map(bundle -> bundle.number)
        .collect(Collectors.toUnmodifiableSet());
  }

  private void leave(Bundle bundle) {
    synchronized (this) {
      bundle.users--;
      if (!bundle.isDone()) {
        return;
      }
    }
    bundle.stored.close();
  }

  @Override
  public synchronized void close() {
    // Readers close theirs, the last of each the bundle.
    for (Bundle bundle : bundles.values()) {
      bundle.retire();
    }
    bundles.clear();
    newest = null;
  }

  /** A copy, for as long as somebody has it open. */
  private final class Reader implements CopyReader {
    private final Bundle bundle;
    private final StoredBundle.Ranges ranges;
    private final long start;
    private final long size;
    private final AtomicBoolean closed = new AtomicBoolean();

    Reader(Bundle bundle, StoredBundle.Ranges ranges, long start, long size) {
      this.bundle = bundle;
      this.ranges = ranges;
      this.start = start;
      this.size = size;
    }

    @Override
    public long size() {
      return size;
    }

    @Override
    public ReadResult read(long offset, int count) {
      return ranges.range(start + offset, count);
    }

    @Override
    public void close() {
      if (closed.compareAndSet(false, true)) {
        leave(bundle);
      }
    }
  }

  /** A bundle with what is wanted of it. */
  private static final class Bundle {
    final StoredBundle stored;
    final long number;

    // GUARDED_BY(Bundles.this)
    long end;

    /** Without what is being written; a file that is shorter lost what was in it. */
    long written;

    long wanted;
    int users;
    boolean retired;

    Bundle(StoredBundle stored) {
      this.stored = stored;
      this.number = stored.number();
      this.end = stored.size();
      this.written = stored.size();
    }

    long charge() {
      return stored.charge(end);
    }

    boolean fits(int size) {
      return size <= stored.limit() - end;
    }

    boolean isDone() {
      return retired && users == 0;
    }

    void delete() {
      stored.delete();
      retire();
    }

    /** It is closed when everybody has left it. */
    void retire() {
      retired = true;
      if (isDone()) {
        stored.close();
      }
    }
  }
}
