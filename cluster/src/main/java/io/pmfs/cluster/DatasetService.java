package io.pmfs.cluster;

import com.google.common.base.Suppliers;
import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.server.PeerService;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.Checksums;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.Stager;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.formats.Blocks;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Semaphore;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Answers peers with the names and contents of a mounted dataset. To resolve a path, this node may
 * have to ask the owners of the directories above it; these are always closer to the root, so
 * requests do not go in circles. Contents come from the tiers and the source only.
 */
final class DatasetService implements PeerService {
  private static final int ENTRIES_AT_ONCE = 1024;

  private static final int MOST_PASSED_ON = 3;
  private static final int MOST_DIRECTORIES = 10_000;

  private final PmfsFileSystem fileSystem;
  private final Namespace namespace;
  private final Copies copies;
  private final Stager stager;
  private final Owners owners;
  private final Predicate<FileName> asksElsewhere;
  private final Predicate<FileName> readsElsewhere;
  private final HolderHints hints = new HolderHints();

  /** Names do not change while mounted, so a path leads to one directory for the whole session. */
  private final Cache<FileName, Long> directories =
      CacheBuilder.newBuilder().maximumSize(MOST_DIRECTORIES).build();

  /** Limit of blocks of unfinished copies that are being sent; more would only make each slower. */
  private final Semaphore passingOn = new Semaphore(MOST_PASSED_ON);

  /**
   * @param asksElsewhere whether this node is asking another node about a path; peers that ask for
   *     that path meanwhile are refused
   * @param readsElsewhere whether this node is reading a file's content from another node; peers
   *     that ask for it are refused, unless this node has a copy
   */
  DatasetService(
      PmfsFileSystem fileSystem,
      Namespace namespace,
      Copies copies,
      Stager stager,
      Owners owners,
      Predicate<FileName> asksElsewhere,
      Predicate<FileName> readsElsewhere) {
    this.asksElsewhere = asksElsewhere;
    this.readsElsewhere = readsElsewhere;
    this.fileSystem = fileSystem;
    this.namespace = namespace;
    this.copies = copies;
    this.stager = stager;
    this.owners = owners;
  }

  @Override
  public void list(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException, PeerException {
    mustOwn(directory);
    mustNotWait(directory);
    long number = find(directory);
    fileSystem.compareAll(number);
    long position = 0;
    while (true) {
      List<DirectoryEntry> entries = new ArrayList<>();
      fileSystem.list(
          number,
          position,
          entry -> {
            entries.add(entry);
            return entries.size() < ENTRIES_AT_ONCE;
          });
      if (entries.isEmpty()) {
        return;
      }
      List<SourceEntry> batch = new ArrayList<>(entries.size());
      for (DirectoryEntry entry : entries) {
        batch.add(described(entry));
      }
      batches.accept(batch);
      position = entries.get(entries.size() - 1).position();
    }
  }

  /** An error at one file affects only its own entry. */
  private SourceEntry described(DirectoryEntry entry) {
    try {
      Inode inode = fileSystem.inode(entry.inode());
      return new SourceEntry(entry.name(), inode.identity(), inode.attributes());
    } catch (FsException e) {
      return SourceEntry.unknown(entry.name());
    }
  }

  @Override
  public SourceStatus status(FileName path) throws FsException, PeerException {
    // The node that lists a directory also gives its attributes.
    if (!owners.isOwn(path)) {
      mustOwn(Paths.parent(path));
    }
    mustNotWait(path);
    Inode inode = fileSystem.inode(find(path));
    return new SourceStatus(inode.identity(), inode.attributes());
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws FsException, PeerException {
    mustOwn(Paths.parent(path));
    return fileSystem.readSymbolicLink(find(path));
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException, PeerException {
    mustOwn(Paths.parent(path));
    return fileSystem.extendedAttributes(find(path));
  }

  @Override
  public Content open(
      FileName path, @Nullable SourceVersion expected, boolean onlyCopies, @Nullable UUID asker)
      throws FsException, PeerException {
    long number = findKnown(path);
    boolean reads = !onlyCopies && owners.isOwn(path);
    if (number == 0 && !reads) {
      throw refused(path + " is unknown on this node");
    }
    Inode inode = fileSystem.inode(number == 0 ? find(path) : number);
    Attributes attributes = inode.attributes();
    switch (attributes.type()) {
      case REGULAR -> {}
      case DIRECTORY -> throw new FsException(Errno.EISDIR, path.toString());
      default -> throw new FsException(Errno.EINVAL, path + " is not a file");
    }
    if (expected != null && !attributes.version().equals(expected)) {
      if (reads) {
        inode = fileSystem.lookAgainIfDoubted(inode.number());
      }
      if (!inode.attributes().version().equals(expected)) {
        throw otherVersion(path);
      }
    }
    boolean hasCopy = copies.has(inode);
    if (!reads && !hasCopy && stager.blocksBeingCopied(inode) == null) {
      throw refused(path + " has no copy on this node");
    }
    if (hasCopy && !fileSystem.provesCopy(inode)) {
      throw otherVersion(path);
    }
    List<UUID> holders =
        reads ? hints.others(path, inode.attributes().version(), asker) : List.of();
    return new DatasetContent(path, inode, reads, holders);
  }

  @Override
  public HeldBlocks blocks(
      FileName path,
      @Nullable SourceVersion expected,
      @Nullable UUID asker,
      HeldBlocks.Wanted wanted)
      throws PeerException {
    Inode inode = namespace.inode(findKnown(path));
    if (inode == null || inode.attributes().type() != FileType.REGULAR) {
      throw refused(path + " is unknown on this node");
    }
    SourceVersion version = inode.attributes().version();
    if (expected != null && !version.equals(expected)) {
      throw otherVersion(path);
    }
    int count = Blocks.count(version);
    BitSet has = stager.blocksBeingCopied(inode);
    if (copies.has(inode)) {
      has = new BitSet();
      has.set(0, count);
    }
    if (!owners.isOwn(path) || version.size() < HolderHints.LARGE_BYTES) {
      if (has == null) {
        throw refused(path + " has no copy on this node");
      }
      return HeldBlocks.of(count, has, 0, List.of(), List.of());
    }
    Handout handout = hints.handout(path, version);
    List<Integer> granted = handout.grant(asker, wanted);
    return HeldBlocks.of(
        count,
        has == null ? new BitSet() : has,
        handout.askers(),
        others(path, version, asker, handout),
        granted);
  }

  /** Nodes that have read the file, and some of those that are reading it. */
  private List<UUID> others(
      FileName path, SourceVersion version, @Nullable UUID asker, Handout handout) {
    Set<UUID> others = new LinkedHashSet<>(hints.others(path, version, asker));
    others.addAll(handout.others(asker));
    return List.copyOf(others);
  }

  private void mustOwn(FileName directory) throws PeerException {
    if (!owners.isOwn(directory)) {
      throw refused("another node owns directory " + directory);
    }
  }

  private void mustNotWait(FileName path) throws PeerException {
    if (asksElsewhere.test(path)) {
      throw refused("this node is itself asking another node for " + path);
    }
  }

  private static PeerException otherVersion(FileName path) {
    return new PeerException(
        PeerException.Kind.OTHER_VERSION, path + " has another version on this node");
  }

  private static PeerException refused(String why) {
    return new PeerException(PeerException.Kind.REFUSED, why);
  }

  private long find(FileName path) throws FsException {
    long at = PmfsFileSystem.ROOT;
    for (FileName name : Paths.names(path)) {
      at = fileSystem.find(at, name).inode();
    }
    return at;
  }

  /** The size that is known without asking the source or a peer; 0 if the path is unknown. */
  private long findKnown(FileName path) {
    FileName parent = Paths.parent(path);
    Long directory = directories.getIfPresent(parent);
    if (directory == null) {
      directory = findKnown(PmfsFileSystem.ROOT, Paths.names(parent));
      if (directory == 0) {
        return 0;
      }
      directories.put(parent, directory);
    }
    return path.size() == 0 ? directory : findKnown(directory, List.of(Paths.name(path)));
  }

  private long findKnown(long from, List<FileName> names) {
    long at = from;
    for (FileName name : names) {
      DirectoryEntry entry = namespace.find(at, name);
      if (entry == null) {
        return 0;
      }
      at = entry.inode();
    }
    return at;
  }

  private final class DatasetContent implements Content {
    private final FileName path;
    private final Inode inode;
    private final boolean reads;
    private final List<UUID> holders;
    private final Supplier<Optional<Checksums>> recorded;

    DatasetContent(FileName path, Inode inode, boolean reads, List<UUID> holders) {
      this.path = path;
      this.inode = inode;
      this.reads = reads;
      this.holders = holders;
      this.recorded = Suppliers.memoize(() -> Optional.ofNullable(copies.checksums(inode)));
    }

    @Override
    public SourceStatus status() {
      return new SourceStatus(inode.identity(), inode.attributes());
    }

    @Override
    public List<UUID> holders() {
      return holders;
    }

    @Override
    public OptionalInt checksum(int block) {
      OptionalInt known =
          recorded.get().stream().mapToInt(checksums -> checksums.get(block)).findFirst();
      return known.isPresent() ? known : stager.checksumBeingCopied(inode, block);
    }

    @Override
    public void copyTo(long offset, int size, ReadSink sink) throws FsException, PeerException {
      int done = 0;
      while (done < size) {
        long from = offset + done;
        int rest = size - done;
        int count =
            reads && mayWait()
                ? read(() -> stager.servePeer(inode, from, rest, sink))
                : passOn(from, rest, sink);
        if (count == 0) {
          throw refused("the copy on this node is gone, or does not have this part yet");
        }
        done += count;
      }
      hints.sent(path, inode.attributes().version(), offset, size);
    }

    @Override
    public void prove() throws FsException, PeerException {
      if (reads) {
        if (!mayWait()) {
          throw refused("this node is itself asking another node for the content of " + path);
        }
        read(
            () -> {
              stager.prove(inode);
              return 0;
            });
      }
    }

    /** Never sends bytes of another version: this node or the peer may have an older one. */
    private int read(PeerFiles.Answer answer) throws FsException, PeerException {
      try {
        return PeerFiles.answering(answer);
      } catch (FsException e) {
        if (e.errno() != Errno.ESTALE) {
          throw e;
        }
        fileSystem.lookAgain(inode.number());
        throw otherVersion(path);
      }
    }

    /** Sends what this node has, and refuses if its link is busy. */
    private int passOn(long from, int size, ReadSink sink) throws FsException, PeerException {
      if (reads || copies.has(inode)) {
        return stager.servePeerFromCopy(inode, from, size, sink);
      }
      if (!passingOn.tryAcquire()) {
        throw new PeerException(
            PeerException.Kind.BUSY, "this node is passing on other blocks; ask another");
      }
      try {
        return stager.servePeerFromCopy(inode, from, size, sink);
      } finally {
        passingOn.release();
      }
    }

    /** Fails if this node may itself be waiting for another one to send this content. */
    private boolean mayWait() {
      return !readsElsewhere.test(path) || copies.has(inode);
    }
  }
}
