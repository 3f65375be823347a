package io.pmfs.cluster;

import com.google.common.base.Suppliers;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerService;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.Checksums;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.stage.Copies;
import io.pmfs.stage.Stager;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.ReadSink;
import io.pmfs.tier.SourceStatus;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.UUID;
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

  private final PmfsFileSystem fileSystem;
  private final Namespace namespace;
  private final Copies copies;
  private final Stager stager;
  private final Owners owners;
  private final Predicate<FileName> asksElsewhere;
  private final Predicate<FileName> readsElsewhere;
  private final HolderHints hints = new HolderHints();

  /**
   * @param asksElsewhere whether this node is asking another node about a path; peers that ask for
   *     that path meanwhile are refused
   * @param readsElsewhere the same for a file's content, unless this node has a copy
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
        Inode inode = fileSystem.inode(entry.inode());
        batch.add(new SourceEntry(entry.name(), inode.identity(), inode.attributes()));
      }
      batches.accept(batch);
      position = entries.get(entries.size() - 1).position();
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
    if (!reads && !hasCopy) {
      throw refused(path + " has no copy on this node");
    }
    if (hasCopy && !fileSystem.provesCopy(inode)) {
      throw otherVersion(path);
    }
    List<UUID> holders =
        reads ? hints.others(path, inode.attributes().version(), asker) : List.of();
    return new DatasetContent(path, inode, reads, holders);
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

  /** The same without asking the source or a peer; 0 if the path is unknown. */
  private long findKnown(FileName path) {
    long at = PmfsFileSystem.ROOT;
    for (FileName name : Paths.names(path)) {
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
      return recorded.get().stream().mapToInt(checksums -> checksums.get(block)).findFirst();
    }

    @Override
    public void copyTo(long offset, int size, ReadSink sink) throws FsException, PeerException {
      int done = 0;
      while (done < size) {
        long from = offset + done;
        int rest = size - done;
        if (reads) {
          mustNotWaitForContent();
        }
        int count =
            reads
                ? read(() -> stager.servePeer(inode, from, rest, sink))
                : stager.servePeerFromCopy(inode, from, rest, sink);
        if (count == 0) {
          throw refused("the copy on this node is gone");
        }
        done += count;
      }
    }

    @Override
    public void prove() throws FsException, PeerException {
      if (reads) {
        mustNotWaitForContent();
        read(
            () -> {
              stager.prove(inode);
              return 0;
            });
      }
    }

    /**
     * Serves no byte of another version: this node may lag behind the others, or they behind it.
     */
    private int read(PeerStore.Answer answer) throws FsException, PeerException {
      try {
        return PeerStore.answering(answer);
      } catch (FsException e) {
        if (e.errno() != Errno.ESTALE) {
          throw e;
        }
        fileSystem.lookAgain(inode.number());
        throw otherVersion(path);
      }
    }

    private void mustNotWaitForContent() throws PeerException {
      if (readsElsewhere.test(path) && !copies.has(inode)) {
        throw refused("this node is itself asking another node for the content of " + path);
      }
    }
  }
}
