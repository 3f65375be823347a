package io.pmfs.cluster;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import com.google.common.collect.ConcurrentHashMultiset;
import com.google.common.collect.Multiset;
import io.pmfs.cluster.client.Patience;
import io.pmfs.cluster.client.PeerClient;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceAccess;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import io.pmfs.source.StoreStatistics;
import io.pmfs.stage.formats.Blocks;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The source of a dataset that several nodes cache together. A node asks the owner for a name or a
 * range, and only the owner asks the source; when the owner fails, any node does. So each name and
 * range is read from the source once, and a failed peer counts as a miss.
 *
 * <p>The owner of a directory's path owns the directory and the names in it; the owner of a file's
 * path owns the file's content. This node first asks the owners that precede it in the order; it
 * does not ask those that follow.
 *
 * <p>If users other than the daemon's can enter the mount, peers are not trusted with access
 * rights: listings of peers are {@link SourceEntry#isVerified unverified}, and everything else
 * about a name comes from this node's own source. The daemon's own user could read the same files
 * without pmfs.
 */
public final class PeerStore implements BackingStore {
  /** How long a thread without a block waits before it looks for one again. */
  private static final long CHOICE_NANOS = 100_000_000L;

  /** The share of a reader's patience that is kept for the owners of a large file. */
  private static final long OWNERS_NANOS = 1_000_000_000L;

  private static final UUID SEVERAL = new UUID(0, 0);

  private static final UUID HERE = new UUID(0, 1);

  /** Set while this node answers a peer. */
  private static final ThreadLocal<Boolean> ANSWERING = ThreadLocal.withInitial(() -> false);

  private final BackingStore source;
  private final Owners owners;
  private final PeerClient client;
  private final PeerQuestions peers;
  private final OwnView ownView;
  private final LostTime lostTime;
  private final WrongClaims wrongClaims = new WrongClaims();

  /** Whether peers are trusted only with names and contents. */
  private final boolean verifies;

  /**
   * Paths whose names or attributes are being requested from other nodes, by threads that hold the
   * path's lock.
   */
  private final Multiset<FileName> askedElsewhere = ConcurrentHashMultiset.create();

  /** Files whose content is being requested from owners, by threads that hold a block's claim. */
  private final Multiset<FileName> readElsewhere = ConcurrentHashMultiset.create();

  /**
   * Directories that are being listed here: only the source knows their contents, and whether they
   * change meanwhile.
   */
  private final Set<FileName> listedHere = ConcurrentHashMap.newKeySet();

  /** Directories just listed by a peer, which is then also asked for their attributes. */
  private final Set<FileName> listedElsewhere = ConcurrentHashMap.newKeySet();

  /** Files read from the source instead of a peer; their attributes come from it, too. */
  private final Cache<FileName, Boolean> readHere =
      CacheBuilder.newBuilder().maximumSize(10_000).expireAfterWrite(Duration.ofMinutes(1)).build();

  /**
   * The node that described the files of a directory; {@link #SEVERAL} if several did. A version is
   * trusted when two nodes have seen it: that node, and the one that sends the content.
   */
  private final Cache<FileName, UUID> describers =
      CacheBuilder.newBuilder().maximumSize(100_000).build();

  /** Versions that two nodes have seen, as far as remembered. */
  private final Cache<FileName, SourceVersion> witnessed =
      CacheBuilder.newBuilder().maximumSize(200_000).build();

  private final LongAdder bytes = new LongAdder();

  /**
   * @param isOpenToOthers whether users other than the daemon's can enter the mount
   * @param patience how long a reader waits for all peers together
   * @param ofPeers how long a peer may wait before this node asks the source the same question
   */
  PeerStore(
      BackingStore source,
      Owners owners,
      PeerClient client,
      Suspects suspects,
      Suspects withoutSource,
      boolean isOpenToOthers,
      Duration patience,
      Duration ofPeers) {
    this.verifies = isOpenToOthers;
    this.source = source;
    this.owners = owners;
    this.client = client;
    this.peers = new PeerQuestions(owners, suspects, withoutSource, ofPeers);
    this.lostTime = new LostTime(patience, System::nanoTime);
    this.ownView = new OwnView(source);
  }

  /** Bytes and answers that peers gave, and how often a peer gave none. */
  public record Statistics(long bytes, long answers, long misses) {
    static final Statistics NONE = new Statistics(0, 0, 0);
  }

  public Statistics statisticsOfPeers() {
    return new Statistics(bytes.sum(), peers.answers(), peers.misses());
  }

  /** Removes peers that are no longer members. */
  void keepOnly(Set<UUID> members) {
    wrongClaims.keepOnly(members);
  }

  /** Whether a peer failed, or failed to reach the source, and has not answered since. */
  boolean isSuspected(Member peer) {
    return peers.isSuspected(peer) || peers.lacksSource(peer);
  }

  /**
   * Whether this node is asking another node for the names or attributes of a path. A worker that
   * answered a peer about that path would wait for the other node's answer, and the other node
   * might wait for this worker: nodes that see different members do not agree on the first owner.
   */
  boolean asksElsewhere(FileName path) {
    return askedElsewhere.contains(path);
  }

  /**
   * Whether this node is reading the content of a file from another node: a worker that answered a
   * peer would wait for a block that a reader of this node has claimed, and that reader for the
   * peer.
   */
  boolean readsElsewhere(FileName path) {
    return readElsewhere.contains(path);
  }

  private <T> @Nullable T askLocked(
      FileName path,
      List<Member> members,
      PeerQuestions.Question<T> question,
      SourceProbes.Probe same) {
    if (members.isEmpty() || owners.isSelf(members.get(0))) {
      return null;
    }
    askedElsewhere.add(path);
    try (LostTime.Question asked = lostTime.ask(path)) {
      return peers.ask(members, question, asked.patience(), same);
    } finally {
      askedElsewhere.remove(path);
    }
  }

  interface Answer {
    int run() throws FsException;
  }

  /**
   * Runs work during which the calling thread reads contents only from the source itself or from
   * existing copies of other nodes, so that requests do not go in circles.
   */
  static int answering(Answer answer) throws FsException {
    ANSWERING.set(true);
    try {
      return answer.run();
    } finally {
      ANSWERING.remove();
    }
  }

  /** Whether to ask the source, as it has just answered the rest of the same listing or file. */
  private boolean isAskedHere(FileName path) {
    return listedHere.remove(path)
        || listedHere.contains(Paths.parent(path))
        || readHere.getIfPresent(path) != null;
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    if (verifies) {
      return source.status(path);
    }
    boolean isListed = listedElsewhere.remove(path);
    if (isListed || (path.size() > 0 && !isAskedHere(path))) {
      UUID[] by = {HERE};
      SourceStatus status =
          askLocked(
              path,
              owners.of(isListed ? path : Paths.parent(path)),
              (peer, patience) -> {
                by[0] = peer.id();
                return client.status(peer, path, patience);
              },
              () -> source.status(path));
      if (status != null) {
        if (status.attributes().type() != FileType.DIRECTORY) {
          isDescribed(Paths.parent(path), by[0]);
        }
        return status;
      }
    }
    SourceStatus status = ownStatus(path);
    if (status.attributes().type() != FileType.DIRECTORY) {
      describers.asMap().putIfAbsent(Paths.parent(path), HERE);
    }
    return status;
  }

  @Override
  public SourceStatus ownStatus(FileName path) throws FsException {
    return source.status(path);
  }

  @Override
  public boolean isSecondHand() {
    return true;
  }

  /** Records that another node has described a file of a directory. */
  private void isDescribed(FileName directory, UUID by) {
    describers.asMap().merge(directory, by, (known, now) -> known.equals(now) ? now : SEVERAL);
  }

  /** Whether only the node that sends a file's content has seen its version. */
  private boolean isOnlyWitness(Member giver, FileName path) {
    UUID describer = verifies ? HERE : describers.getIfPresent(Paths.parent(path));
    return describer == null || describer.equals(SEVERAL) || describer.equals(giver.id());
  }

  @Override
  public boolean listWithStatus(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException {
    UUID[] by = {HERE};
    Boolean hasEntries =
        askLocked(
            directory,
            owners.of(directory),
            (peer, patience) -> {
              boolean[] any = {false};
              by[0] = peer.id();
              client.list(
                  peer,
                  directory,
                  entries -> {
                    any[0] = true;
                    batches.accept(verifies ? unverified(entries) : entries);
                  },
                  patience);
              return any[0];
            },
            () -> source.list(directory, names -> false));
    if (verifies) {
      // An empty listing has no entry to compare later, so the source is asked at once.
      return Boolean.TRUE.equals(hasEntries) || source.listWithStatus(directory, batches);
    }
    if (hasEntries != null) {
      describers.put(directory, by[0]);
      listedElsewhere.add(directory);
      return true;
    }
    describers.put(directory, HERE);
    listedHere.add(directory);
    return source.listWithStatus(directory, batches);
  }

  private static List<SourceEntry> unverified(List<SourceEntry> entries) {
    return entries.stream().map(SourceEntry::unverified).toList();
  }

  /** Lists a directory that another node owns, in one request. */
  @Override
  public boolean listsAtOnce(FileName directory) {
    if (verifies) {
      return false;
    }
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
        verifies
            ? null
            : ask(
                path,
                (peer, patience) -> client.readSymbolicLink(peer, path, patience),
                () -> source.readSymbolicLink(path));
    return target == null ? source.readSymbolicLink(path) : target;
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    Map<FileName, byte[]> attributes =
        verifies || path.size() == 0
            ? null
            : ask(
                path,
                (peer, patience) -> client.extendedAttributes(peer, path, patience),
                () -> source.extendedAttributes(path));
    return attributes == null ? source.extendedAttributes(path) : attributes;
  }

  /** Asks the owners of a path's parent directory. */
  private <T> @Nullable T ask(
      FileName path, PeerQuestions.Question<T> question, SourceProbes.Probe same) {
    try (LostTime.Question asked = lostTime.ask(path)) {
      return peers.ask(owners.of(Paths.parent(path)), question, asked.patience(), same);
    }
  }

  @Override
  public SourceAccess access(FileName path) throws FsException {
    return source.access(path);
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
    peers.close();
    ownView.close();
    source.close();
  }

  /**
   * A version of a file; its blocks come from peers or from the source. Every byte is of that
   * version: a node that reads the source checks the open file before the first byte and after the
   * last, and two nodes must have seen the version.
   */
  private final class PeerFile implements SourceFile {
    private final FileName path;
    private final SourceVersion expected;
    private @Nullable SourceFile opened; // GUARDED_BY(this)
    private volatile @Nullable SourceStatus fromPeer;

    /** The opened file's status, when it last had the expected version. */
    private volatile @Nullable SourceStatus proof;

    /** The version in this node's source; null if it was not asked. */
    private volatile OwnView.@Nullable Answer own;

    /** Whether a node passed on a block that it had not read from the source itself. */
    private volatile boolean isPassedOn;

    private final Object holdersLock = new Object();
    private @Nullable FileHolders holders; // GUARDED_BY(holdersLock)

    private volatile boolean isWitnessed;

    PeerFile(FileName path, SourceVersion expected) {
      this.path = path;
      this.expected = expected;
      this.isWitnessed = expected.equals(witnessed.getIfPresent(path));
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
      return readHere(offset, destination);
    }

    /** Reads the source, checking the file before and after. */
    private int readHere(long offset, ByteBuffer destination) throws FsException {
      SourceFile file = opened();
      SourceStatus before = proof;
      int start = destination.position();
      for (boolean isAgain = false; ; isAgain = true) {
        int count = file.read(offset, destination);
        SourceStatus after = required(file.status());
        proof = after;
        if (before == null
            || after.attributes().changeTime().equals(before.attributes().changeTime())) {
          return count;
        }
        if (isAgain) {
          throw otherVersion();
        }
        // The version may have differed for a moment.
        before = after;
        destination.position(start);
      }
    }

    private SourceStatus required(SourceStatus status) throws FsException {
      if (!status.attributes().version().equals(expected)) {
        throw otherVersion();
      }
      return status;
    }

    private FsException otherVersion() {
      return new FsException(
          Errno.ESTALE, path + " has another size or time in the source than reported");
    }

    /** Asks the nodes that could send the content, and finally the source. */
    @Override
    public void prove() throws FsException {
      if (proof != null || fromPeer != null) {
        return;
      }
      // A request for no bytes would be answered without checking the file.
      int size = (int) Math.min(1, expected.size());
      SourceStatus status = readFromPeers(0, ByteBuffer.allocateDirect(size));
      if (status == null) {
        opened();
      }
      fromPeer = status;
    }

    /**
     * A copy does not confirm a version, because it may be from an earlier session. If another node
     * has described the file, the source is asked.
     */
    @Override
    public void proveCopy() throws FsException {
      UUID describer = verifies ? HERE : describers.getIfPresent(Paths.parent(path));
      if (isWitnessed || HERE.equals(describer)) {
        return;
      }
      own = ownView.of(path, expected);
      if (own == OwnView.Answer.OTHER) {
        throw otherVersion();
      }
      if (own == OwnView.Answer.SAME) {
        isWitnessed();
      }
    }

    private void isWitnessed() {
      isWitnessed = true;
      witnessed.put(path, expected);
    }

    private @Nullable SourceStatus readFromPeers(long offset, ByteBuffer range) {
      try (LostTime.Question asked = lostTime.ask(path)) {
        return readFromPeers(offset, range, asked.patience());
      }
    }

    private @Nullable SourceStatus readFromPeers(long offset, ByteBuffer range, Patience patience) {
      List<Member> known = owners.of(path);
      boolean isFirst = !known.isEmpty() && owners.isSelf(known.get(0));
      if (!ANSWERING.get() && !isFirst) {
        SourceStatus status = readSpread(known, offset, range, patience);
        return status == null ? readFromOwners(known, offset, range, patience) : status;
      }
      SourceStatus[] found = new SourceStatus[1];
      boolean has =
          owners.askHolders(
              path,
              peer -> {
                found[0] = readCopy(peer, offset, range, patience);
                return found[0] != null
                    ? Owners.Help.GAVE
                    : patience.isOver() || peers.isSuspected(peer)
                        ? Owners.Help.UNKNOWN
                        : Owners.Help.HAS_NONE;
              });
      return has ? found[0] : null;
    }

    private @Nullable SourceStatus readFromOwners(
        List<Member> known, long offset, ByteBuffer range, Patience patience) {
      for (Member owner : known) {
        if (owners.isSelf(owner)) {
          return null;
        }
        SourceStatus status = readFromOwner(owner, offset, range, patience);
        if (status == null && peers.lacksSource(owner)) {
          status = readCopy(owner, offset, range, patience);
        }
        if (status != null) {
          return status;
        }
      }
      return null;
    }

    private @Nullable SourceStatus readFromOwner(
        Member owner, long offset, ByteBuffer range, Patience patience) {
      readElsewhere.add(path);
      try {
        return peers.ask(
            owner,
            (peer, left) -> fetch(peer, offset, range, false, left),
            patience,
            () -> probe(offset, range.remaining()));
      } finally {
        readElsewhere.remove(path);
      }
    }

    /**
     * The other holders of the file's blocks, if it is large and another node owns it; null if it
     * is read only from its owner or the source.
     */
    private @Nullable FileHolders spread(List<Member> known) {
      if (expected.size() < HolderHints.LARGE_BYTES
          || ANSWERING.get()
          || known.isEmpty()
          || owners.isSelf(known.get(0))) {
        return null;
      }
      synchronized (holdersLock) {
        FileHolders now = holders;
        if (now == null || !now.owner().equals(known.get(0))) {
          now = new FileHolders(known.get(0), Blocks.count(expected), System::nanoTime);
          holders = now;
        }
        known.stream().filter(owner -> !owners.isSelf(owner)).forEach(now::add);
        return now;
      }
    }

    @Override
    public int streams() {
      return spread(owners.of(path)) == null ? 1 : FileHolders.STREAMS;
    }

    @Override
    public int choose(BitSet missing) {
      FileHolders spread = spread(owners.of(path));
      if (spread == null) {
        return missing.nextSetBit(0);
      }
      // No reader waits for this, so lost time is not recorded.
      Patience patience = lostTime.ask(path).patience();
      long since = System.nanoTime();
      while (true) {
        Member overdue = spread.overdue();
        int block = overdue == null ? spread.plan(missing) : -1;
        if (block >= 0) {
          return block;
        }
        Member due = overdue == null ? spread.due() : overdue;
        if (due != null) {
          askForBlocks(spread, due, spread.wanted(missing), patience);
        } else if (spread.isStuck()) {
          return spread.planOfOwner(missing);
        } else if (System.nanoTime() - since > CHOICE_NANOS || !awaitNews(spread, patience)) {
          return -1;
        }
      }
    }

    private static boolean awaitNews(FileHolders spread, Patience patience) {
      long since = System.nanoTime();
      try {
        spread.awaitNews();
        return true;
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return false;
      } finally {
        patience.use(System.nanoTime() - since);
      }
    }

    private void askForBlocks(
        FileHolders spread, Member peer, HeldBlocks.Wanted wanted, Patience patience) {
      HeldBlocks held = null;
      long lostBefore = patience.lostNanos();
      try {
        held =
            peers.askAside(
                peer,
                (asked, left) -> client.blocks(asked, path, expected, wanted, left),
                patience);
      } finally {
        spread.heard(peer, held);
        if (!peer.equals(spread.owner())) {
          patience.forgiveLossesSince(lostBefore);
        }
      }
      if (held != null) {
        wrongClaims.said(peer, path, held, Blocks.count(expected));
        held.others().forEach(id -> add(spread, id));
      }
    }

    /** Members only: a peer may send arbitrary ids, and any number of them. */
    private void add(FileHolders spread, UUID id) {
      Member member = owners.other(id);
      if (member != null) {
        spread.add(member);
      }
    }

    /**
     * Reads a block of a large file, or a part of one, from a node that has it. Waits while other
     * nodes are getting it from its owner and make progress, but leaves the owner time to answer.
     */
    private @Nullable SourceStatus readSpread(
        List<Member> known, long offset, ByteBuffer range, Patience patience) {
      FileHolders spread = spread(known);
      int block = Math.toIntExact(offset / Blocks.SIZE);
      if (spread == null || (offset + range.remaining() - 1) / Blocks.SIZE != block) {
        return null;
      }
      spread.awaits(block);
      try {
        return readAwaited(spread, block, offset, range, patience);
      } finally {
        spread.awaitsNoMore(block);
      }
    }

    private @Nullable SourceStatus readAwaited(
        FileHolders spread, int block, long offset, ByteBuffer range, Patience patience) {
      while (patience.leftNanos() > OWNERS_NANOS) {
        Member overdue = spread.overdue();
        Member from = overdue == null ? spread.take(block) : null;
        if (from != null) {
          boolean isOwner = from.equals(spread.owner());
          FileHolders.End[] end = {FileHolders.End.FAILED};
          SourceStatus status;
          try {
            status =
                isOwner
                    ? readFromOwner(from, offset, range, patience)
                    : readPassedOn(from, offset, range, patience, end);
            if (status != null) {
              end[0] = FileHolders.End.READ;
            }
          } finally {
            spread.done(block, from, end[0]);
          }
          isPassedOn |= status != null && !isOwner;
          if (status != null || isOwner) {
            return status;
          }
          continue;
        }
        Member due = overdue == null ? spread.due() : overdue;
        if (due != null) {
          askForBlocks(spread, due, spread.wanted(block), patience);
        } else if (spread.isStuck() || !awaitNews(spread, patience)) {
          return null;
        }
      }
      return null;
    }

    /**
     * Reads from a node other than the owner. Lost time is not recorded: the node is not asked for
     * a while, and the other blocks come from other nodes.
     */
    private @Nullable SourceStatus readPassedOn(
        Member peer, long offset, ByteBuffer range, Patience patience, FileHolders.End[] end) {
      long lostBefore = patience.lostNanos();
      try {
        return askForBlock(peer, offset, range, patience, end);
      } finally {
        patience.forgiveLossesSince(lostBefore);
      }
    }

    private @Nullable SourceStatus askForBlock(
        Member peer, long offset, ByteBuffer range, Patience patience, FileHolders.End[] end) {
      return peers.askForCopy(
          peer,
          (holder, left) -> {
            try {
              SourceStatus status = fetch(holder, offset, range, true, left);
              wrongClaims.gave(holder);
              return status;
            } catch (PeerException e) {
              if (e.kind() == PeerException.Kind.BUSY) {
                end[0] = FileHolders.End.BUSY;
              } else if (e.kind() == PeerException.Kind.REFUSED) {
                wrongClaims.refused(holder, String.valueOf(e.getMessage()));
              }
              throw e;
            }
          },
          patience);
    }

    private @Nullable SourceStatus readCopy(
        Member peer, long offset, ByteBuffer range, Patience patience) {
      return peers.askForCopy(
          peer, (holder, left) -> fetch(holder, offset, range, true, left), patience);
    }

    private void probe(long offset, int size) throws FsException {
      try (SourceFile file = source.open(path)) {
        file.read(offset, ByteBuffer.allocateDirect(Math.min(size, Blocks.SIZE)));
      }
    }

    private SourceStatus fetch(
        Member peer, long offset, ByteBuffer range, boolean onlyCopies, Patience patience)
        throws PeerException {
      requireNoContradiction();
      PeerClient.Given given =
          client.fetch(peer, path, expected, offset, range.duplicate(), onlyCopies, patience);
      // A node that passes a block on may not have read the source; it accepted the block by this
      // same rule.
      if (!isWitnessed && isOnlyWitness(peer, path)) {
        own = own == null ? ownView.of(path, expected) : own;
        requireNoContradiction();
      }
      if (!isWitnessed && own != OwnView.Answer.NONE) {
        isWitnessed();
      }
      FileHolders spread = spread(owners.of(path));
      if (spread != null) {
        given.holders().forEach(id -> add(spread, id));
      }
      return given.status();
    }

    private void requireNoContradiction() throws PeerException {
      if (own == OwnView.Answer.OTHER) {
        throw new PeerException(
            PeerException.Kind.OTHER_VERSION, path + " has another version in this node's source");
      }
    }

    private synchronized SourceFile opened() throws FsException {
      SourceFile file = opened;
      if (file == null) {
        file = source.open(path);
        try {
          proof = required(file.status());
        } catch (FsException | RuntimeException e) {
          file.close();
          throw e;
        }
        opened = file;
        isWitnessed();
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

    /**
     * The source's status after the last read there, else what the last peer reported. Content that
     * nodes pass on is confirmed by the owner that read it from the source, or else by the source.
     */
    @Override
    public SourceStatus status() throws FsException {
      SourceStatus status = proof == null ? fromPeer : proof;
      if (proof == null && status != null && isPassedOn) {
        try (LostTime.Question asked = lostTime.ask(path)) {
          status =
              readFromOwners(owners.of(path), 0, ByteBuffer.allocateDirect(1), asked.patience());
        }
      }
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
