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
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.formats.Blocks;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * The contents of a {@link PeerStore}: a file's blocks come from its owner, from other nodes that
 * have them, and last from the source. Thread-safe.
 */
final class PeerFiles implements AutoCloseable {
  /** How long a thread without a block waits before it looks for one again. */
  private static final long CHOICE_NANOS = 100_000_000L;

  /** The share of a reader's patience that is kept for the owners of a large file. */
  private static final long OWNERS_NANOS = 1_000_000_000L;

  /**
   * Set while this node answers a peer. Not an argument: it would pass through the stager and all
   * stores between, which know nothing of peers, and one that forgets it would let requests go in
   * circles.
   */
  private static final ThreadLocal<Boolean> ANSWERING = ThreadLocal.withInitial(() -> false);

  private final BackingStore source;
  private final Owners owners;
  private final PeerClient client;
  private final PeerQuestions peers;
  private final LostTime lostTime;
  private final Witnesses witnesses;
  private final OwnView ownView;
  private final WrongClaims wrongClaims = new WrongClaims();

  /** Files whose content is being requested from owners, by threads that hold a block's claim. */
  private final Multiset<FileName> readElsewhere = ConcurrentHashMultiset.create();

  /** Files read from the source instead of a peer; their attributes come from it, too. */
  private final Cache<FileName, Boolean> readHere =
      CacheBuilder.newBuilder().maximumSize(10_000).expireAfterWrite(Duration.ofMinutes(1)).build();

  private final LongAdder bytes = new LongAdder();

  PeerFiles(
      BackingStore source,
      Owners owners,
      PeerClient client,
      PeerQuestions peers,
      LostTime lostTime,
      Witnesses witnesses) {
    this.source = source;
    this.owners = owners;
    this.client = client;
    this.peers = peers;
    this.lostTime = lostTime;
    this.witnesses = witnesses;
    this.ownView = new OwnView(source);
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

  SourceFile open(FileName path, SourceVersion expected) {
    return new PeerFile(path, expected);
  }

  /** Bytes that peers gave. */
  long bytes() {
    return bytes.sum();
  }

  /** Removes peers that are no longer members. */
  void keepOnly(Set<UUID> members) {
    wrongClaims.keepOnly(members);
  }

  /** See {@link PeerStore#readsElsewhere}. */
  boolean isReadElsewhere(FileName path) {
    return readElsewhere.contains(path);
  }

  /** Whether a file was just read from the source instead of a peer. */
  boolean isReadHere(FileName path) {
    return readHere.getIfPresent(path) != null;
  }

  /** The source is the caller's. */
  @Override
  public void close() {
    ownView.close();
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
      this.isWitnessed = witnesses.isWitnessed(path, expected);
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
      if (isWitnessed || witnesses.isDescribedHere(path)) {
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
      witnesses.witnessed(path, expected);
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
      if (!isWitnessed && witnesses.isOnlyWitness(peer, path)) {
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
        } catch (Throwable e) {
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
