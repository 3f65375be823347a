package io.pmfs.source;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** A backing store that counts its requests, including failed ones. */
public final class CountedBackingStore extends ForwardingStore {
  private final BackingStore store;
  private final LongAdder opens = new LongAdder();
  private final LongAdder reads = new LongAdder();
  private final LongAdder bytes = new LongAdder();
  private final LongAdder stats = new LongAdder();
  private final LongAdder lists = new LongAdder();
  private final LongAdder readlinks = new LongAdder();
  private final LongAdder xattrs = new LongAdder();
  private final LongAdder statfs = new LongAdder();
  private final LongAdder seeks = new LongAdder();
  private final LongAdder errors = new LongAdder();
  private final LongAdder begun = new LongAdder();
  private final LongAdder ended = new LongAdder();
  private final LongSupplier nanos;
  private volatile long lastNanos;

  public CountedBackingStore(BackingStore store) {
    this(store, System::nanoTime);
  }

  CountedBackingStore(BackingStore store, LongSupplier nanos) {
    super(store);
    this.store = store;
    this.nanos = nanos;
  }

  public SourceOperations operations() {
    return new SourceOperations(
        opens.sum(),
        reads.sum(),
        bytes.sum(),
        stats.sum(),
        lists.sum(),
        readlinks.sum(),
        xattrs.sum(),
        statfs.sum(),
        seeks.sum());
  }

  /** Failed requests, except those for something that does not exist. */
  public long errors() {
    return errors.sum();
  }

  /** Requests begun so far. */
  public long begun() {
    return begun.sum();
  }

  /** Requests ended so far; at most {@link #begun} if this is read first. */
  public long ended() {
    return ended.sum();
  }

  /** The time since the last request; zero during one, null if there was none. */
  public @Nullable Duration sinceLastRequest() {
    long over = ended();
    long all = begun();
    return all == 0 ? null : Duration.ofNanos(all > over ? 0 : nanos.getAsLong() - lastNanos);
  }

  private interface Request<T> {
    T run() throws FsException;
  }

  private <T> T counted(LongAdder kind, Request<T> request) throws FsException {
    kind.increment();
    try {
      return waitedFor(request);
    } catch (FsException e) {
      switch (e.errno()) {
        case ENOENT, ENODATA, ENXIO, ENOTDIR -> {}
        default -> errors.increment();
      }
      throw e;
    }
  }

  private <T> T waitedFor(Request<T> request) throws FsException {
    begun.increment();
    try {
      return request.run();
    } finally {
      end();
    }
  }

  private void end() {
    lastNanos = nanos.getAsLong();
    ended.increment();
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    return counted(stats, () -> store.status(path));
  }

  @Override
  public SourceStatus ownStatus(FileName path) throws FsException {
    return counted(stats, () -> store.ownStatus(path));
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    counted(
        lists,
        () -> {
          store.list(directory, batches);
          return true;
        });
  }

  @Override
  public boolean listWithStatus(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException {
    boolean isListed = waitedFor(() -> store.listWithStatus(directory, batches));
    if (isListed) {
      lists.increment();
    }
    return isListed;
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws FsException {
    return counted(readlinks, () -> store.readSymbolicLink(path));
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    return counted(opens, () -> new CountedFile(store.open(path)));
  }

  @Override
  public SourceFile openVersion(FileName path, SourceVersion expected) throws FsException {
    return counted(opens, () -> new CountedFile(store.openVersion(path, expected)));
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    return counted(xattrs, () -> store.extendedAttributes(path));
  }

  @Override
  public SourceAccess access(FileName path) throws FsException {
    stats.increment();
    return counted(xattrs, () -> store.access(path));
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    return counted(statfs, store::statistics);
  }

  @Override
  public SourceSequence sequence(int index, ByteBuffer window, Runnable beforeRequest)
      throws FsException {
    return new CountedSequence(store.sequence(index, window, beforeRequest));
  }

  private final class CountedSequence implements SourceSequence {
    private final SourceSequence sequence;

    CountedSequence(SourceSequence sequence) {
      this.sequence = sequence;
    }

    @Override
    public @Nullable FileName next() throws FsException {
      begun.increment();
      try {
        return sequence.next();
      } finally {
        end();
      }
    }

    @Override
    public SourceFile open() throws FsException {
      return counted(opens, () -> new CountedFile(sequence.open()));
    }

    @Override
    public void close() {
      sequence.close();
    }
  }

  private final class CountedFile extends ForwardingFile {
    private final SourceFile file;

    CountedFile(SourceFile file) {
      super(file);
      this.file = file;
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      int count = counted(reads, () -> file.read(offset, destination));
      bytes.add(count);
      return count;
    }

    @Override
    public long seekData(long offset) throws FsException {
      return counted(seeks, () -> file.seekData(offset));
    }

    @Override
    public long seekHole(long offset) throws FsException {
      return counted(seeks, () -> file.seekHole(offset));
    }

    @Override
    public SourceStatus status() throws FsException {
      return counted(stats, file::status);
    }
  }
}
