package io.pmfs.cluster;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import com.google.common.collect.ConcurrentHashMultiset;
import com.google.common.collect.Multiset;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.stage.Blocks;
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

  /** Peers that wait for a source that answers this node: they are asked for copies only. */
  private final Suspects withoutSource;

  private final SourceProbes probes;

  /** What other nodes are being asked the names or attributes of, by threads that hold its lock. */
  private final Multiset<FileName> askedElsewhere = ConcurrentHashMultiset.create();

  /**
   * Directories that are being listed here: what is in them, and whether they change meanwhile, the
   * source must say.
   */
  private final Set<FileName> listedHere = ConcurrentHashMap.newKeySet();

  /** Files that the source was asked for in a peer's place: it also says what they are now. */
  private final Cache<FileName, Boolean> readHere =
      CacheBuilder.newBuilder().maximumSize(10_000).expireAfterWrite(Duration.ofMinutes(1)).build();

  private final LongAdder bytes = new LongAdder();
  private final LongAdder answers = new LongAdder();
  private final LongAdder misses = new LongAdder();

  PeerStore(
      BackingStore source,
      Owners owners,
      PeerClient client,
      Suspects suspects,
      Suspects withoutSource) {
    this(source, owners, client, suspects, withoutSource, SourceProbes.PATIENCE);
  }

  /**
   * @param patience after which the source is asked whether a peer needs to wait for it
   */
  PeerStore(
      BackingStore source,
      Owners owners,
      PeerClient client,
      Suspects suspects,
      Suspects withoutSource,
      Duration patience) {
    this.withoutSource = withoutSource;
    this.probes = new SourceProbes(withoutSource, patience);
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

  /** Whether a peer failed, or failed to reach the source, and has not answered since. */
  boolean isSuspected(Member peer) {
    return suspects.isSuspected(peer) || withoutSource.isSuspected(peer);
  }

  /**
   * Whether this node is asking another node for the names or attributes of a path. A worker that
   * answered a peer about that path would wait for the other node's answer, and the other node
   * perhaps for this worker: nodes that see different members do not agree on the first owner.
   */
  boolean asksElsewhere(FileName path) {
    return askedElsewhere.contains(path);
  }

  private <T> @Nullable T askLocked(
      FileName path, List<Member> members, Question<T> question, SourceProbes.Probe same) {
    if (members.isEmpty() || owners.isSelf(members.get(0))) {
      return null;
    }
    askedElsewhere.add(path);
    try {
      return ask(members, question, same);
    } finally {
      askedElsewhere.remove(path);
    }
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

  /**
   * The answer of the first that gives one; null if none does, or this node comes before.
   *
   * @param same the question as the source would be asked
   */
  private <T> @Nullable T ask(List<Member> members, Question<T> question, SourceProbes.Probe same) {
    for (Member member : members) {
      if (owners.isSelf(member)) {
        return null;
      }
      T answer = ask(member, question, same);
      if (answer != null) {
        return answer;
      }
    }
    return null;
  }

  private <T> @Nullable T ask(Member peer, Question<T> question, SourceProbes.Probe same) {
    if (!suspects.mayAsk(peer) || !withoutSource.mayAsk(peer)) {
      return null;
    }
    long askedNanos = withoutSource.nanoTime();
    SourceProbes.Question open = probes.begin(peer, same);
    try {
      T answer = askNow(peer, question);
      if (answer != null) {
        withoutSource.answered(peer, askedNanos);
      }
      return answer;
    } finally {
      open.close();
    }
  }

  /** Asks for what needs no source, if it is worth asking. */
  private <T> @Nullable T askForCopy(Member peer, Question<T> question) {
    return suspects.mayAsk(peer) ? askNow(peer, question) : null;
  }

  private <T> @Nullable T askNow(Member peer, Question<T> question) {
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

  /** Whether the source has to say it: of what is being listed here it has just said the rest. */
  private boolean isAskedHere(FileName path) {
    return listedHere.remove(path)
        || listedHere.contains(Paths.parent(path))
        || readHere.getIfPresent(path) != null;
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    if (path.size() > 0 && !isAskedHere(path)) {
      SourceStatus status =
          askLocked(
              path,
              owners.of(Paths.parent(path)),
              peer -> client.status(peer, path),
              () -> source.status(path));
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
        askLocked(
            directory,
            owners.of(directory),
            peer -> {
              client.list(peer, directory, batches);
              return true;
            },
            () -> source.list(directory, names -> false));
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
    return !known.isEmpty() && !owners.isSelf(known.get(0)) && !isSuspected(known.get(0));
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    source.list(directory, batches);
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws FsException {
    FileName target =
        ask(
            owners.of(Paths.parent(path)),
            peer -> client.readSymbolicLink(peer, path),
            () -> source.readSymbolicLink(path));
    return target == null ? source.readSymbolicLink(path) : target;
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    Map<FileName, byte[]> attributes =
        path.size() == 0
            ? null
            : ask(
                owners.of(Paths.parent(path)),
                peer -> client.extendedAttributes(peer, path),
                () -> source.extendedAttributes(path));
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
    probes.close();
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
        return status == null ? readFromOwners(known, offset, range) : status;
      }
      SourceStatus[] found = new SourceStatus[1];
      boolean has =
          owners.askHolders(
              path,
              peer -> {
                found[0] = readCopy(peer, offset, range);
                return found[0] != null
                    ? Owners.Help.GAVE
                    : suspects.isSuspected(peer) ? Owners.Help.UNKNOWN : Owners.Help.HAS_NONE;
              });
      return has ? found[0] : null;
    }

    private @Nullable SourceStatus readFromOwners(
        List<Member> known, long offset, ByteBuffer range) {
      for (Member owner : known) {
        if (owners.isSelf(owner)) {
          return null;
        }
        SourceStatus status =
            ask(
                owner,
                peer -> read(peer, offset, range, false),
                () -> probe(offset, range.remaining()));
        if (status == null && withoutSource.isSuspected(owner)) {
          status = readCopy(owner, offset, range);
        }
        if (status != null) {
          return status;
        }
      }
      return null;
    }

    /** Has all owners of a large file send some of it, if they have copies. */
    private @Nullable SourceStatus readSpread(List<Member> known, long offset, ByteBuffer range) {
      if (known.size() < 2
          || expected.size() < LARGE_BYTES
          || known.stream().anyMatch(owners::isSelf)) {
        return null;
      }
      return readCopy(known.get((int) (offset / SPREAD_BYTES % known.size())), offset, range);
    }

    private @Nullable SourceStatus readCopy(Member peer, long offset, ByteBuffer range) {
      return askForCopy(peer, holder -> read(holder, offset, range, true));
    }

    private void probe(long offset, int size) throws FsException {
      try (SourceFile file = source.open(path)) {
        file.read(offset, ByteBuffer.allocateDirect(Math.min(size, Blocks.SIZE)));
      }
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
