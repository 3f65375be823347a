package io.pmfs.source;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * A source in memory: a tree that tests can change, with contents generated from seeds. Each change
 * advances the clock by a second. A {@link FaultyStore} around it can fail.
 */
public final class FakeStore implements BackingStore {
  private static final int BATCH_NAMES = 500;

  private final Node root; // the tree is GUARDED_BY(this)
  private long lastInode; // GUARDED_BY(this)
  private Instant now = Instant.parse("2024-01-01T00:00:00.123456789Z"); // GUARDED_BY(this)
  private final AtomicInteger openFiles = new AtomicInteger();
  private volatile int sequenceCount;
  private volatile boolean keepsLists = true;
  private volatile boolean keepsChangeTimes = true;
  private volatile LongUnaryOperator numbers = LongUnaryOperator.identity();

  public FakeStore() {
    this(1000);
  }

  /** A store whose inode numbers are above those of another. */
  public FakeStore(long lastInode) {
    this.lastInode = lastInode;
    root = new Node(++this.lastInode, FileType.DIRECTORY, 0755);
    touch(root);
  }

  /** A file, perhaps with several names. */
  public static final class Node {
    private final long inode;
    private final FileType type;
    private final Map<FileName, Node> children = new LinkedHashMap<>();
    private final Map<FileName, byte[]> xattrs = new LinkedHashMap<>();
    private final AtomicLong bytesRead = new AtomicLong();
    private final int permissions;
    private int linkCount = 1;
    private long seed;
    private long size;
    private long claimedSize = -1;
    private long holeFrom = -1;
    private long holeTo = -1;
    private FileName target = FileName.of("");
    private Instant modified = Instant.EPOCH;
    private Instant changed = Instant.EPOCH;

    private Node(long inode, FileType type, int permissions) {
      this.inode = inode;
      this.type = type;
      this.permissions = permissions;
    }
  }

  /**
   * Generated content from an offset on; no two blocks are alike. With a negative seed it
   * compresses to half its size, otherwise not at all. Eight bytes at a time: tests read much of
   * it.
   */
  public static byte[] content(long seed, long offset, int size) {
    int skipped = (int) (offset % Long.BYTES);
    ByteBuffer words = ByteBuffer.allocate((skipped + size) / Long.BYTES * Long.BYTES + Long.BYTES);
    for (long index = offset / Long.BYTES; words.hasRemaining(); index++) {
      words.putLong(word(seed, index));
    }
    return Arrays.copyOfRange(words.array(), skipped, skipped + size);
  }

  /** SplitMix64, of which each byte depends on each bit of what goes in. */
  private static long word(long seed, long index) {
    long mixed = (seed + 1) * 0xD1B54A32D192ED03L + index * 0x9E3779B97F4A7C15L;
    mixed = (mixed ^ mixed >>> 30) * 0xBF58476D1CE4E5B9L;
    mixed = (mixed ^ mixed >>> 27) * 0x94D049BB133111EBL;
    mixed ^= mixed >>> 31;
    return seed < 0 ? (mixed & 0x0707070707070707L) + 0x6161616161616161L : mixed;
  }

  // Changes.

  public synchronized void directory(String path) {
    put(path, new Node(++lastInode, FileType.DIRECTORY, 0755));
  }

  public synchronized void file(String path, long seed, long size) {
    file(FileName.of(path), seed, size);
  }

  /** Adds a file, or replaces one by a new file. */
  public synchronized void file(FileName path, long seed, long size) {
    Node node = new Node(++lastInode, FileType.REGULAR, 0644);
    node.seed = seed;
    node.size = size;
    put(path, node);
  }

  /** Changes a file in place, under all its names. */
  public synchronized void write(String path, long seed, long size) {
    Node node = require(path);
    node.seed = seed;
    node.size = size;
    touch(node);
  }

  /** Changes a file in place, but not its times. */
  public synchronized void writeSecretly(String path, long seed, long size) {
    Node node = require(path);
    node.seed = seed;
    node.size = size;
  }

  public synchronized void symbolicLink(String path, String target) {
    Node node = new Node(++lastInode, FileType.SYMBOLIC_LINK, 0777);
    node.target = FileName.of(target);
    node.size = node.target.size();
    put(path, node);
  }

  /** Replaces a link by one with the same inode number, as file systems can. */
  public synchronized void relink(String path, String target) {
    Node node = new Node(require(path).inode, FileType.SYMBOLIC_LINK, 0777);
    node.target = FileName.of(target);
    node.size = node.target.size();
    put(path, node);
  }

  public synchronized void special(String path, FileType type) {
    put(path, new Node(++lastInode, type, 0600));
  }

  public synchronized void hardLink(String path, String existing) {
    Node node = require(existing);
    node.linkCount++;
    put(path, node);
    node.changed = now;
  }

  public synchronized void xattr(String path, String name, byte[] value) {
    Node node = require(path);
    node.xattrs.put(FileName.of(name), value);
    tick();
    node.changed = now;
  }

  public synchronized void remove(String path) {
    Node parent = parent(FileName.of(path));
    Node gone = parent.children.remove(name(FileName.of(path)));
    if (gone == null) {
      throw new IllegalArgumentException(path);
    }
    touch(parent);
    gone.linkCount--;
    gone.changed = now;
  }

  public synchronized void rename(String from, String to) {
    Node node = require(from);
    touch(parent(FileName.of(from)));
    parent(FileName.of(from)).children.remove(name(FileName.of(from)));
    put(to, node);
  }

  public synchronized void setModified(String path, Instant time) {
    require(path).modified = time;
  }

  /** Makes stat return a wrong size; -1 for the true one. */
  public synchronized void lieAboutSize(String path, long size) {
    require(path).claimedSize = size;
  }

  /** Shows other inode numbers from now on. */
  public void renumber(LongUnaryOperator next) {
    numbers = next;
  }

  /** Shows modification times instead of change times from now on. */
  public void keepNoChangeTimes() {
    keepsChangeTimes = false;
  }

  /** Makes a hole in a file, which then reports fewer blocks. */
  public synchronized void hole(String path, long from, long to) {
    Node node = require(path);
    node.holeFrom = from;
    node.holeTo = to;
  }

  /** Stores the files in this many sequences, in the order of their paths; 0 for none. */
  public void pack(int sequences) {
    sequenceCount = sequences;
  }

  public synchronized Instant now() {
    return now;
  }

  // Requests so far.

  /** Bytes of content read from a file so far. */
  public synchronized long bytesRead(String path) {
    return require(path).bytesRead.get();
  }

  public int openFiles() {
    return openFiles.get();
  }

  private Instant tick() {
    now = now.plus(Duration.ofSeconds(1));
    return now;
  }

  private void touch(Node node) {
    node.modified = tick();
    node.changed = node.modified;
  }

  private void put(String path, Node node) {
    put(FileName.of(path), node);
  }

  private void put(FileName path, Node node) {
    Node parent = parent(path);
    Node old = parent.children.put(name(path), node);
    if (old != null) {
      old.linkCount--;
    }
    touch(parent);
    if (node.modified.equals(Instant.EPOCH)) {
      touch(node);
    }
  }

  private Node parent(FileName path) {
    String text = path.toLatin1();
    int slash = text.lastIndexOf('/');
    return slash < 0 ? root : require(FileName.ofLatin1(text.substring(0, slash)));
  }

  private static FileName name(FileName path) {
    String text = path.toLatin1();
    return FileName.ofLatin1(text.substring(text.lastIndexOf('/') + 1));
  }

  private Node require(String path) {
    return require(FileName.of(path));
  }

  private Node require(FileName path) {
    try {
      return node(path);
    } catch (FsException e) {
      throw new IllegalArgumentException(path.toString(), e);
    }
  }

  private Node node(FileName path) throws FsException {
    Node at = root;
    if (path.size() > 0) {
      for (String name : path.toLatin1().split("/", -1)) {
        if (at.type != FileType.DIRECTORY) {
          throw new FsException(Errno.ENOTDIR, path.toString());
        }
        Node next = at.children.get(FileName.ofLatin1(name));
        if (next == null) {
          throw new FsException(Errno.ENOENT, path.toString());
        }
        at = next;
      }
    }
    return at;
  }

  private SourceStatus status(Node node) {
    long size = node.claimedSize >= 0 ? node.claimedSize : node.size;
    return new SourceStatus(
        new FileIdentity(0, numbers.applyAsLong(node.inode)),
        new Attributes(
            node.type.number() << 12 | node.permissions,
            node.linkCount,
            1000,
            100,
            0,
            size,
            (size - (node.holeTo - node.holeFrom) + 511) / 512,
            node.modified,
            node.modified,
            keepsChangeTimes ? node.changed : node.modified));
  }

  // The store.

  @Override
  public synchronized SourceStatus status(FileName path) throws FsException {
    return status(node(path));
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    List<FileName> names;
    synchronized (this) {
      Node node = node(directory);
      if (node.type != FileType.DIRECTORY) {
        throw new FsException(Errno.ENOTDIR, directory.toString());
      }
      names = List.copyOf(node.children.keySet());
    }
    for (int from = 0; from < names.size(); from += BATCH_NAMES) {
      if (!batches.accept(names.subList(from, Math.min(names.size(), from + BATCH_NAMES)))) {
        return;
      }
    }
  }

  @Override
  public synchronized FileName readSymbolicLink(FileName path) throws FsException {
    return node(path).target;
  }

  @Override
  public synchronized SourceFile open(FileName path) throws FsException {
    Node node = node(path);
    if (node.type == FileType.SYMBOLIC_LINK) {
      throw new FsException(Errno.ELOOP, path.toString());
    }
    openFiles.incrementAndGet();
    return new OpenFile(path, node);
  }

  @Override
  public synchronized Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    return new LinkedHashMap<>(node(path).xattrs);
  }

  /** Supports no access-control lists from now on. */
  public void keepNoLists() {
    keepsLists = false;
  }

  @Override
  public synchronized SourceAccess access(FileName path) throws FsException {
    byte[] list = node(path).xattrs.get(PosixAcl.ACCESS);
    return new SourceAccess(
        status(path), keepsLists, FileName.of(list == null ? new byte[0] : list));
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    return new StoreStatistics(4096, 4096, 1000, 500, 400, 100, 50, 255);
  }

  @Override
  public int sequenceCount() {
    return sequenceCount;
  }

  @Override
  public synchronized SourceSequence sequence(
      int index, ByteBuffer window, Runnable beforeRequest) {
    List<FileName> files =
        paths().stream().filter(path -> require(path).type == FileType.REGULAR).sorted().toList();
    int perSequence = (files.size() + sequenceCount - 1) / sequenceCount;
    int from = Math.min(files.size(), index * perSequence);
    return new Sequence(
        files.subList(from, Math.min(files.size(), from + perSequence)).iterator(), beforeRequest);
  }

  private final class Sequence implements SourceSequence {
    private final Iterator<FileName> files;
    private @Nullable FileName current;

    private final Runnable beforeRequest;

    Sequence(Iterator<FileName> files, Runnable beforeRequest) {
      this.beforeRequest = beforeRequest;
      this.files = files;
    }

    @Override
    public @Nullable FileName next() throws FsException {
      current = files.hasNext() ? files.next() : null;
      return current;
    }

    @Override
    public SourceFile open() throws FsException {
      FileName path = Objects.requireNonNull(current);
      beforeRequest.run();
      synchronized (FakeStore.this) {
        openFiles.incrementAndGet();
        return new OpenFile(path, node(path));
      }
    }

    @Override
    public void close() {
      current = null;
    }
  }

  @Override
  public void close() {}

  /** All current paths, parents first. */
  public synchronized Collection<FileName> paths() {
    List<FileName> paths = new ArrayList<>(List.of(FileName.of("")));
    for (int i = 0; i < paths.size(); i++) {
      FileName path = paths.get(i);
      require(path).children.keySet().forEach(name -> paths.add(path.resolve(name)));
    }
    return paths;
  }

  /** The bytes that a reader must get: a range, truncated at the end of the file. */
  public synchronized byte[] expected(FileName path, long offset, int size) {
    Node node = require(path);
    return content(node.seed, offset, (int) Math.max(0, Math.min(size, node.size - offset)));
  }

  public synchronized SourceStatus expectedStatus(FileName path) {
    return status(require(path));
  }

  public synchronized FileName expectedTarget(FileName path) {
    return require(path).target;
  }

  private final class OpenFile implements SourceFile {
    private final FileName path;
    private final Node node;
    private volatile boolean closed;

    OpenFile(FileName path, Node node) {
      this.path = path;
      this.node = node;
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      checkOpen();
      long seed;
      long size;
      synchronized (FakeStore.this) {
        seed = node.seed;
        size = node.size;
      }
      int count = (int) Math.max(0, Math.min(destination.remaining(), size - offset));
      destination.put(content(seed, offset, count));
      checkOpen();
      node.bytesRead.addAndGet(count);
      return count;
    }

    @Override
    public long seekData(long offset) throws FsException {
      return seek(offset, true);
    }

    @Override
    public long seekHole(long offset) throws FsException {
      return seek(offset, false);
    }

    private long seek(long offset, boolean forData) throws FsException {
      checkOpen();
      synchronized (FakeStore.this) {
        boolean inHole = offset >= node.holeFrom && offset < node.holeTo;
        long hole = inHole ? offset : offset < node.holeFrom ? node.holeFrom : node.size;
        long data = inHole ? node.holeTo : offset;
        if (offset < 0 || offset >= node.size || (forData && data >= node.size)) {
          throw new FsException(Errno.ENXIO, path + " at " + offset);
        }
        return forData ? data : hole;
      }
    }

    @Override
    public SourceStatus status() throws FsException {
      checkOpen();
      synchronized (FakeStore.this) {
        return FakeStore.this.status(node);
      }
    }

    /** A real descriptor might have been reused for another file. */
    private void checkOpen() {
      if (closed) {
        throw new IllegalStateException(path + " was closed while it was used");
      }
    }

    @Override
    public synchronized void close() {
      if (!closed) {
        closed = true;
        openFiles.decrementAndGet();
      }
    }
  }
}
