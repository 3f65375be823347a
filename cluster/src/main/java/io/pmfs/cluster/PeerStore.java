package io.pmfs.cluster;

import com.google.common.collect.ConcurrentHashMultiset;
import com.google.common.collect.Multiset;
import io.pmfs.cluster.client.PeerClient;
import io.pmfs.cluster.members.Member;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceAccess;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import io.pmfs.source.StoreStatistics;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
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
  private final BackingStore source;
  private final Owners owners;
  private final PeerClient client;
  private final PeerQuestions peers;
  private final LostTime lostTime;
  private final Witnesses witnesses;
  private final PeerFiles files;

  /** Whether peers are trusted only with names and contents. */
  private final boolean verifies;

  /**
   * Paths whose names or attributes are being requested from other nodes, by threads that hold the
   * path's lock.
   */
  private final Multiset<FileName> askedElsewhere = ConcurrentHashMultiset.create();

  /**
   * Directories that are being listed here: only the source knows their contents, and whether they
   * change meanwhile.
   */
  private final Set<FileName> listedHere = ConcurrentHashMap.newKeySet();

  /** Directories just listed by a peer, which is then also asked for their attributes. */
  private final Set<FileName> listedElsewhere = ConcurrentHashMap.newKeySet();

  /**
   * @param isOpenToOthers whether users other than the daemon's can enter the mount
   * @param patience how long a reader waits for all peers together
   */
  PeerStore(
      BackingStore source,
      Owners owners,
      PeerClient client,
      PeerQuestions peers,
      boolean isOpenToOthers,
      Duration patience) {
    this.verifies = isOpenToOthers;
    this.source = source;
    this.owners = owners;
    this.client = client;
    this.peers = peers;
    this.lostTime = new LostTime(patience, System::nanoTime);
    this.witnesses = new Witnesses(isOpenToOthers);
    this.files = new PeerFiles(source, owners, client, peers, lostTime, witnesses);
  }

  /** Bytes and answers that peers gave, and how often a peer gave none. */
  public record Statistics(long bytes, long answers, long misses) {
    static final Statistics NONE = new Statistics(0, 0, 0);
  }

  public Statistics statisticsOfPeers() {
    return new Statistics(files.bytes(), peers.answers(), peers.misses());
  }

  /** Removes peers that are no longer members. */
  void keepOnly(Set<UUID> members) {
    files.keepOnly(members);
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
    return files.isReadElsewhere(path);
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

  /** Whether to ask the source, as it has just answered the rest of the same listing or file. */
  private boolean isAskedHere(FileName path) {
    return listedHere.remove(path)
        || listedHere.contains(Paths.parent(path))
        || files.isReadHere(path);
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    if (verifies) {
      return source.status(path);
    }
    boolean isListed = listedElsewhere.remove(path);
    if (isListed || (path.size() > 0 && !isAskedHere(path))) {
      UUID[] by = {Witnesses.HERE};
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
          witnesses.described(Paths.parent(path), by[0]);
        }
        return status;
      }
    }
    SourceStatus status = ownStatus(path);
    if (status.attributes().type() != FileType.DIRECTORY) {
      witnesses.describedHere(Paths.parent(path));
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

  @Override
  public boolean listWithStatus(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException {
    UUID[] by = {Witnesses.HERE};
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
      witnesses.listed(directory, by[0]);
      listedElsewhere.add(directory);
      return true;
    }
    witnesses.listed(directory, Witnesses.HERE);
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
    return files.open(path, expected);
  }

  @Override
  public void close() {
    peers.close();
    files.close();
    source.close();
  }
}
