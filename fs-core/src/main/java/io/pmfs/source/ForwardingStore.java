package io.pmfs.source;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A store that forwards every request to another store; the base of stores that change some. */
public abstract class ForwardingStore implements BackingStore {
  private final BackingStore store;

  protected ForwardingStore(BackingStore store) {
    this.store = store;
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    return store.status(path);
  }

  @Override
  public SourceStatus ownStatus(FileName path) throws FsException {
    return store.ownStatus(path);
  }

  @Override
  public boolean isSecondHand() {
    return store.isSecondHand();
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    store.list(directory, batches);
  }

  @Override
  public boolean listWithStatus(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException {
    return store.listWithStatus(directory, batches);
  }

  @Override
  public boolean listsAtOnce(FileName directory) {
    return store.listsAtOnce(directory);
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws FsException {
    return store.readSymbolicLink(path);
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    return store.open(path);
  }

  @Override
  public SourceFile openVersion(FileName path, SourceVersion expected) throws FsException {
    return store.openVersion(path, expected);
  }

  @Override
  public boolean lends() {
    return store.lends();
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    return store.extendedAttributes(path);
  }

  @Override
  public SourceAccess access(FileName path) throws FsException {
    return store.access(path);
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    return store.statistics();
  }

  @Override
  public int sequenceCount() {
    return store.sequenceCount();
  }

  @Override
  public SourceSequence sequence(int index, ByteBuffer window, Runnable beforeRequest)
      throws FsException {
    return store.sequence(index, window, beforeRequest);
  }

  @Override
  public void close() {
    store.close();
  }

  /** Forwards to an open file. */
  protected abstract static class ForwardingFile implements SourceFile {
    private final SourceFile file;

    protected ForwardingFile(SourceFile file) {
      this.file = file;
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      return file.read(offset, destination);
    }

    @Override
    public int streams() {
      return file.streams();
    }

    @Override
    public int choose(BitSet missing) throws FsException {
      return file.choose(missing);
    }

    @Override
    public long seekData(long offset) throws FsException {
      return file.seekData(offset);
    }

    @Override
    public long seekHole(long offset) throws FsException {
      return file.seekHole(offset);
    }

    @Override
    public int descriptor() {
      return file.descriptor();
    }

    @Override
    public @Nullable LentFile lend() {
      return file.lend();
    }

    @Override
    public void prove() throws FsException {
      file.prove();
    }

    @Override
    public void proveCopy() throws FsException {
      file.proveCopy();
    }

    @Override
    public SourceStatus status() throws FsException {
      return file.status();
    }

    @Override
    public void close() {
      file.close();
    }
  }
}
