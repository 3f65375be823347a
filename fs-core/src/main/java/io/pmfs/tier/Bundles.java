package io.pmfs.tier;

import io.pmfs.memory.ReadResult;
import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
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
 * Stores small copies one after the other in larger files or allocations, so that they need no file
 * each and their sizes are not rounded up. A bundle is appended to but never changed; it is removed
 * with its last wanted copy.
 *
 * <p>A bundle's file may be linked in the tiers of several processes. Only the one that made it
 * appends to it, and only until it ends: a bundle with several links is not appended to again.
 * Thread-safe.
 */
final class Bundles implements AutoCloseable {
  /** A bundle is worth emptying when less than this share is wanted: 3/4. */
  private static final int WANTED_QUARTERS = 3;

  private final BundleStore store;
  private final long fullBytes;
  private final Room room;

  private final TreeMap<Long, Bundle> bundles = new TreeMap<>(); // GUARDED_BY(this)
  private @Nullable Bundle newest; // GUARDED_BY(this); new copies go here

  /** Bundles of earlier sessions whose wanted bytes are not known yet. */
  private final Set<Long> uncounted = new HashSet<>(); // GUARDED_BY(this)

  /**
   * Finds existing bundles. None of them is appended to or removed before {@link #count}.
   *
   * @param store used by this object only
   * @param fullBytes the size from which on a bundle is not appended to
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

  synchronized boolean isEmpty() {
    return bundles.isEmpty();
  }

  /** Sets how many bytes of each existing bundle are wanted, and removes bundles without any. */
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
    if (newest == null) {
      newest =
          bundles.descendingMap().values().stream()
              .filter(bundle -> !bundle.stored.isShared())
              .findFirst()
              .orElse(null);
    }
    uncounted.clear();
  }

  /** Whether the bundle of a copy exists and reaches to the copy's end. */
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
   * @param reserved bytes of reserved room, at least what the bundle may grow by; taken over,
   *     unless this throws or returns null
   * @return the copy's place; null if there is no room for another bundle
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
        // The caller keeps the reservation, even if part of the copy is on the disk.
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

  /**
   * Adds a copy in a bundle of another process, which may be appending to it.
   *
   * @param file of the bundle
   * @param key its device and inode number
   * @return the copy's place here; null if there is no room or its bundle is shorter
   * @throws IOException if the bundle cannot be linked
   */
  synchronized @Nullable Extent link(Path file, Object key, Extent lent) throws IOException {
    Bundle bundle = linked(key);
    long before = bundle == null ? 0 : bundle.charge();
    StoredBundle stored = bundle == null ? store.link(file) : bundle.stored;
    if (stored == null) {
      return null;
    }
    boolean fits = false;
    try {
      long end = bundle != null && lent.end() <= bundle.end ? bundle.end : stored.found();
      fits = lent.end() <= end && room.take(stored.charge(end) - before);
      if (!fits) {
        return null;
      }
      if (bundle == null) {
        bundle = new Bundle(stored);
        bundles.put(bundle.number, bundle);
      }
      bundle.end = end;
      bundle.written = end;
      bundle.wanted += lent.size();
      return new Extent(bundle.number, lent.offset(), lent.size());
    } finally {
      if (!fits && bundle == null) {
        stored.delete();
      }
    }
  }

  /** This tier's link to the file with that key; null if it has none. */
  private @Nullable Bundle linked(Object key) { // GUARDED_BY(this)
    for (Bundle bundle : bundles.values()) {
      if (bundle.stored.isShared() && bundle.stored.isFile(key)) {
        return bundle;
      }
    }
    return null;
  }

  /** Opens a copy; null if its bundle does not exist. */
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

  /** Marks a copy as no longer wanted; false if its bundle does not exist. */
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
   * Bundles that are worth emptying by moving their wanted copies, sparsest first; together these
   * copies fill no more than one bundle.
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
    // Readers close their own copies; the last one closes its bundle.
    for (Bundle bundle : bundles.values()) {
      bundle.retire();
    }
    bundles.clear();
    newest = null;
  }

  /** An open copy. */
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

  /** A bundle and how much of it is wanted. */
  private static final class Bundle {
    final StoredBundle stored;
    final long number;

    // GUARDED_BY(Bundles.this)
    long end;

    /** The end of what has been written completely; a shorter file has lost content. */
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

    /** Closes the bundle when its last user has left. */
    void retire() {
      retired = true;
      if (isDone()) {
        stored.close();
      }
    }
  }
}
