package io.pmfs.packing;

import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** How far a pack or its check is, and the wish that it ends. Safe for use by many threads. */
public final class PackProgress {
  /** What is being done. */
  public enum Phase {
    /** The source's names and attributes are read; the totals grow. */
    LISTING("listing"),
    /** What an interrupted run left is compared with its checksums; its bytes count. */
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

  /** Files done with. */
  public long files() {
    return files.get();
  }

  /** Bytes done with. */
  public long bytes() {
    return bytes.get();
  }

  /** Asks for the end: what runs throws CancellationException soon. */
  public void cancel() {
    cancelled = true;
  }

  public boolean isCancelled() {
    return cancelled;
  }

  void checkNotCancelled() {
    if (cancelled) {
      throw new CancellationException("interrupted");
    }
  }

  /** Begins a phase with known totals. */
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

  /** The cause of a failed task, which nothing declares. */
  static RuntimeException unchecked(@Nullable Throwable cause) {
    if (cause instanceof Error error) {
      throw error;
    }
    return cause instanceof RuntimeException e ? e : new IllegalStateException(cause);
  }
}
