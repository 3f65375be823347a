package io.pmfs.pack;

import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicLong;

/** The progress of a pack or of its check, and its cancellation. Thread-safe. */
public final class PackProgress {
  public enum Phase {
    /** Reading names and attributes of the source; the totals grow. */
    LISTING("listing"),
    /** Comparing the shards of an interrupted run with their checksums; their bytes count. */
    CHECKING("checking"),
    PACKING("packing"),
    INDEXING("indexing");

    private final String word;

    Phase(String word) {
      this.word = word;
    }

    public String word() {
      return word;
    }
  }

  private volatile Phase phase = Phase.LISTING;
  private volatile boolean cancelled;
  private final AtomicLong totalFiles = new AtomicLong();
  private final AtomicLong totalBytes = new AtomicLong();
  private final AtomicLong files = new AtomicLong();
  private final AtomicLong bytes = new AtomicLong();

  public Phase phase() {
    return phase;
  }

  public long totalFiles() {
    return totalFiles.get();
  }

  public long totalBytes() {
    return totalBytes.get();
  }

  public long files() {
    return files.get();
  }

  public long bytes() {
    return bytes.get();
  }

  /** Requests cancellation: running calls soon throw CancellationException. */
  public void cancel() {
    cancelled = true;
  }

  void checkNotCancelled() {
    if (cancelled) {
      throw new CancellationException("interrupted");
    }
  }

  /** Starts a phase with known totals. */
  void enter(Phase next, long newTotalFiles, long newTotalBytes) {
    phase = next;
    files.set(0);
    bytes.set(0);
    totalFiles.set(newTotalFiles);
    totalBytes.set(newTotalBytes);
  }

  void found(long size) {
    totalFiles.incrementAndGet();
    totalBytes.addAndGet(size);
  }

  void did(long moreFiles, long moreBytes) {
    files.addAndGet(moreFiles);
    bytes.addAndGet(moreBytes);
  }

  void reached(long allFiles, long allBytes) {
    files.set(allFiles);
    bytes.set(allBytes);
  }
}
