package io.pmfs.fs;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Queue;
import java.util.function.LongSupplier;

/**
 * The part of an order that is kept in the tiers: files ahead of the reader's position, and some
 * behind it that may still be read. It follows what readers do, and says which files leave.
 *
 * <p>The position is that of the last file in the order that a read came for. A file leaves when it
 * was read whole, its end included, or when it is further behind the position than the
 * <em>margin</em>, a quarter of the window: loader workers run that much ahead of one another. A
 * file that the order names again within the window stays for that.
 *
 * <p>It holds {@value #MOST_FILES} files at most, and remembers {@value #REMEMBERED} that left:
 * late readers may fetch these again. Of files ahead of it that are read, for the reader is faster,
 * it remembers as many too, and lets them pass when their turn comes.
 *
 * <p>What the kernel answers from its cache is read without a word to us. So a window may wait for
 * reads that never come, while the reader is far ahead of it: {@link #isReaderElsewhere} says when
 * it is time to look for the files that are read, and {@link #jump} goes there.
 */
final class PrefetchWindow implements PmfsFileSystem.ReadObserver {
  static final int MOST_FILES = 65_536;
  private static final int REMEMBERED = 16_384;

  /** So many other files are read, and none in the window, before the reader is looked for. */
  static final int FIRST_SUSPICION = 16;

  private static final int LAST_SUSPICION = REMEMBERED / 2;
  private static final int MARGIN_DIVISOR = 4;
  private static final long PATIENCE_MS = 100;

  private final long windowBytes;
  private final Deque<Entry> entries = new ArrayDeque<>(); // GUARDED_BY(this)

  /** Those of a file that are not over, in the order's order; never empty. */
  private final Map<Long, Deque<Entry>> byNumber = new HashMap<>(); // GUARDED_BY(this)

  private final Queue<Long> leaving = new ArrayDeque<>(); // GUARDED_BY(this)
  private final Map<Long, Reading> left = bounded(); // GUARDED_BY(this)
  private final Map<Long, Reading> ahead = bounded(); // GUARDED_BY(this)
  private final Map<Long, Integer> beingRead = new HashMap<>(); // GUARDED_BY(this)
  private long usedBytes; // GUARDED_BY(this)
  private long enteredBytes; // GUARDED_BY(this)
  private long position; // GUARDED_BY(this); in bytes of all files before it
  private long positionIndex; // GUARDED_BY(this)
  private long nextIndex; // GUARDED_BY(this)
  private int readElsewhere; // GUARDED_BY(this); files, since one in the window was read
  private int suspicion = FIRST_SUSPICION; // GUARDED_BY(this)
  private long movedAt; // GUARDED_BY(this)
  private final LongSupplier nanoTime;

  /**
   * An empty window.
   *
   * @param from the index of the first file that will enter
   * @param nanoTime a clock that only goes forward
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

  /** How much of a file was read. */
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
   * Takes the next file of the order in; false if it has to wait until others left. A file that is
   * larger than the window gets in when it is alone.
   */
  synchronized boolean enter(long index, long number, long size) {
    boolean isIn = byNumber.containsKey(number);
    long more = isIn ? 0 : size;
    // What left may still be there.
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

  /** A path of the order that is not a file, or an empty one, is passed over. */
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

  /** Whether somebody reads a file at this moment, and may be the last who needs it. */
  synchronized boolean isBeingRead(long number) {
    return beingRead.containsKey(number);
  }

  @Override
  public synchronized void read(long number, long size, long offset, int count) {
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
      // The one after those that were opened already: nobody says when such a file was read.
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
    // What is over is not the first any more, so each round takes one away.
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
   * Whether so many other files were read since one in the window was that the reader is likely to
   * be further on.
   *
   * @param rest how many paths of the order have not entered
   */
  synchronized boolean isReaderElsewhere(long rest) {
    return rest > 0 && readElsewhere >= Math.min(suspicion, rest);
  }

  /** How many files that are read have to be close to each other for the reader to be there. */
  synchronized int evidence(long rest) {
    return (int) Math.max(1, Math.min(suspicion, rest) / 2);
  }

  /** Whether a file was read that is neither in the window nor behind it. */
  synchronized boolean isReadElsewhere(long number) {
    return ahead.containsKey(number);
  }

  /** The reader was not found: those files are not in the order any more. */
  synchronized void notFound() {
    readElsewhere = 0;
    suspicion = Math.min(LAST_SUSPICION, 2 * suspicion);
  }

  /** All that is in it leaves: the reader was found at an index further on. */
  synchronized void jump(long index) {
    while (!entries.isEmpty()) {
      end(entries.element());
    }
    nextIndex = index;
    movedAt = nanoTime.getAsLong();
  }

  /** A file that is gone does not hold the window up. */
  synchronized void gone(long number) {
    for (Deque<Entry> pending; (pending = byNumber.get(number)) != null; ) {
      end(pending.element());
    }
  }

  /** All before this index have left. */
  synchronized long firstIndex() {
    return entries.isEmpty() ? nextIndex : entries.element().index;
  }

  /** For how long no file in it was read, and none entered. */
  synchronized long restNanos() {
    return nanoTime.getAsLong() - movedAt;
  }

  /** A file that is to be dropped; 0 if there is none. */
  synchronized long takeLeaving() {
    Long number;
    while ((number = leaving.poll()) != null) {
      if (!byNumber.containsKey(number)) {
        return number;
      }
    }
    return 0;
  }

  /** Whether a file is to have a copy. */
  synchronized boolean contains(long number) {
    return byNumber.containsKey(number);
  }

  /** Bytes of the files that are in it. */
  synchronized long usedBytes() {
    return usedBytes;
  }

  /** Whether the last that entered was read, or opened by the kernel; so it is when none is in. */
  synchronized boolean isRead() {
    Entry last = entries.peekLast();
    return last == null || last.over || last.opened;
  }

  /** Waits for something to change, for a short time. */
  @SuppressWarnings("WaitNotInLoop") // The caller looks again and comes back.
  synchronized void awaitChange() throws InterruptedException {
    if (leaving.isEmpty()) {
      wait(PATIENCE_MS);
    }
  }
}
