package io.pmfs.stage;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.RecordedCopies;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.stage.copies.LentCopy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/** Finds whole copies that other mounts of the dataset on this machine have made. Thread-safe. */
public final class Lenders implements AutoCloseable {
  /** New records of other mounts are found after at most this time. */
  private static final Duration FRESH = Duration.ofSeconds(10);

  /** Rereading the records takes at most one part in this many of the time. */
  private static final int SHARE_OF_TIME = 20;

  /** Each lender takes up to 16 MiB for cached records. */
  private static final int MOST_LENDERS = 4;

  private final String identity;
  private final Supplier<List<Lender>> lenders;
  private final LongSupplier nanoTime;
  private final ReentrantLock reading = new ReentrantLock();
  private List<Open> open = List.of(); // GUARDED_BY(this)
  private boolean closed; // GUARDED_BY(this)
  private long next; // GUARDED_BY(reading)

  /**
   * Another mount's copies.
   *
   * @param state the directory of their records
   * @param tiers the directories of copies by the tier names in the records
   */
  public record Lender(Path state, Map<String, Path> tiers) {
    public Lender {
      tiers = Map.copyOf(tiers);
    }
  }

  private record Open(Lender lender, RecordedCopies records) {}

  /**
   * Looks for copies of a dataset.
   *
   * @param identity that of the dataset
   * @param lenders finds the current sets of copies
   */
  public Lenders(String identity, Supplier<List<Lender>> lenders, LongSupplier nanoTime) {
    this.identity = identity;
    this.lenders = lenders;
    this.nanoTime = nanoTime;
    this.next = nanoTime.getAsLong();
  }

  /** No lenders. */
  public static Lenders none() {
    return new Lenders("", List::of, System::nanoTime);
  }

  /** Rereads the records if they may be outdated, in one thread; the others do not wait for it. */
  private void refresh() {
    if (!reading.tryLock()) {
      return;
    }
    try {
      long begin = nanoTime.getAsLong();
      if (begin - next < 0) {
        return;
      }
      List<Open> found = new ArrayList<>();
      for (Lender lender : lenders.get()) {
        RecordedCopies records =
            found.size() < MOST_LENDERS ? RecordedCopies.read(lender.state(), identity) : null;
        if (records != null) {
          found.add(new Open(lender, records));
        }
      }
      replace(found);
      long took = nanoTime.getAsLong() - begin;
      next = begin + Math.max(FRESH.toNanos(), SHARE_OF_TIME * took);
    } finally {
      reading.unlock();
    }
  }

  private synchronized void replace(List<Open> found) {
    open.forEach(one -> one.records().close());
    open = closed ? List.of() : List.copyOf(found);
    if (closed) {
      found.forEach(one -> one.records().close());
    }
  }

  /**
   * The recorded copies of files that had that path and version. They may be gone, damaged, or of
   * another file: see {@link LentCopy#isOf}.
   */
  List<LentCopy> find(FileName path, SourceVersion version) {
    refresh();
    return recorded(path, version);
  }

  private synchronized List<LentCopy> recorded(FileName path, SourceVersion version) {
    List<LentCopy> copies = new ArrayList<>();
    for (Open one : open) {
      one.lender()
          .tiers()
          .forEach(
              (name, directory) -> {
                RecordedCopies.Found found = one.records().find(path, version, name);
                if (found != null) {
                  copies.add(new LentCopy(directory, found.inode(), found.copy()));
                }
              });
    }
    return copies;
  }

  @Override
  public void close() {
    synchronized (this) {
      closed = true;
    }
    replace(List.of());
  }
}
