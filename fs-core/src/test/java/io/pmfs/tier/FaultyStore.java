package io.pmfs.tier;

import io.pmfs.metadata.FileName;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Predicate;

/** Wraps a source and makes it fail when a test says so. */
public final class FaultyStore implements BackingStore {
  /** The kinds of requests. */
  public enum Point {
    STATUS,
    LIST,
    READ_LINK,
    OPEN,
    READ,
    FILE_STATUS,
    SEEK,
    XATTRS,
    STATFS
  }

  /** How a request is answered, if at all. */
  public enum Answer {
    WHOLE,
    /** A read ends early, in the middle of the file; a listing fails after half of the names. */
    CUT
  }

  /**
   * Called before each request, without locks; may fail, and may block like a source that hangs.
   */
  @FunctionalInterface
  public interface Faults {
    Answer at(Point point, FileName path) throws FsException;
  }

  private record Injection(Errno errno, String thread) {}

  private static final Faults NONE = (point, path) -> Answer.WHOLE;

  private final BackingStore store;
  private final Queue<Injection> injections = new ConcurrentLinkedQueue<>();
  private volatile Faults faults = NONE;

  public FaultyStore(BackingStore store) {
    this.store = store;
  }

  /**
   * Faults of every kind, on any thread.
   *
   * @param perThousand how many requests of a thousand fail
   */
  public static Faults random(long seed, int perThousand) {
    Random random = new Random(seed);
    return (point, path) -> {
      if (random.nextInt(1000) >= perThousand) {
        return Answer.WHOLE;
      }
      if (random.nextInt(4) == 0) {
        return Answer.CUT;
      }
      List<Errno> errnos = errnosOf(point);
      throw new FsException(errnos.get(random.nextInt(errnos.size())), "injected at " + path);
    };
  }

  /**
   * ENOENT is a normal answer where attributes are requested, and not possible for an open file.
   */
  private static List<Errno> errnosOf(Point point) {
    return switch (point) {
      case STATUS, FILE_STATUS, READ, STATFS -> List.of(Errno.EIO, Errno.ESTALE, Errno.ETIMEDOUT);
      // The location of data is advice: where it is unavailable, everything counts as data.
      case LIST, READ_LINK, OPEN, SEEK, XATTRS ->
          List.of(Errno.EIO, Errno.ESTALE, Errno.ETIMEDOUT, Errno.ENOENT);
    };
  }

  public void faults(Faults next) {
    faults = next;
  }

  /** Ends all faults; files that became stale stay so until they are opened again. */
  public void clearFaults() {
    faults = NONE;
  }

  /** Makes every request of a kind fail. */
  public void failAt(Point failing, Errno errno) {
    faults =
        (point, path) -> {
          if (point == failing) {
            throw new FsException(errno, "injected at " + path);
          }
          return Answer.WHOLE;
        };
  }

  /** The errors injected since the last call into requests of threads with these names. */
  public Set<Errno> takeInjected(Predicate<String> threads) {
    Set<Errno> errnos = EnumSet.noneOf(Errno.class);
    for (Injection next = injections.poll(); next != null; next = injections.poll()) {
      if (threads.test(next.thread)) {
        errnos.add(next.errno);
      }
    }
    return errnos;
  }

  private boolean isCut(Point point, FileName path) throws FsException {
    try {
      return faults.at(point, path) == Answer.CUT;
    } catch (FsException e) {
      throw injected(e);
    }
  }

  private FsException injected(FsException e) {
    injections.add(new Injection(e.errno(), Thread.currentThread().getName()));
    return e;
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    isCut(Point.STATUS, path);
    return store.status(path);
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    if (!isCut(Point.LIST, directory)) {
      store.list(directory, batches);
      return;
    }
    List<FileName> names = new ArrayList<>();
    store.list(directory, names::addAll);
    batches.accept(names.subList(0, names.size() / 2));
    throw injected(new FsException(Errno.EIO, "injected in the middle of " + directory));
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws FsException {
    isCut(Point.READ_LINK, path);
    return store.readSymbolicLink(path);
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    isCut(Point.OPEN, path);
    return new FaultyFile(path, store.open(path));
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    isCut(Point.XATTRS, path);
    return store.extendedAttributes(path);
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    isCut(Point.STATFS, FileName.of(""));
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

  /** A file that, once stale, stays so, like a file of a server that was replaced. */
  private final class FaultyFile implements SourceFile {
    private final FileName path;
    private final SourceFile file;
    private volatile boolean isStale;

    FaultyFile(FileName path, SourceFile file) {
      this.path = path;
      this.file = file;
    }

    private boolean isCut(Point point) throws FsException {
      if (isStale) {
        throw injected(new FsException(Errno.ESTALE, path + " is stale since it failed"));
      }
      try {
        return FaultyStore.this.isCut(point, path);
      } catch (FsException e) {
        isStale = e.errno() == Errno.ESTALE;
        throw e;
      }
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      int wanted = destination.remaining();
      if (!isCut(Point.READ) || wanted == 0) {
        return file.read(offset, destination);
      }
      injected(new FsException(Errno.EIO, path + " ends early"));
      int limit = destination.limit();
      destination.limit(destination.position() + wanted / 2);
      try {
        return file.read(offset, destination);
      } finally {
        destination.limit(limit);
      }
    }

    @Override
    public long seekData(long offset) throws FsException {
      isCut(Point.SEEK);
      return file.seekData(offset);
    }

    @Override
    public long seekHole(long offset) throws FsException {
      isCut(Point.SEEK);
      return file.seekHole(offset);
    }

    @Override
    public SourceStatus status() throws FsException {
      isCut(Point.FILE_STATUS);
      return file.status();
    }

    @Override
    public void close() {
      file.close();
    }
  }
}
