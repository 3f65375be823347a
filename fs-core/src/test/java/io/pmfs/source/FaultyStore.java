package io.pmfs.source;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.ChosenRequests;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.tier.Hold;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Wraps a source, and makes it fail, hang, truncate, change or lend files as a test requests:
 * {@code on(READ).of("a/b").fail(EIO)}.
 */
public final class FaultyStore implements BackingStore {
  /** The kinds of requests. */
  public enum Operation {
    STATUS,
    LIST,
    READ_LINK,
    OPEN,
    READ,
    FILE_STATUS,
    SEEK,
    XATTRS,
    ACCESS,
    STATFS,
    NEXT,
    /** The opening of a sequence's file. */
    OPEN_NEXT
  }

  /** How a request is answered, if at all. */
  public enum Answer {
    WHOLE,
    /** A read is truncated in the middle of the file; a listing fails after half of the names. */
    CUT
  }

  /**
   * Called before each request, without locks; may fail, and may block like a source that hangs.
   * The offset is that of a read or a seek, else 0.
   */
  @FunctionalInterface
  public interface Faults {
    Answer at(Operation operation, FileName path, long offset) throws FsException;
  }

  private record Injection(Errno errno, String thread) {}

  private static final Faults NONE = (operation, path, offset) -> Answer.WHOLE;

  private final BackingStore store;
  private final Queue<Injection> injections = new ConcurrentLinkedQueue<>();
  private volatile Faults faults = NONE;
  private volatile @Nullable Hold hold;
  private volatile @Nullable Function<FileName, @Nullable LentFile> lender;
  private volatile boolean isSecondHand;

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
    return (operation, path, offset) -> {
      if (random.nextInt(1000) >= perThousand) {
        return Answer.WHOLE;
      }
      if (random.nextInt(4) == 0) {
        return Answer.CUT;
      }
      List<Errno> errnos = errnosOf(operation);
      throw new FsException(errnos.get(random.nextInt(errnos.size())), "injected at " + path);
    };
  }

  /** An open file cannot be missing. */
  private static List<Errno> errnosOf(Operation operation) {
    return switch (operation) {
      case FILE_STATUS, READ, STATFS -> List.of(Errno.EIO, Errno.ESTALE, Errno.ETIMEDOUT);
      // The location of data is advice: where it is unavailable, everything counts as data.
      case STATUS, LIST, READ_LINK, OPEN, SEEK, XATTRS, ACCESS, NEXT, OPEN_NEXT ->
          List.of(Errno.EIO, Errno.ESTALE, Errno.ETIMEDOUT, Errno.ENOENT);
    };
  }

  /** Chooses requests of these kinds, or of all if none is named. */
  public ChosenRequests on(Operation... operations) {
    return new ChosenRequests(this, List.of(operations));
  }

  /** For faults that cannot be expressed by {@link #on}. */
  public void faults(Faults next) {
    faults = next;
  }

  /** Lends the file that the function returns for a path. */
  public void lend(Function<FileName, @Nullable LentFile> from) {
    lender = from;
  }

  /** Pretends from now on that attributes come from other nodes. */
  public void beSecondHand() {
    isSecondHand = true;
  }

  public void releasedWhenCleared(Hold next) {
    hold = next;
  }

  /** Ends all faults and holds; files that became stale stay so until they are opened again. */
  public void clearFaults() {
    faults = NONE;
    Hold last = hold;
    if (last != null) {
      last.release();
    }
  }

  /** The errors injected since the last call into requests of matching threads. */
  public Set<Errno> takeInjected(Predicate<String> threads) {
    Set<Errno> errnos = EnumSet.noneOf(Errno.class);
    for (Injection next = injections.poll(); next != null; next = injections.poll()) {
      if (threads.test(next.thread)) {
        errnos.add(next.errno);
      }
    }
    return errnos;
  }

  private boolean isCut(Operation operation, FileName path, long offset) throws FsException {
    try {
      return faults.at(operation, path, offset) == Answer.CUT;
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
    isCut(Operation.STATUS, path, 0);
    return store.status(path);
  }

  @Override
  public boolean isSecondHand() {
    return isSecondHand;
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    if (!isCut(Operation.LIST, directory, 0)) {
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
    isCut(Operation.READ_LINK, path, 0);
    return store.readSymbolicLink(path);
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    isCut(Operation.OPEN, path, 0);
    return new FaultyFile(path, store.open(path));
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    isCut(Operation.XATTRS, path, 0);
    return store.extendedAttributes(path);
  }

  @Override
  public SourceAccess access(FileName path) throws FsException {
    isCut(Operation.ACCESS, path, 0);
    return store.access(path);
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    isCut(Operation.STATFS, FileName.of(""), 0);
    return store.statistics();
  }

  @Override
  public boolean lends() {
    return lender != null;
  }

  @Override
  public int sequenceCount() {
    return store.sequenceCount();
  }

  @Override
  public SourceSequence sequence(int index, ByteBuffer window, Runnable beforeRequest)
      throws FsException {
    return new FaultySequence(
        FileName.of("sequence " + index), store.sequence(index, window, beforeRequest));
  }

  @Override
  public void close() {
    store.close();
  }

  private final class FaultySequence implements SourceSequence {
    private final FileName name;
    private final SourceSequence sequence;
    private @Nullable FileName current;

    FaultySequence(FileName name, SourceSequence sequence) {
      this.name = name;
      this.sequence = sequence;
    }

    @Override
    public @Nullable FileName next() throws FsException {
      isCut(Operation.NEXT, name, 0);
      current = sequence.next();
      return current;
    }

    @Override
    public SourceFile open() throws FsException {
      FileName path = Objects.requireNonNull(current);
      isCut(Operation.OPEN_NEXT, path, 0);
      return new FaultyFile(path, sequence.open());
    }

    @Override
    public void close() {
      sequence.close();
    }
  }

  /** A file that, once stale, stays stale, as after a server was replaced. */
  private final class FaultyFile implements SourceFile {
    private final FileName path;
    private final SourceFile file;
    private volatile boolean isStale;

    FaultyFile(FileName path, SourceFile file) {
      this.path = path;
      this.file = file;
    }

    private boolean isCut(Operation operation, long offset) throws FsException {
      if (isStale) {
        throw injected(new FsException(Errno.ESTALE, path + " is stale since it failed"));
      }
      try {
        return FaultyStore.this.isCut(operation, path, offset);
      } catch (FsException e) {
        isStale = e.errno() == Errno.ESTALE;
        throw e;
      }
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      int wanted = destination.remaining();
      if (!isCut(Operation.READ, offset) || wanted == 0) {
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
      isCut(Operation.SEEK, offset);
      return file.seekData(offset);
    }

    @Override
    public long seekHole(long offset) throws FsException {
      isCut(Operation.SEEK, offset);
      return file.seekHole(offset);
    }

    @Override
    public SourceStatus status() throws FsException {
      isCut(Operation.FILE_STATUS, 0);
      return file.status();
    }

    @Override
    public @Nullable LentFile lend() {
      Function<FileName, @Nullable LentFile> from = lender;
      return from == null ? null : from.apply(path);
    }

    @Override
    public void close() {
      file.close();
    }
  }
}
