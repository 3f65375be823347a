package io.pmfs.cluster;

import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.FakeStore;
import io.pmfs.source.SourceAccess;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import io.pmfs.source.StoreStatistics;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.function.LongUnaryOperator;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A node's view of a source that other nodes see as it is: chosen files have the size, times and
 * content of an earlier state, as with an attribute cache of NFS.
 */
final class LaggingStore implements BackingStore {
  private final BackingStore now;
  private final FakeStore before;
  private volatile @Nullable Predicate<FileName> lagging;
  private volatile LongUnaryOperator numbers = LongUnaryOperator.identity();

  /**
   * @param before the earlier state, in which the files were made in the same order: they then have
   *     the same inode numbers
   */
  LaggingStore(BackingStore now, FakeStore before) {
    this.now = now;
    this.before = before;
  }

  void lagBehind(Predicate<FileName> paths) {
    lagging = paths;
  }

  void catchUp() {
    lagging = null;
  }

  /** From now on shows other inode numbers than the others see. */
  void renumber(LongUnaryOperator next) {
    numbers = next;
  }

  private SourceStatus numbered(SourceStatus status) {
    FileIdentity shown = status.identity();
    long number = numbers.applyAsLong(shown.inode());
    return new SourceStatus(new FileIdentity(shown.device(), number), status.attributes());
  }

  private boolean lags(FileName path) {
    Predicate<FileName> paths = lagging;
    return paths != null && paths.test(path);
  }

  private BackingStore seen(FileName path) {
    return lags(path) ? before : now;
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    return numbered(seen(path).status(path));
  }

  @Override
  public SourceAccess access(FileName path) throws FsException {
    SourceAccess access = seen(path).access(path);
    return new SourceAccess(numbered(access.status()), access.keepsLists(), access.list());
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    now.list(directory, batches);
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws FsException {
    return now.readSymbolicLink(path);
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    return now.extendedAttributes(path);
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    return now.statistics();
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    SourceFile current = now.open(path);
    try {
      return new OpenFile(path, current, before.open(path));
    } catch (FsException e) {
      return new OpenFile(path, current, current); // it is no older than that
    }
  }

  @Override
  public void close() {
    now.close();
  }

  /** Shows one state or the other, whichever the node sees at the moment. */
  private final class OpenFile implements SourceFile {
    private final FileName path;
    private final SourceFile current;
    private final SourceFile earlier;

    OpenFile(FileName path, SourceFile current, SourceFile earlier) {
      this.path = path;
      this.current = current;
      this.earlier = earlier;
    }

    private SourceFile seen() {
      return lags(path) ? earlier : current;
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      return seen().read(offset, destination);
    }

    @Override
    public long seekData(long offset) throws FsException {
      return seen().seekData(offset);
    }

    @Override
    public long seekHole(long offset) throws FsException {
      return seen().seekHole(offset);
    }

    @Override
    public SourceStatus status() throws FsException {
      return numbered(seen().status());
    }

    @Override
    public void close() {
      current.close();
      if (earlier != current) {
        earlier.close();
      }
    }
  }
}
