package io.pmfs.tier;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A backing store that counts what it is asked for, failures included. */
public final class CountedBackingStore implements BackingStore {
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

  public CountedBackingStore(BackingStore store) {
    this.store = store;
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

  @Override
  public SourceStatus status(FileName path) throws FsException {
    stats.increment();
    return store.status(path);
  }

  @Override
  public void list(FileName directory, Consumer<List<FileName>> batches) throws FsException {
    lists.increment();
    store.list(directory, batches);
  }

  @Override
  public boolean listWithStatus(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException {
    boolean isListed = store.listWithStatus(directory, batches);
    if (isListed) {
      lists.increment();
    }
    return isListed;
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws FsException {
    readlinks.increment();
    return store.readSymbolicLink(path);
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    opens.increment();
    return new CountedFile(store.open(path));
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    xattrs.increment();
    return store.extendedAttributes(path);
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    statfs.increment();
    return store.statistics();
  }

  @Override
  public int sequenceCount() {
    return store.sequenceCount();
  }

  @Override
  public SourceSequence sequence(int index) throws FsException {
    return new CountedSequence(store.sequence(index));
  }

  @Override
  public void close() {
    store.close();
  }

  private final class CountedSequence implements SourceSequence {
    private final SourceSequence sequence;

    CountedSequence(SourceSequence sequence) {
      this.sequence = sequence;
    }

    @Override
    public @Nullable FileName next() throws FsException {
      return sequence.next();
    }

    @Override
    public SourceFile open() throws FsException {
      opens.increment();
      return new CountedFile(sequence.open());
    }

    @Override
    public void close() {
      sequence.close();
    }
  }

  private final class CountedFile implements SourceFile {
    private final SourceFile file;

    CountedFile(SourceFile file) {
      this.file = file;
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      reads.increment();
      int count = file.read(offset, destination);
      bytes.add(count);
      return count;
    }

    @Override
    public long seekData(long offset) throws FsException {
      seeks.increment();
      return file.seekData(offset);
    }

    @Override
    public long seekHole(long offset) throws FsException {
      seeks.increment();
      return file.seekHole(offset);
    }

    @Override
    public SourceStatus status() throws FsException {
      stats.increment();
      return file.status();
    }

    @Override
    public void close() {
      file.close();
    }
  }
}
