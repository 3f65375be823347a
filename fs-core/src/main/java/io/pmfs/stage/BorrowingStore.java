package io.pmfs.stage;

import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.RecordedCopies;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.ForwardingStore;
import io.pmfs.source.LentFile;
import io.pmfs.source.SourceFile;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.tier.BorrowedCopy;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A source that takes content from whole copies made by other mounts of the dataset on this
 * machine, if they are of the requested version, and otherwise from the wrapped source. Names,
 * attributes and permissions always come from the source. A borrowed block counts only if its
 * recorded checksum matches. Compressed copies are not borrowed.
 */
public final class BorrowingStore extends ForwardingStore {
  /** New records of other mounts are found after at most this time. */
  private static final Duration FRESH = Duration.ofSeconds(10);

  /** Rereading the records takes at most one part in this many of the time. */
  private static final int SHARE_OF_TIME = 20;

  /** Each lender takes up to 16 MiB for cached records. */
  private static final int MOST_LENDERS = 4;

  private static final int RAW = 0;

  private final String identity;
  private final Supplier<List<Lender>> lenders;
  private final LongSupplier nanoTime;
  private final LongAdder borrowed = new LongAdder();
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
   * Wraps a source.
   *
   * @param identity that of the dataset
   * @param lenders finds the current sets of copies
   */
  public BorrowingStore(
      BackingStore source, String identity, Supplier<List<Lender>> lenders, LongSupplier nanoTime) {
    super(source);
    this.identity = identity;
    this.lenders = lenders;
    this.nanoTime = nanoTime;
    this.next = nanoTime.getAsLong();
  }

  /** Bytes read from copies of other mounts. */
  public long borrowedBytes() {
    return borrowed.sum();
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

  /** An open copy of that version; null if no lender has one that can be opened. */
  private @Nullable Loan borrow(FileName path, SourceVersion version) {
    refresh();
    List<Candidate> candidates = candidates(path, version);
    for (Candidate candidate : candidates) {
      try {
        CopyRecord copy = candidate.found().copy();
        return new Loan(
            BorrowedCopy.open(candidate.tier(), candidate.found().number(), copy.extent()), copy);
      } catch (IOException e) {
        // Removed meanwhile, or in another mount namespace.
      }
    }
    return null;
  }

  private record Candidate(Path tier, RecordedCopies.Found found) {}

  private synchronized List<Candidate> candidates(FileName path, SourceVersion version) {
    List<Candidate> candidates = new ArrayList<>();
    for (Open one : open) {
      one.lender()
          .tiers()
          .forEach(
              (name, directory) -> {
                RecordedCopies.Found found = one.records().find(path, version, name);
                if (found != null
                    && found.copy().codec() == RAW
                    && found.copy().blockSize() == Blocks.SIZE) {
                  candidates.add(new Candidate(directory, found));
                }
              });
    }
    return candidates;
  }

  /** An open copy and its checksums. */
  private record Loan(BorrowedCopy file, CopyRecord copy) {
    /** Reads a block; false if the range is not a whole block or its checksum does not match. */
    boolean read(long offset, ByteBuffer destination) throws IOException {
      int first = destination.position();
      int block = Blocks.index(offset);
      if (Blocks.offset(block) != offset
          || offset >= copy.version().size()
          || destination.remaining() != Blocks.size(copy.version(), block)
          || !file.read(offset, destination)) {
        return false;
      }
      ByteBuffer bytes = destination.duplicate().flip().position(first);
      return Blocks.checksum(bytes) == copy.checksums().get(block);
    }
  }

  @Override
  public SourceFile openVersion(FileName path, SourceVersion expected) throws FsException {
    return new BorrowingFile(super.openVersion(path, expected), path, expected);
  }

  @Override
  public void close() {
    synchronized (this) {
      closed = true;
    }
    replace(List.of());
    super.close();
  }

  private final class BorrowingFile extends ForwardingFile {
    private final FileName path;
    private final SourceVersion version;
    private boolean asked; // GUARDED_BY(this)
    private @Nullable Loan loan; // GUARDED_BY(this)

    BorrowingFile(SourceFile file, FileName path, SourceVersion version) {
      super(file);
      this.path = path;
      this.version = version;
    }

    private synchronized @Nullable Loan loan() {
      if (!asked) {
        asked = true;
        loan = borrow(path, version);
      }
      return loan;
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      int first = destination.position();
      Loan lent = loan();
      if (lent != null) {
        try {
          if (lent.read(offset, destination)) {
            borrowed.add(destination.position() - first);
            return destination.position() - first;
          }
        } catch (IOException e) {
          // The disk of the copy failed: read from the source.
        }
        destination.position(first);
      }
      return super.read(offset, destination);
    }

    /** What was copied on this machine is not read from the source. */
    @Override
    public @Nullable LentFile lend() {
      return loan() == null ? super.lend() : null;
    }

    @Override
    public synchronized void close() {
      asked = true;
      if (loan != null) {
        loan.file().close();
      }
      super.close();
    }
  }
}
