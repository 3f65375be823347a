package io.pmfs.memory;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Decompressed frames that were read only in part: the next read of a large file is often near the
 * last. Bounded by its memory; the least recently used frame is dropped first, but stays valid for
 * its borrowers. Thread-safe.
 */
public final class FramePool {
  private final BufferPool memory;

  /** In order of last use. */
  private final LinkedHashMap<Key, BufferPool.Loan> frames = // GUARDED_BY(this)
      new LinkedHashMap<>(16, 0.75f, true);

  private record Key(Object content, int frame) {}

  /** Keeps frames in this memory, which must not be used for anything else. */
  public FramePool(BufferPool memory) {
    this.memory = memory;
  }

  /**
   * A frame, borrowed until the caller releases it; null if it is not in the pool.
   *
   * @param content the content to which the frame belongs, compared by identity
   */
  public synchronized BufferPool.@Nullable Loan get(Object content, int frame) {
    BufferPool.Loan loan = frames.get(new Key(content, frame));
    if (loan != null) {
      loan.retain();
    }
    return loan;
  }

  /** Memory for a frame, held by the caller until released; null if all is borrowed. */
  public synchronized BufferPool.@Nullable Loan lend(int size) {
    BufferPool.Loan loan = memory.tryAcquire(size);
    Iterator<Map.Entry<Key, BufferPool.Loan>> oldest = frames.entrySet().iterator();
    while (loan == null && oldest.hasNext()) {
      oldest.next().getValue().release();
      oldest.remove();
      loan = memory.tryAcquire(size);
    }
    return loan;
  }

  /**
   * Like {@link #lend}, but waits until memory is released. Borrowers must wait for nothing else in
   * this pool.
   */
  public BufferPool.Loan take(int size) {
    memory.checkLendable(size);
    BufferPool.Loan loan = lend(size);
    while (loan == null) {
      memory.awaitRelease();
      loan = lend(size);
    }
    return loan;
  }

  /** Keeps a frame for others; the caller must still release its own loan. */
  public synchronized void put(Object content, int frame, BufferPool.Loan loan) {
    if (frames.putIfAbsent(new Key(content, frame), loan) == null) {
      loan.retain();
    }
  }

  /** Drops all frames of a content with {@code frameCount} frames. */
  public synchronized void remove(Object content, int frameCount) {
    if (frameCount < frames.size()) {
      for (int frame = 0; frame < frameCount; frame++) {
        BufferPool.Loan loan = frames.remove(new Key(content, frame));
        if (loan != null) {
          loan.release();
        }
      }
      return;
    }
    frames
        .entrySet()
        .removeIf(
            entry -> {
              boolean its = entry.getKey().content() == content;
              if (its) {
                entry.getValue().release();
              }
              return its;
            });
  }

  /** Drops all frames; true if none is still borrowed. */
  public synchronized boolean isWhole() {
    frames.values().forEach(BufferPool.Loan::release);
    frames.clear();
    return memory.isWhole();
  }
}
