package io.pmfs.writable.journal;

import java.util.concurrent.atomic.AtomicLong;

/** How much content the journal holds. Safe for use by many threads. */
public final class Waiting {
  private final AtomicLong files = new AtomicLong();
  private final AtomicLong bytes = new AtomicLong();

  /** A content of so many bytes was announced. */
  void add(long size) {
    files.incrementAndGet();
    bytes.addAndGet(size);
  }

  /** The source has it, or does not need it any more. */
  void remove(long size) {
    files.decrementAndGet();
    bytes.addAndGet(-size);
  }

  public long files() {
    return Math.max(0, files.get());
  }

  public long bytes() {
    return Math.max(0, bytes.get());
  }
}
