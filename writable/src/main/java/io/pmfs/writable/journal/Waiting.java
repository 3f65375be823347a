package io.pmfs.writable.journal;

import java.util.concurrent.atomic.AtomicLong;

/** The amount of content in the journal. Thread-safe. */
public final class Waiting {
  private final AtomicLong files = new AtomicLong();
  private final AtomicLong bytes = new AtomicLong();

  void add(long size) {
    files.incrementAndGet();
    bytes.addAndGet(size);
  }

  /** Removes a content that the source has or no longer needs. */
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
