package io.pmfs.cache;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.ForwardingStore;
import io.pmfs.source.LentFile;
import io.pmfs.source.SourceFile;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A source that reads content from the node's cache where the cache has a copy. The source supplies
 * everything else, including permission to read: a file is always opened there first.
 */
public final class CachedStore extends ForwardingStore {
  /** How long until the cache is asked again for a file that it refused or could not serve. */
  private static final long ASK_AGAIN_NANOS = Duration.ofSeconds(2).toNanos();

  /** After so many failed copies an open file is read from the source. */
  private static final int MOST_USELESS = 8;

  private final CacheClient cache;

  /** Takes over both and closes them. */
  public CachedStore(BackingStore source, CacheClient cache) {
    super(source);
    this.cache = cache;
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    return new CachedFile(super.open(path));
  }

  @Override
  public SourceFile openVersion(FileName path, SourceVersion expected) throws FsException {
    return new CachedFile(super.openVersion(path, expected));
  }

  @Override
  public boolean lends() {
    return true;
  }

  @Override
  public void close() {
    cache.close();
    super.close();
  }

  private final class CachedFile extends ForwardingFile {
    private volatile CacheClient.@Nullable OpenCopy copy; // written under this
    private final List<CacheClient.OpenCopy> useless = new ArrayList<>(); // GUARDED_BY(this)
    private long nextQuestion = System.nanoTime(); // GUARDED_BY(this)

    CachedFile(SourceFile file) {
      super(file);
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      int first = destination.position();
      int size = destination.remaining();
      CacheClient.OpenCopy from = copyWith(offset + size);
      if (from != null) {
        try {
          if (from.file().read(offset, destination) == size) {
            cache.countCopyBytes(size);
            return size;
          }
        } catch (FsException e) {
          giveUp(from); // the disk of the cache has failed
        }
        destination.position(first);
      }
      return super.read(offset, destination);
    }

    /** The open copy if it has so many bytes, perhaps after a short wait; null otherwise. */
    private CacheClient.@Nullable OpenCopy copyWith(long wanted) {
      CacheClient.OpenCopy present = copy;
      if (present == null) {
        present = ask(wanted);
      }
      if (present == null) {
        return null;
      }
      Boolean has = present.has(wanted);
      if (has == null) {
        giveUp(present);
      }
      return has != null && has ? present : null;
    }

    /** Only one thread asks; the others share its answer. */
    private synchronized CacheClient.@Nullable OpenCopy ask(long wanted) {
      if (copy == null && mayAsk()) {
        copy = askNow(wanted);
      }
      return copy;
    }

    private boolean mayAsk() { // GUARDED_BY(this)
      return descriptor() >= 0
          && useless.size() < MOST_USELESS
          && (copy != null || System.nanoTime() - nextQuestion >= 0);
    }

    private CacheClient.@Nullable OpenCopy askNow(long wanted) { // GUARDED_BY(this)
      CacheClient.OpenCopy answer = cache.ask(descriptor(), wanted);
      if (answer == null) {
        nextQuestion = System.nanoTime() + ASK_AGAIN_NANOS;
      }
      return answer;
    }

    /** Opens the copy again, because other threads may be reading the open one. */
    @Override
    public synchronized @Nullable LentFile lend() {
      CacheClient.OpenCopy another = mayAsk() ? askNow(0) : null;
      if (another == null || another.isWhole()) {
        return another;
      }
      if (copy == null) {
        copy = another; // for the first read
      } else {
        another.close();
      }
      return null;
    }

    /** Leaves the copy's file open, because other threads may be reading it. */
    private synchronized void giveUp(CacheClient.OpenCopy bad) {
      if (copy == bad) {
        copy = null;
        useless.add(bad);
        nextQuestion = System.nanoTime() + ASK_AGAIN_NANOS;
      }
    }

    @Override
    public synchronized void close() {
      CacheClient.OpenCopy open = copy;
      if (open != null) {
        open.close();
      }
      useless.forEach(CacheClient.OpenCopy::close);
      super.close();
    }
  }
}
