package io.pmfs.cluster;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.tier.BackingStore;
import io.pmfs.tier.FsException;
import io.pmfs.tier.SourceFile;
import io.pmfs.tier.SourceStatus;
import io.pmfs.tier.StoreStatistics;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The source of a dataset that several nodes hold together: a name or a range is asked of the node
 * that owns it, and the source itself is asked by its owner only, or when the owner fails. So each
 * leaves the source once, and a peer that fails is a miss.
 *
 * <p>A directory and what is in it belong to the owner of its path, a file's content to the owner
 * of the file's. Owners that come before this node in the order are asked first; those that come
 * after are not.
 */
public final class PeerStore implements BackingStore {
  private static final Logger log = LoggerFactory.getLogger(PeerStore.class);

  /** Blocks of larger files are asked of all their owners in turn, as far as these have copies. */
  private static final long LARGE_BYTES = 16 << 20;

  private static final int SPREAD_BYTES = 1 << 20;

  /** Set while this node answers a peer. */
  private static final ThreadLocal<Boolean> ANSWERING = ThreadLocal.withInitial(() -> false);

  private final BackingStore source;
  private final Owners owners;
  private final PeerClient client;
  private final Suspects suspects;

  /** Directories that are being listed here: whether they change meanwhile the source must say. */
  private final Set<FileName> listedHere = ConcurrentHashMap.newKeySet();

  /** Files that the source was asked for in a peer's place: it also says what they are now. */
  private final Cache<FileName, Boolean> readHere =
      CacheBuilder.newBuilder().maximumSize(10_000).expireAfterWrite(Duration.ofMinutes(1)).build();

  private final LongAdder bytes = new LongAdder();
  private final LongAdder answers = new LongAdder();
  private final LongAdder misses = new LongAdder();

  PeerStore(BackingStore source, Owners owners, PeerClient client, Suspects suspects) {
    this.source = source;
    this.owners = owners;
    this.client = client;
    this.suspects = suspects;
  }

  /** What peers gave, and how often they were asked in vain. */
  public record Statistics(long bytes, long answers, long misses) {
    static final Statistics NONE = new Statistics(0, 0, 0);
  }

  public Statistics statisticsOfPeers() {
    return new Statistics(bytes.sum(), answers.sum(), misses.sum());
  }

  /** Something to do on behalf of a peer. */
  interface Answer {
    int run() throws FsException;
  }

  /**
   * Has the calling thread read contents from the source itself, or from copies that others have
   * already, so that requests do not go in circles.
   */
  static int answering(Answer answer) throws FsException {
    ANSWERING.set(true);
    try {
      return answer.run();
    } finally {
      ANSWERING.remove();
    }
  }

  /** Something that a peer is asked for. */
  private interface Question<T> {
    T ask(Member peer) throws PeerException;
  }

  /** The answer of the first that gives one; null if none does, or this node comes before. */
  private <T> @Nullable T ask(List<Member> members, Question<T> question) {
    for (Member member : members) {
      if (owners.isSelf(member)) {
        return null;
      }
      T answer = ask(member, question);
      if (answer != null) {
        return answer;
      }
    }
    return null;
  }

  private <T> @Nullable T ask(Member peer, Question<T> question) {
    if (!suspects.mayAsk(peer)) {
      return null;
    }
    try {
      T answer = question.ask(peer);
      suspects.answered(peer);
      answers.increment();
      return answer;
    } catch (PeerException e) {
      misses.increment();
      switch (e.kind()) {
        case UNREACHABLE, CORRUPT -> suspects.failed(peer, String.valueOf(e.getMessage()));
        case REFUSED, FAILED -> {
          suspects.answered(peer);
          log.debug("{}: {}", peer, e.getMessage());
        }
      }
      return null;
    }
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    if (!listedHere.remove(path) && path.size() > 0 && readHere.getIfPresent(path) == null) {
      SourceStatus status = ask(owners.of(Paths.parent(path)), peer -> client.status(peer, path));
      if (status != null) {
        return status;
      }
    }
    return source.status(path);
  }

  @Override
  public boolean listWithStatus(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException {
    Boolean isListed =
        ask(
            owners.of(directory),
            peer -> {
              client.list(peer, directory, batches);
              return true;
            });
    if (isListed != null) {
      return true;
    }
    listedHere.add(directory);
    return source.listWithStatus(directory, batches);
  }

  /** What is another node's comes in one answer. */
  @Override
  public boolean listsAtOnce(FileName directory) {
    List<Member> known = owners.of(directory);
    return !known.isEmpty() && !owners.isSelf(known.get(0)) && !suspects.isSuspected(known.get(0));
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    source.list(directory, batches);
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws FsException {
    FileName target =
        ask(owners.of(Paths.parent(path)), peer -> client.readSymbolicLink(peer, path));
    return target == null ? source.readSymbolicLink(path) : target;
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    Map<FileName, byte[]> attributes =
        path.size() == 0
            ? null
            : ask(owners.of(Paths.parent(path)), peer -> client.extendedAttributes(peer, path));
    return attributes == null ? source.extendedAttributes(path) : attributes;
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    return source.statistics();
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    return source.open(path);
  }

  @Override
  public SourceFile openVersion(FileName path, SourceVersion expected) {
    return new PeerFile(path, expected);
  }

  @Override
  public void close() {
    source.close();
  }

  /** A file of that version, whose blocks come from wherever they are. */
  private final class PeerFile implements SourceFile {
    private final FileName path;
    private final SourceVersion expected;
    private @Nullable SourceFile opened; // GUARDED_BY(this)
    private volatile @Nullable SourceStatus fromPeer;

    PeerFile(FileName path, SourceVersion expected) {
      this.path = path;
      this.expected = expected;
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      int size = (int) Math.min(destination.remaining(), expected.size() - offset);
      if (size > 0) {
        ByteBuffer range = destination.slice(destination.position(), size);
        SourceStatus status = readFromPeers(offset, range);
        if (status != null) {
          fromPeer = status;
          bytes.add(size);
          destination.position(destination.position() + size);
          return size;
        }
      }
      return opened().read(offset, destination);
    }

    private @Nullable SourceStatus readFromPeers(long offset, ByteBuffer range) {
      List<Member> known = owners.of(path);
      boolean isFirst = !known.isEmpty() && owners.isSelf(known.get(0));
      if (!ANSWERING.get() && !isFirst) {
        SourceStatus status = readSpread(known, offset, range);
        return status == null ? ask(known, peer -> read(peer, offset, range, false)) : status;
      }
      SourceStatus[] found = new SourceStatus[1];
      boolean has =
          owners.askHolders(
              path,
              peer -> {
                found[0] = ask(peer, holder -> read(holder, offset, range, true));
                return found[0] != null;
              });
      return has ? found[0] : null;
    }

    /** Has all owners of a large file send some of it, if they have copies. */
    private @Nullable SourceStatus readSpread(List<Member> known, long offset, ByteBuffer range) {
      if (known.size() < 2
          || expected.size() < LARGE_BYTES
          || known.stream().anyMatch(owners::isSelf)) {
        return null;
      }
      Member one = known.get((int) (offset / SPREAD_BYTES % known.size()));
      return ask(one, peer -> read(peer, offset, range, true));
    }

    private SourceStatus read(Member peer, long offset, ByteBuffer range, boolean onlyCopies)
        throws PeerException {
      return client.read(peer, path, expected, offset, range.duplicate(), onlyCopies);
    }

    /** The source's own file. */
    private synchronized SourceFile opened() throws FsException {
      SourceFile file = opened;
      if (file == null) {
        file = source.open(path);
        opened = file;
        List<Member> known = owners.of(path);
        if (!known.isEmpty() && !owners.isSelf(known.get(0))) {
          readHere.put(path, true);
        }
      }
      return file;
    }

    private synchronized @Nullable SourceFile openedAlready() {
      return opened;
    }

    @Override
    public long seekData(long offset) throws FsException {
      return opened().seekData(offset);
    }

    @Override
    public long seekHole(long offset) throws FsException {
      return opened().seekHole(offset);
    }

    /** As the source has it if it was asked for any of the file, else as the last peer had it. */
    @Override
    public SourceStatus status() throws FsException {
      SourceStatus status = openedAlready() == null ? fromPeer : null;
      return status == null ? opened().status() : status;
    }

    @Override
    public void close() {
      SourceFile file = openedAlready();
      if (file != null) {
        file.close();
      }
    }
  }
}
