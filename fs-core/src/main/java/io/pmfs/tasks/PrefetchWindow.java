package io.pmfs.tasks;

import io.pmfs.fs.PmfsFileSystem;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Queue;
import java.util.function.LongSupplier;

/**
 * The part of an order that is kept in the tiers: files ahead of the reader's position, and some
 * behind it that may still be read. Follows the readers and decides which files leave.
 *
 * <p>The position is that of the last file in the order that was read. A file leaves when it was
 * read to its end, or when it is further behind the position than the <em>margin</em>, a quarter of
 * the window, which allows for loader workers that run ahead of each other. A file that the order
 * names again within the window stays.
 *
 * <p>The window holds at most {@value #MOST_FILES} files, and remembers {@value #REMEMBERED} that
 * left: late readers may fetch these again. It remembers as many files that a reader read ahead of
 * the window, and skips them when their turn comes.
 *
 * <p>Reads that the kernel answers from its cache are not visible here, so a window may wait in
 * vain while the reader is far ahead: {@link #isReaderElsewhere} detects when to search for the
 * files being read, and {@link #jump} moves the window there.
 */
final class PrefetchWindow implements PmfsFileSystem.ReadObserver {
  static final int MOST_FILES = 65_536;
  private static final int REMEMBERED = 16_384;

  /**
   * How many files are read outside the window, and none inside, before the reader is searched for.
   */
  static final int FIRST_SUSPICION = 16;

  private static final int LAST_SUSPICION = REMEMBERED / 2;
  private static final int MARGIN_DIVISOR = 4;
  private static final long PATIENCE_MS = 100;

  private final long windowBytes;
  private final Deque<Entry> entries = new ArrayDeque<>(); // GUARDED_BY(this)

  /** The pending entries of each file, in reading order; never empty. */
  private final Map<Long, Deque<Entry>> byNumber = new HashMap<>(); // GUARDED_BY(this)

  private final Queue<Long> leaving = new ArrayDeque<>(); // GUARDED_BY(this)
  private final Map<Long, Reading> left = bounded(); // GUARDED_BY(this)
  private final Map<Long, Reading> ahead = bounded(); // GUARDED_BY(this)
  private final Map<Long, Integer> beingRead = new HashMap<>(); // GUARDED_BY(this)
  private long usedBytes; // GUARDED_BY(this)
  private long enteredBytes; // GUARDED_BY(this)
  private long position; // GUARDED_BY(this); the sum of the sizes of all files before it
  private long positionIndex; // GUARDED_BY(this)
  private long nextIndex; // GUARDED_BY(this)
  private int readElsewhere; // GUARDED_BY(this); files, since the last read inside the window
  private int suspicion = FIRST_SUSPICION; // GUARDED_BY(this)
  private long movedAt; // GUARDED_BY(this)
  private final LongSupplier nanoTime;

  /**
   * An empty window.
   *
   * @param from the index of the first file that will enter
   * @param nanoTime a monotonic clock
   */
  PrefetchWindow(long windowBytes, long from, LongSupplier nanoTime) {
    this.windowBytes = windowBytes;
    this.nanoTime = nanoTime;
    this.nextIndex = from;
    this.positionIndex = from;
    this.movedAt = nanoTime.getAsLong();
  }

  private static Map<Long, Reading> bounded() {
    return new LinkedHashMap<>() {
      @Override
      protected boolean removeEldestEntry(Map.Entry<Long, Reading> eldest) {
        return size() > REMEMBERED;
      }
    };
  }

  private static final class Reading {
    private long bytes;
    private boolean end;
    private boolean opened;

    void add(long offset, int count, long size) {
      bytes += count;
      end |= offset + count >= size;
    }

    boolean isWhole(long size) {
      return end && bytes >= size;
    }
  }

  /** A place in the order. */
  private static final class Entry {
    private final long index;
    private final long number;
    private final long size;
    private final long start;
    private final Reading reading;
    private boolean opened;
    private boolean over;

    Entry(long index, long number, long size, long start, Reading reading) {
      this.index = index;
      this.number = number;
      this.size = size;
      this.start = start;
      this.reading = reading;
    }
  }

  /**
   * Adds the next file of the order; false if it must wait until others leave. A file larger than
   * the window enters an empty window.
   */
  synchronized boolean enter(long index, long number, long size) {
    boolean isIn = byNumber.containsKey(number);
    long more = isIn ? 0 : size;
    // The copies of files that left may not be dropped yet.
    if (!leaving.isEmpty()
        || entries.size() >= MOST_FILES
        || (usedBytes > 0 && usedBytes + more > windowBytes)) {
      return false;
    }
    usedBytes += more;
    left.remove(number);
    Reading before = ahead.remove(number);
    Entry entry =
        new Entry(index, number, size, enteredBytes, before == null ? new Reading() : before);
    enteredBytes += size;
    nextIndex = index + 1;
    movedAt = nanoTime.getAsLong();
    entries.add(entry);
    byNumber.computeIfAbsent(number, n -> new ArrayDeque<>()).add(entry);
    if (before != null) {
      entry.opened = before.opened;
      moveTo(entry);
      endIfRead(entry);
    }
    return true;
  }

  /** Skips a path of the order that names an empty file, or no file. */
  synchronized void skip(long index) {
    nextIndex = Math.max(nextIndex, index + 1);
  }

  @Override
  public synchronized void began(long number) {
    beingRead.merge(number, 1, Integer::sum);
  }

  @Override
  public synchronized void ended(long number) {
    beingRead.computeIfPresent(number, (n, readers) -> readers == 1 ? null : readers - 1);
  }

  /** Whether a reader, possibly the last to need the file, is reading it now. */
  synchronized boolean isBeingRead(long number) {
    return beingRead.containsKey(number);
  }

  @Override
  public synchronized void delivered(long number, long size, long offset, int count) {
    Deque<Entry> pending = byNumber.get(number);
    if (pending != null) {
      Entry entry = pending.element();
      entry.reading.add(offset, count, size);
      moveTo(entry);
      endIfRead(entry);
      return;
    }
    Reading late = left.get(number);
    if (late == null) {
      readingElsewhere(number).add(offset, count, size);
      return;
    }
    late.add(offset, count, size);
    if (late.end && leaving.size() < MOST_FILES) {
      late.end = false;
      leaving.add(number);
      notifyAll();
    }
  }

  private synchronized Reading readingElsewhere(long number) {
    Reading known = ahead.get(number);
    if (known == null) {
      known = new Reading();
      ahead.put(number, known);
      readElsewhere++;
      notifyAll();
    }
    return known;
  }

  @Override
  public synchronized void opened(long number) {
    Deque<Entry> pending = byNumber.get(number);
    if (pending == null && !left.containsKey(number)) {
      readingElsewhere(number).opened = true;
    } else if (pending != null) {
      // The first that is not opened yet: the kernel does not report reads of an opened file.
      Entry entry = pending.getLast();
      for (Entry each : pending) {
        if (!each.opened) {
          entry = each;
          break;
        }
      }
      entry.opened = true;
      moveTo(entry);
    }
  }

  private synchronized void moveTo(Entry entry) {
    movedAt = nanoTime.getAsLong();
    readElsewhere = 0;
    suspicion = FIRST_SUSPICION;
    if (entry.index > positionIndex) {
      positionIndex = entry.index;
      position = entry.start;
    }
    // end() removes the first entry, so each round removes one.
    Entry first;
    while ((first = entries.peek()) != null && isPast(first)) {
      end(first);
    }
  }

  private synchronized boolean isPast(Entry entry) {
    return position - entry.start > windowBytes / MARGIN_DIVISOR
        || positionIndex - entry.index > MOST_FILES / MARGIN_DIVISOR;
  }

  private void endIfRead(Entry entry) {
    if (entry.reading.isWhole(entry.size)) {
      end(entry);
    }
  }

  private synchronized void end(Entry entry) {
    Deque<Entry> pending = byNumber.get(entry.number);
    if (entry.over || pending == null) {
      return;
    }
    entry.over = true;
    pending.remove(entry);
    if (pending.isEmpty()) {
      byNumber.remove(entry.number);
      left.put(entry.number, new Reading());
      leaving.add(entry.number);
    }
    while (!entries.isEmpty() && entries.element().over) {
      entries.remove();
    }
    usedBytes -= byNumber.containsKey(entry.number) ? 0 : entry.size;
    notifyAll();
  }

  /**
   * Whether the reader is probably further on, because enough other files were read since the last
   * read inside the window.
   *
   * @param rest how many paths of the order have not entered
   */
  synchronized boolean isReaderElsewhere(long rest) {
    return rest > 0 && readElsewhere >= Math.min(suspicion, rest);
  }

  /** How many files being read must be close together to indicate the reader's position. */
  synchronized int evidence(long rest) {
    return (int) Math.max(1, Math.min(suspicion, rest) / 2);
  }

  /** Whether a file was read that is neither in the window nor behind it. */
  synchronized boolean isReadElsewhere(long number) {
    return ahead.containsKey(number);
  }

  /**
   * Called when the reader was not found: the files that were read are not in the rest of the
   * order.
   */
  synchronized void notFound() {
    readElsewhere = 0;
    suspicion = Math.min(LAST_SUSPICION, 2 * suspicion);
  }

  /** Empties the window and moves it to the index where the reader was found. */
  synchronized void jump(long index) {
    while (!entries.isEmpty()) {
      end(entries.element());
    }
    nextIndex = index;
    movedAt = nanoTime.getAsLong();
  }

  /** Removes a file that no longer exists, so that the window does not wait for it. */
  synchronized void gone(long number) {
    for (Deque<Entry> pending; (pending = byNumber.get(number)) != null; ) {
      end(pending.element());
    }
  }

  /** The index before which all files have left. */
  synchronized long firstIndex() {
    return entries.isEmpty() ? nextIndex : entries.element().index;
  }

  /** The time since a file of the window was last read, or the last file entered. */
  synchronized long restNanos() {
    return nanoTime.getAsLong() - movedAt;
  }

  /** The next file to drop; 0 if there is none. */
  synchronized long takeLeaving() {
    Long number;
    while ((number = leaving.poll()) != null) {
      if (!byNumber.containsKey(number)) {
        return number;
      }
    }
    return 0;
  }

  /** Whether a file is in the window, and therefore should have a copy. */
  synchronized boolean contains(long number) {
    return byNumber.containsKey(number);
  }

  /** The sum of the sizes of the files in the window. */
  synchronized long usedBytes() {
    return usedBytes;
  }

  /**
   * Whether the last file that entered was read, or opened by the kernel; true for an empty window.
   */
  synchronized boolean isRead() {
    Entry last = entries.peekLast();
    return last == null || last.over || last.opened;
  }

  /** Waits briefly for a change. */
  @SuppressWarnings("WaitNotInLoop") // The caller checks and calls again.
  synchronized void awaitChange() throws InterruptedException {
    if (leaving.isEmpty()) {
      wait(PATIENCE_MS);
    }
  }
}
