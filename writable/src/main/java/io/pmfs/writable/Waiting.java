package io.pmfs.writable;

import java.util.concurrent.atomic.AtomicLong;

/** How much the journal holds. Safe for use by many threads. */
final class Waiting {
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

  long files() {
    return Math.max(0, files.get());
  }

  long bytes() {
    return Math.max(0, bytes.get());
  }
}
