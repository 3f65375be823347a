package io.pmfs.tier;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Decompressed frames of which only a part was read: the next read of a large file is often near
 * the last. Bounded by its memory; what was used least recently goes first, but stays valid for
 * those who borrowed it. Safe for use by many threads.
 */
public final class FramePool {
  private final BufferPool memory;

  /** In order of last use. */
  private final LinkedHashMap<Key, BufferPool.Loan> frames = // GUARDED_BY(this)
      new LinkedHashMap<>(16, 0.75f, true);

  private record Key(Object content, int frame) {}

  /** Keeps frames in that memory, which is used for nothing else. */
  public FramePool(BufferPool memory) {
    this.memory = memory;
  }

  /**
   * A frame, borrowed until the caller releases it; null if it is not here.
   *
   * @param content what it is a frame of, told from others by identity
   */
  public synchronized BufferPool.@Nullable Loan get(Object content, int frame) {
    BufferPool.Loan loan = frames.get(new Key(content, frame));
    if (loan != null) {
      loan.retain();
    }
    return loan;
  }

  /** Memory for a frame, the caller's until released; null if all of it is borrowed. */
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
   * The same, but waits until memory is given back. Those who borrow wait for nothing else here.
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

  /** Keeps a frame for others; the caller's own hold on it stays. */
  public synchronized void put(Object content, int frame, BufferPool.Loan loan) {
    if (frames.putIfAbsent(new Key(content, frame), loan) == null) {
      loan.retain();
    }
  }

  /** Drops all frames of a content that has that many. */
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

  /** Whether nobody holds a frame but this. */
  public synchronized boolean isWhole() {
    frames.values().forEach(BufferPool.Loan::release);
    frames.clear();
    return memory.isWhole();
  }
}
