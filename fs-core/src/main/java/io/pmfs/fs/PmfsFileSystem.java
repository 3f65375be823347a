package io.pmfs.fs;

import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.metadata.NamespaceLostException;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.LentFile;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import io.pmfs.source.StoreStatistics;
import io.pmfs.stage.Stager;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.InodeBytes;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierStatus;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The operations of a read-only file system over a dataset, in the order in which a request uses
 * them: find a name, list, read. Names come from the namespace and bytes from the tiers; the source
 * supplies only what these lack. Thread-safe.
 *
 * <p>Failures are {@link FsException}s whose errno is passed to the kernel. The kernel checks
 * permissions (mount option {@code default_permissions}): this class does not.
 */
public final class PmfsFileSystem {
  public static final long ROOT = Namespace.ROOT;

  /** NAME_MAX of linux/limits.h; FUSE itself permits names of 1,024 bytes. */
  private static final int NAME_MAX = 255;

  /** The unit of st_blocks. */
  private static final int BLOCK_BYTES = 512;

  /** The source is asked ahead of readers if it takes longer than this to answer. */
  private static final long FAR_NANOS = 1_000_000;

  private static final Duration STATISTICS_AGE = Duration.ofMinutes(10);

  private final Namespace namespace;
  private final BackingStore source;
  private final Copies copies;
  private final Stager stager;
  private final Importer importer;
  private final AccessLists accessLists;
  private final KeptAttributes keptAttributes;

  /** The generations of the attributes for a bridge that has one inode for all of them. */
  private final InodeBytes shown = new InodeBytes();

  private final EntriesAhead compared;
  private final InstantSource clock;
  private volatile @Nullable KnownStatistics knownStatistics;
  private volatile @Nullable ReadObserver observer;
  private final LongAdder requests = new LongAdder();
  private final LongAdder errors = new LongAdder();

  /**
   * Reads the source's root.
   *
   * @param threads request the attributes of many files from the source concurrently
   * @throws FsException if the source's root cannot be read or is not a directory
   */
  public PmfsFileSystem(
      Namespace namespace,
      BackingStore source,
      Copies copies,
      Stager stager,
      ExecutorService threads,
      InstantSource clock)
      throws FsException {
    this(
        namespace,
        source,
        copies,
        stager,
        new Importer(namespace, source, copies, threads, clock),
        threads,
        clock);
    importer.importRoot();
  }

  /** Continues a session without a request to the source, which may be unavailable. */
  public static PmfsFileSystem resume(
      Namespace namespace,
      BackingStore source,
      Copies copies,
      Stager stager,
      ExecutorService threads,
      InstantSource clock) {
    Importer importer = new Importer(namespace, source, copies, threads, clock);
    return new PmfsFileSystem(namespace, source, copies, stager, importer, threads, clock);
  }

  private PmfsFileSystem(
      Namespace namespace,
      BackingStore source,
      Copies copies,
      Stager stager,
      Importer importer,
      ExecutorService threads,
      InstantSource clock) {
    this.namespace = namespace;
    this.source = source;
    this.copies = copies;
    this.stager = stager;
    this.importer = importer;
    this.keptAttributes = new KeptAttributes(namespace, source, threads);
    this.accessLists = new AccessLists(namespace, source, importer, threads);
    this.compared = new EntriesAhead(namespace, threads, importer::checked);
    this.clock = clock;
  }

  /**
   * The entry of a name in a directory; ENOENT if there is none, ENAMETOOLONG if the name is too
   * long.
   */
  public DirectoryEntry find(long directory, FileName name) throws FsException {
    DirectoryEntry entry = findIfPresent(directory, name);
    if (entry == null) {
      throw new FsException(Errno.ENOENT, name.toString());
    }
    return entry;
  }

  /**
   * Like {@link #find}; null if there is no such name. The caller may cache null, but not ENOENT,
   * which the source returned just now.
   */
  public @Nullable DirectoryEntry findIfPresent(long directory, FileName name) throws FsException {
    if (name.size() > NAME_MAX) {
      throw new FsException(Errno.ENAMETOOLONG, name.toString());
    }
    return importer.find(directory, name);
  }

  /** The inode of a number that was returned before, compared with the source in this session. */
  public Inode inode(long number) throws FsException {
    long begin = System.nanoTime();
    return compareAhead(importer.checked(number), begin);
  }

  /** Like {@link #inode}; null if only another node has described the file so far. */
  public @Nullable Inode verifiedInode(long number) throws FsException {
    long begin = System.nanoTime();
    Inode inode = importer.verified(number);
    return inode == null ? null : compareAhead(inode, begin);
  }

  /** Compares other entries of the directory, too, if comparing this one took long. */
  private Inode compareAhead(Inode inode, long begin) {
    if (System.nanoTime() - begin > FAR_NANOS) {
      compared.asked(inode.number(), inode.parent());
    }
    return inode;
  }

  /**
   * Passes the entries after a position, without . and .., in order, to the visitor until it
   * returns false. Never fails with ENOENT: readdir(3) takes that for the end of the directory, and
   * would hide its names.
   *
   * @param visitor may use the file system: unlike that of {@link Namespace#list} it holds no lock
   */
  public void list(long directory, long afterPosition, Namespace.EntryVisitor visitor)
      throws FsException {
    try {
      importer.list(directory, afterPosition, visitor);
    } catch (FsException e) {
      throw e.errno() == Errno.ENOENT
          ? new FsException(Errno.ESTALE, "inode " + directory + " is no longer at its path", e)
          : e;
    }
  }

  /**
   * Compares all entries of a directory with the source, many at once, unless this session did so
   * already.
   */
  public void compareAll(long directory) throws FsException {
    importer.ensureCompared(directory);
  }

  /** The target of a symbolic link. */
  public FileName readSymbolicLink(long number) throws FsException {
    Inode inode = importer.checked(number);
    if (inode.attributes().type() != FileType.SYMBOLIC_LINK) {
      throw new FsException(Errno.EINVAL, "inode " + number + " is not a symbolic link");
    }
    Instant changeTime = inode.attributes().changeTime();
    FileName kept = namespace.symbolicLinkTarget(number, changeTime);
    if (kept != null) {
      return kept;
    }
    FileName target = source.readSymbolicLink(path(number));
    namespace.putSymbolicLinkTarget(number, changeTime, target);
    return target;
  }

  public Map<FileName, byte[]> extendedAttributes(long number) throws FsException {
    return keptAttributes.of(importer.checked(number));
  }

  /** The access-control list of a file, for a reader. */
  public FileName accessList(long number) throws FsException {
    return accessLists.forReader(number);
  }

  public KeptAttributes keptAttributes() {
    return keptAttributes;
  }

  public AccessLists accessLists() {
    return accessLists;
  }

  /**
   * The statistics of the source's file system, at most ten minutes old: {@code find} asks for them
   * whenever it enters a mount, which must not cost a request to the source in every epoch.
   */
  public StoreStatistics statistics() throws FsException {
    KnownStatistics last = knownStatistics;
    Instant now = clock.instant();
    if (last == null || now.isAfter(last.asOf.plus(STATISTICS_AGE))) {
      last = new KnownStatistics(source.statistics(), now);
      knownStatistics = last;
    }
    return last.statistics;
  }

  private record KnownStatistics(StoreStatistics statistics, Instant asOf) {}

  /**
   * Whether the kernel must report opens, so that {@link #open} proves files that other nodes
   * described.
   */
  public boolean needsOpens() {
    return source.isSecondHand() && !importer.doubts().isSettled();
  }

  /** Whether other nodes describe files, so that a file may turn out to be of another version. */
  public boolean isSecondHand() {
    return source.isSecondHand();
  }

  /**
   * The generation of a file: another one begins when the file is found to be of another version
   * than described before. A change of the attributes that belongs to it follows: {@link #inode}
   * waits for that.
   */
  public byte generation(long number) {
    return importer.contradictions().generation(number);
  }

  /**
   * Checks that a file is of a generation that was shown.
   *
   * @throws FsException ESTALE if it is of another one
   */
  public void requireGeneration(long number, byte generation) throws FsException {
    if (generation(number) != generation) {
      throw new FsException(
          Errno.ESTALE, "inode " + number + " is of another version than other nodes reported");
    }
  }

  /** Proves, before a file is read, that it is of the version whose attributes were shown. */
  public void open(long number) throws FsException {
    open(number, shown.get(number));
  }

  /**
   * The same for a reader who was shown a generation.
   *
   * @throws FsException ESTALE if it is of another version: the caller then requests its attributes
   *     and opens it again
   */
  public void open(long number, byte generation) throws FsException {
    Inode inode = importer.checked(number);
    if (inode.attributes().type() != FileType.REGULAR || !source.isSecondHand()) {
      return;
    }
    if (importer.doubts().isDoubtedAtOpen(number)) {
      prove(inode);
    }
    requireGeneration(number, generation);
  }

  private void prove(Inode inode) throws FsException {
    try {
      stager.prove(inode);
    } catch (FsException e) {
      if (e.errno() != Errno.ESTALE) {
        throw e;
      }
      stager.prove(lookAgain(inode.number()));
    }
    importer.doubts().prove(inode.number());
  }

  /** Whether a file's copies are of its current version, for another node. */
  public boolean provesCopy(Inode inode) throws FsException {
    if (!importer.doubts().isDoubted(inode.number())) {
      return true;
    }
    try {
      stager.proveCopy(inode);
      importer.doubts().prove(inode.number());
      return true;
    } catch (FsException e) {
      if (e.errno() != Errno.ESTALE) {
        throw e;
      }
      lookAgain(inode.number());
      return false;
    }
  }

  /** Whether a file was found to be of another version than the attributes shown last. */
  public boolean isStale(long number) {
    return generation(number) != shown.get(number);
  }

  /** Called before a file's attributes are read for the kernel, which must get them. */
  public void refresh(long number) {
    shown.set(number, generation(number));
  }

  /**
   * The inode as the source itself reports it now. A file of another version is not read until its
   * attributes were shown again.
   */
  public Inode lookAgain(long number) throws FsException {
    stager.restart(number);
    return importer.lookAgain(number);
  }

  /** The inode; compared with the source itself if it was not proved. */
  public Inode lookAgainIfDoubted(long number) throws FsException {
    return importer.doubts().isDoubted(number) ? lookAgain(number) : importer.checked(number);
  }

  /**
   * Reads a range of a regular file, truncated at the end of the file.
   *
   * @return bytes passed to the sink
   */
  public int read(long number, long offset, int size, ReadSink sink) throws FsException {
    return read(number, offset, size, sink, shown.get(number));
  }

  /** The same for a reader who was shown a generation; ESTALE if the file is of another one. */
  public int read(long number, long offset, int size, ReadSink sink, byte generation)
      throws FsException {
    requests.increment();
    try {
      Inode inode = importer.checked(number);
      switch (inode.attributes().type()) {
        case REGULAR -> {}
        case DIRECTORY -> throw new FsException(Errno.EISDIR, "inode " + number);
        default -> throw new FsException(Errno.EINVAL, "inode " + number + " is not a file");
      }
      if (offset < 0 || size < 0) {
        throw new FsException(Errno.EINVAL, "a negative offset or size");
      }
      ReadObserver watching = observer;
      return watching == null
          ? deliver(inode, offset, size, sink, generation)
          : deliverWatched(inode, offset, size, sink, generation, watching);
    } catch (FsException | RuntimeException | Error e) {
      errors.increment();
      throw e;
    }
  }

  private int deliver(Inode inode, long offset, int size, ReadSink sink, byte generation)
      throws FsException {
    int total = (int) Math.min(size, Math.max(0, inode.attributes().size() - offset));
    sink.expect(total);
    int done = 0;
    while (done < total) {
      done += deliverPiece(inode, offset + done, total - done, sink, generation);
    }
    return done;
  }

  private int deliverPiece(Inode inode, long offset, int count, ReadSink sink, byte generation)
      throws FsException {
    if (source.isSecondHand()) {
      requireGeneration(inode.number(), generation);
    }
    try {
      return stager.serve(inode, offset, count, sink);
    } catch (FsException | NamespaceLostException e) {
      if (e instanceof FsException failed
          && failed.errno() == Errno.ESTALE
          && source.isSecondHand()) {
        Inode now = lookAgain(inode.number());
        requireGeneration(inode.number(), generation);
        if (!now.attributes().version().equals(inode.attributes().version())) {
          // The new attributes were shown after this read began with the old size.
          throw failed;
        }
        return stager.serve(now, offset, count, sink);
      }
      boolean isLost = e instanceof NamespaceLostException;
      if (e instanceof FsException failed) {
        isLost = failed.errno() == Errno.ESTALE && namespace.losses() > 0;
      }
      if (!isLost) {
        throw e;
      }
      // The state lost its path; find it again.
      return importer.whole(
          () -> stager.serve(importer.checked(inode.number()), offset, count, sink));
    }
  }

  private int deliverWatched(
      Inode inode, long offset, int size, ReadSink sink, byte generation, ReadObserver watching)
      throws FsException {
    watching.began(inode.number());
    try {
      int done = deliver(inode, offset, size, sink, generation);
      watching.delivered(inode.number(), inode.attributes().size(), offset, done);
      return done;
    } finally {
      watching.ended(inode.number());
    }
  }

  /**
   * The start of the next data in a regular file at or after an offset, as lseek(2) defines it for
   * SEEK_DATA; ENXIO if there is none.
   */
  public long seekData(long number, long offset) throws FsException {
    return seek(number, offset, true);
  }

  /**
   * The start of the next hole at or after an offset; the end of the file counts as one
   * (SEEK_HOLE).
   */
  public long seekHole(long number, long offset) throws FsException {
    return seek(number, offset, false);
  }

  /**
   * Asks the source, unless the file's blocks cover all its bytes. Reports the whole file as data,
   * which is always allowed, if the source cannot answer or has replaced the file.
   */
  private long seek(long number, long offset, boolean forData) throws FsException {
    Inode inode = importer.checked(number);
    Attributes attributes = inode.attributes();
    if (attributes.type() != FileType.REGULAR) {
      throw new FsException(Errno.EINVAL, "inode " + number + " is not a file");
    }
    if (offset < 0 || offset >= attributes.size()) {
      throw new FsException(Errno.ENXIO, "inode " + number + " at " + offset);
    }
    long allData = forData ? offset : attributes.size();
    if (attributes.blocks() * BLOCK_BYTES >= attributes.size()) {
      return allData;
    }
    try (SourceFile file = source.open(path(number))) {
      SourceStatus now = file.status();
      if (!inode.isFile(now.identity(), now.attributes())
          || !now.attributes().version().equals(attributes.version())) {
        return allData;
      }
      long found = forData ? file.seekData(offset) : file.seekHole(offset);
      return Math.min(found, attributes.size());
    } catch (FsException e) {
      if (e.errno() == Errno.ENXIO) {
        throw e;
      }
      return allData;
    }
  }

  /**
   * The file of a complete, raw and verified copy, for a kernel that reads it without pmfs; null if
   * there is none.
   */
  public @Nullable Path copyFile(long number) throws FsException {
    Inode inode = importer.checked(number);
    boolean regular = inode.attributes().type() == FileType.REGULAR;
    Path file = regular && inode.attributes().size() > 0 ? stager.copyFile(inode) : null;
    if (file != null) {
      leftToKernel(number);
    }
    return file;
  }

  private void leftToKernel(long number) {
    ReadObserver watching = observer;
    if (watching != null) {
      watching.opened(number);
    }
  }

  /** Whether to ask for files to {@link #lend}. */
  public boolean lends() {
    return source.lends();
  }

  /**
   * A file on loan with a regular file's whole content, for a kernel that reads it without pmfs;
   * null if there is none now. Opens the file at the source, as the first read would, and begins to
   * copy it.
   *
   * @param most bytes that may be lent and not copied yet
   */
  public @Nullable LentFile lend(long number, long most) {
    LentFile file;
    try {
      file = stager.lend(importer.checked(number), most);
    } catch (FsException | RuntimeException | Error e) {
      // The daemon serves the file: the first read fails too, or looks up the file again.
      return null;
    }
    if (file != null) {
      leftToKernel(number);
    }
    return file;
  }

  /** Observes reads. Called on the reader's thread, by many threads. */
  public interface ReadObserver {
    /** A read begins. {@link #ended} follows, after {@link #delivered} if the read succeeded. */
    void began(long number);

    void ended(long number);

    void delivered(long number, long fileSize, long offset, int count);

    /** The kernel reads the file without pmfs. */
    void opened(long number);
  }

  public void observe(@Nullable ReadObserver next) {
    observer = next;
  }

  /**
   * The copies in working tiers.
   *
   * @param bytes the space that they use
   * @param fileBytes the part used by separate files, not by bundles or a pool; -1 while it is
   *     counted after an unclean stop
   */
  public record Copied(long files, long bytes, long fileBytes) {}

  public Copied copied() {
    long files = 0;
    long bytes = 0;
    long fileBytes = 0;
    for (Tier tier : copies.tiers()) {
      if (!tier.hasFailed()) {
        TierStatus status = tier.status();
        files += status.copies();
        bytes += status.usedBytes();
        Tier.Usage usage = tier.usage();
        fileBytes = usage == null || fileBytes < 0 ? -1 : fileBytes + usage.fileBytes();
      }
    }
    return new Copied(files, bytes, fileBytes);
  }

  /** The highest inode number given to a file or directory. */
  public long lastNumber() {
    return namespace.lastNumber();
  }

  /**
   * Predicts the raw copies of all files; null if a directory was not listed yet. Takes about a
   * second per million files.
   */
  public @Nullable Copied expectedCopies() {
    Expected expected = new Expected();
    namespace.listInodes(expected::add);
    return expected.isComplete
        ? new Copied(expected.files, expected.bytes, expected.fileBytes)
        : null;
  }

  private final class Expected {
    private long files;
    private long bytes;
    private long fileBytes;
    private boolean isComplete = true;

    /** False for a directory that has not been listed: the sums are then useless. */
    boolean add(Inode inode) {
      Attributes attributes = inode.attributes();
      if (attributes.type() == FileType.REGULAR) {
        files++;
        bytes += attributes.size();
        fileBytes += copies.isBundled(attributes.size()) ? 0 : attributes.size();
      } else if (attributes.type() == FileType.DIRECTORY) {
        isComplete = inode.listing() != null;
      }
      return isComplete;
    }
  }

  /** Whether there is a copy that only pmfs can read. */
  public boolean hasCopyReadByUs(long number) throws FsException {
    return copies.isReadByUs(inode(number));
  }

  /** Calls the listener when a file returned by {@link #copyFile} is no longer a valid copy. */
  public void onCopyGone(LongConsumer listener) {
    copies.onDrop(listener);
  }

  /** Requests and errors since the start; {@link Stager#readOrigins} has the bytes. */
  public record ReadStatistics(long requests, long errors) {}

  public ReadStatistics readStatistics() {
    return new ReadStatistics(requests.sum(), errors.sum());
  }

  public Importer importer() {
    return importer;
  }

  private FileName path(long number) throws FsException {
    return importer.path(number);
  }
}
