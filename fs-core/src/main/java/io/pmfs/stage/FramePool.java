package io.pmfs.stage;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Decompressed frames of which only a part was read: the next read of a large file is often near
 * the last. Bounded by its memory; what was used least recently goes first, but stays valid for
 * those who borrowed it. Safe for use by many threads.
 */
final class FramePool {
  private final BufferPool memory;

  /** In order of last use. */
  private final LinkedHashMap<Key, BufferPool.Loan> frames = // GUARDED_BY(this)
      new LinkedHashMap<>(16, 0.75f, true);

  private record Key(FramedContent content, int frame) {}

  FramePool(int bytes) {
    memory = new BufferPool(bytes);
  }

  /** A frame, borrowed until the caller releases it; null if it is not here. */
  synchronized BufferPool.@Nullable Loan get(FramedContent content, int frame) {
    BufferPool.Loan loan = frames.get(new Key(content, frame));
    if (loan != null) {
      loan.retain();
    }
    return loan;
  }

  /** Memory for a frame, the caller's until released; null if all of it is borrowed. */
  synchronized BufferPool.@Nullable Loan lend(int size) {
    BufferPool.Loan loan = memory.tryAcquire(size);
    Iterator<Map.Entry<Key, BufferPool.Loan>> oldest = frames.entrySet().iterator();
    while (loan == null && oldest.hasNext()) {
      oldest.next().getValue().release();
      oldest.remove();
      loan = memory.tryAcquire(size);
    }
    return loan;
  }

  /** Keeps a frame for others; the caller's own hold on it stays. */
  synchronized void put(FramedContent content, int frame, BufferPool.Loan loan) {
    if (frames.putIfAbsent(new Key(content, frame), loan) == null) {
      loan.retain();
    }
  }

  /** Drops all frames of a content that has so many. */
  synchronized void remove(FramedContent content, int frameCount) {
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
  synchronized boolean isWhole() {
    frames.values().forEach(BufferPool.Loan::release);
    frames.clear();
    return memory.isWhole();
  }
}
