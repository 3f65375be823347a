package io.pmfs.writable.mount;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Protection;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.tree.Names;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;

/**
 * File systems in memory: one for each root. A test can make each call that changes something fail,
 * and look at the state after each. Thread-safe.
 */
final class FakeCalls implements OutputCalls {
  /** A process dies: nothing in it catches this. */
  static final class Death extends Error {}

  /** Told of calls that change the source. */
  interface Watcher {
    default void before(String call, FileName name) throws FsException {}

    /** The call was made; if this fails, its answer is lost. */
    default void after(String call, FileName name) throws FsException {}

    /** A directory or file of the source is looked at. */
    default void looking(FileName name) throws FsException {}

    /** A status was taken, and its caller does not have it yet. */
    default void looked(FileName name) {}
  }

  /** Extended attributes that nobody may read. */
  final Set<FileName> hiddenAttributes = new HashSet<>();

  /** A file system that is mounted below the source. */
  static final class Disk {
    long device;
    List<String> names;

    Disk(long device, String... names) {
      this.device = device;
      this.names = List.of(names);
    }
  }

  static final class Node {
    final long number;
    final Instant birth;
    int mode;
    int uid;
    int gid;
    long device;
    int links;
    byte[] content = new byte[0];
    Instant accessed;
    Instant modified;
    Instant changed;
    final TreeMap<FileName, Node> children = new TreeMap<>();
    final Map<FileName, byte[]> extended = new LinkedHashMap<>();
    Protection protection = Protection.NONE;
    long project;
    boolean isSource;

    /** Only its user may change it or the names in it. */
    boolean isClosed;

    /** It is of another file system: nothing is renamed into it or out of it. */
    boolean isApart;

    /** The root below which it is. */
    @Nullable Path root;

    /** The file system that it is of; null if that is the root's. */
    @Nullable Disk disk;

    /** So many bytes were synced; -1 if the file never was. */
    int synced = -1;

    Node(long number, int mode, Instant now) {
      this.number = number;
      this.mode = mode;
      birth = now;
      accessed = now;
      modified = now;
      changed = now;
      links = isDirectory() ? 2 : 1;
    }

    boolean isDirectory() {
      return type() == FileType.DIRECTORY;
    }

    FileType type() {
      return FileType.ofMode(mode);
    }

    FileName target() {
      return FileName.of(content);
    }
  }

  /** The access-control list that new files of a directory get. */
  static final FileName DEFAULT_LIST = FileName.of("system.posix_acl_default");

  private static final int DIRECTORY = 0040755;
  private static final int REGULAR = 0100000;

  private final Map<Path, Node> roots;
  private final Map<Path, Node> unmounted = new HashMap<>();
  private final Map<Integer, Node> open = new HashMap<>();

  /** The names of nodes that are open for their attributes. */
  private final Map<Integer, FileName> opened = new HashMap<>();

  private final Path source;
  private final ThreadLocal<Integer> acting = new ThreadLocal<>();
  private int nextFile = 3;
  private long nextNumber = 100;
  private final Deque<Node> gone = new ArrayDeque<>();
  private long ticks;
  private int unitSeconds;
  private Watcher watcher = new Watcher() {};
  private @Nullable FsException away;
  private boolean isHanging;
  private boolean hasBirths = true;
  private boolean listsNumbers = true;
  private boolean hasModes = true;
  private int daemon;
  private int hanging;
  private int syncs;

  /** The sizes of files when their write-back began. */
  private final List<Integer> begun = new ArrayList<>();

  /** Until then the disk is busy, and write-back waits for it. */
  volatile CountDownLatch diskIsFree = new CountDownLatch(0);

  private long localRoom = 1L << 40;
  private final Map<Path, Errno> refusing = new HashMap<>();
  private @Nullable Path unreadable;
  private @Nullable Path unsyncable;

  /** Few, so that all tests close data files and open them again. */
  int mostDataFiles = 2;

  FakeCalls(Path source) {
    this.source = source;
    this.roots = new HashMap<>();
  }

  /** The same file systems as another process sees them. */
  FakeCalls(FakeCalls other) {
    this.source = other.source;
    this.roots = other.roots;
  }

  synchronized void watch(Watcher next) {
    watcher = next;
  }

  /** All calls at the source fail like this; null to let them work again. */
  synchronized void setAway(@Nullable FsException e) {
    away = e;
  }

  /** Listings have no inode numbers from now on, as those of some FUSE file systems. */
  synchronized void listNoNumbers() {
    listsNumbers = false;
  }

  /** From now on, times of birth are unknown, as with NFS. */
  synchronized void forgetBirths() {
    hasBirths = false;
  }

  /** From now on, everybody may do everything with what is made at the source, as with FAT. */
  synchronized void forgetModes() {
    hasModes = false;
  }

  /** From now on, the daemon is this user at the source. */
  synchronized void setDaemon(int uid) {
    daemon = uid;
  }

  /** No call at the source returns until this is over. */
  synchronized void setHanging(boolean hangs) {
    isHanging = hangs;
    notifyAll();
  }

  /** The calling thread's call hangs. */
  synchronized void hangHere() {
    isHanging = true;
    awaitSource();
  }

  synchronized void awaitHanging() throws InterruptedException {
    while (!isHanging || hanging == 0) {
      wait();
    }
  }

  /** Another program writes a whole file, also while others hang. */
  synchronized void makeAtSource(String path, String text) {
    Node at = root(source);
    String[] parts = path.split("/", -1);
    for (int i = 0; i < parts.length - 1; i++) {
      at = Objects.requireNonNull(at.children.get(FileName.of(parts[i])));
    }
    FileName name = FileName.of(parts[parts.length - 1]);
    Node made = newNode(REGULAR | 0644);
    made.isSource = true;
    made.content = text.getBytes(StandardCharsets.ISO_8859_1);
    at.children.put(name, made);
    at.modified = now();
    at.changed = at.modified;
  }

  private void awaitSource() {
    hanging++;
    notifyAll();
    try {
      awaitSourceNow();
    } finally {
      hanging--;
    }
  }

  private void awaitSourceNow() {
    boolean isInterrupted = false;
    while (isHanging) {
      try {
        wait();
      } catch (InterruptedException e) {
        isInterrupted = true; // A system call that hangs is not interrupted either.
      }
    }
    if (isInterrupted) {
      Thread.currentThread().interrupt();
    }
  }

  synchronized void setLocalRoom(long bytes) {
    localRoom = bytes;
  }

  /**
   * From now on, a disk takes nothing more and answers with this error: half of a write is there
   * then. Null to let it work again.
   */
  synchronized void setRefusing(Path path, @Nullable Errno errno) {
    if (errno == null) {
      refusing.remove(path);
    } else {
      refusing.put(path, errno);
    }
  }

  /** From now on, files below a root cannot be read; null if they can. */
  synchronized void setUnreadable(@Nullable Path path) {
    unreadable = path;
  }

  /** From now on, regular files below a root cannot be synced. */
  synchronized void setUnsyncable(Path path) {
    unsyncable = path;
  }

  private void requireRoom(Node node, String what) throws FsException {
    Errno errno = refusing.get(node.root);
    if (errno != null) {
      throw new FsException(errno, what);
    }
  }

  /** Removes what is below a root, as another program does: what is open stays open. */
  synchronized void removeAll(Path path) {
    root(path).children.values().forEach(FakeCalls::unlinkAll);
    root(path).children.clear();
  }

  private static void unlinkAll(Node node) {
    node.children.values().forEach(FakeCalls::unlinkAll);
    node.children.clear();
    node.links = 0;
  }

  /** The names of the regular files below a root. */
  synchronized int fileCount(Path path) {
    return count(root(path));
  }

  private static int count(Node node) {
    return node.isDirectory()
        ? node.children.values().stream().mapToInt(FakeCalls::count).sum()
        : 1;
  }

  /** How many times a regular file was synced. */
  synchronized int syncCount() {
    return syncs;
  }

  /** A process has died: its descriptors are closed. */
  synchronized void closeAll() {
    open.clear();
    opened.clear();
  }

  synchronized int openCount() {
    return open.size();
  }

  synchronized int openDataFiles() {
    return (int)
        open.values().stream()
            .filter(node -> node.type() == FileType.REGULAR && !node.isSource)
            .count();
  }

  /** Empties all files below a root that is not the source. */
  synchronized void loseFiles(Path path) {
    lose(root(path));
  }

  /** All files below a root lose their ends. */
  synchronized void shorten(Path path, int size) {
    shorten(root(path), size);
  }

  private static void shorten(Node node, int size) {
    node.content = Arrays.copyOf(node.content, Math.min(size, node.content.length));
    node.children.values().forEach(child -> shorten(child, size));
  }

  private static void lose(Node node) {
    node.content = new byte[0];
    node.children.values().forEach(FakeCalls::lose);
  }

  /** A directory shows what it has below the disk that was mounted there, or the disk again. */
  synchronized void setMounted(Path path, boolean isMounted) {
    Node hidden = isMounted ? unmounted.remove(path) : roots.remove(path);
    if (hidden != null) {
      (isMounted ? roots : unmounted).put(path, hidden);
    }
  }

  /** Leaves only the first bytes of each file below a root, or what was synced; -1: no file. */
  synchronized void tearFiles(Path path, int left) {
    tear(root(path), left);
  }

  private static void tear(Node node, int left) {
    node.children.values().removeIf(child -> !child.isDirectory() && child.synced < 0 && left < 0);
    for (Node child : node.children.values()) {
      int size = Math.min(child.content.length, Math.max(left, child.synced));
      child.content = Arrays.copyOf(child.content, child.isDirectory() ? 0 : size);
      tear(child, left);
    }
  }

  synchronized Node sourceRoot() {
    return root(source);
  }

  private Node root(Path path) {
    return roots.computeIfAbsent(
        path,
        key -> {
          Node root = newNode(DIRECTORY);
          root.isSource = path.equals(source);
          root.root = path;
          return root;
        });
  }

  /** From now on, times are kept in whole seconds, and none after 2446. */
  synchronized void setCoarse() {
    setCoarse(1);
  }

  /** The same in units of several seconds. */
  synchronized void setCoarse(int seconds) {
    unitSeconds = seconds;
  }

  private Instant kept(Instant time) {
    if (unitSeconds == 0) {
      return time;
    }
    long seconds = Math.min(time.getEpochSecond(), 0x3_7fff_ffffL);
    return Instant.ofEpochSecond(seconds - Math.floorMod(seconds, unitSeconds));
  }

  private Instant now() {
    return kept(tick());
  }

  private Instant tick() {
    return Instant.ofEpochSecond(1_700_000_000L + ticks / 1000, ticks++ % 1000 * 1_000_000);
  }

  /** Numbers of removed files are used again at once, as ext4 does. */
  private Node newNode(int mode) {
    Node unused = gone.peekLast();
    boolean isUnused = unused != null && !open.containsValue(unused);
    long number = isUnused ? gone.removeLast().number : nextNumber++;
    return new Node(number, mode, now());
  }

  private void removeIfUnnamed(Node node) {
    if (node.links == 0) {
      gone.add(node);
    }
  }

  private int newFile(Node node) {
    open.put(nextFile, node);
    return nextFile++;
  }

  private Node node(int file) throws FsException {
    Node node = open.get(file);
    if (node == null) {
      throw new FsException(Errno.EBADF, "descriptor " + file);
    }
    if (node.isSource) {
      awaitSource();
    }
    if (node.isSource && away != null) {
      throw away;
    }
    if (!node.isSource && acting.get() != null) {
      throw new FsException(Errno.EACCES, "a local file, as another user");
    }
    return node;
  }

  private Node child(int directory, FileName name) throws FsException {
    Node parent = node(directory);
    if (name.size() == 0) {
      return parent;
    }
    if (!parent.isDirectory()) {
      throw new FsException(Errno.ENOTDIR, name.toString());
    }
    Node child = parent.children.get(name);
    if (child == null) {
      throw new FsException(Errno.ENOENT, name.toString());
    }
    return child;
  }

  private void before(Node node, String call, FileName name) throws FsException {
    if (node.isSource) {
      watcher.before(call, name);
    }
  }

  private void after(Node node, String call, FileName name) throws FsException {
    if (node.isSource) {
      watcher.after(call, name);
    }
  }

  @Override
  public synchronized int openRoot(Path path) throws FsException {
    if (path.equals(source)) {
      awaitSource();
    }
    if (path.equals(source) && away != null) {
      throw away;
    }
    return newFile(root(path));
  }

  @Override
  public synchronized int openDirectory(int base, FileName path) throws FsException {
    Node at = node(base);
    if (at.isSource) {
      watcher.looking(path);
    }
    if (path.size() > 0) {
      for (String part : path.toString().split("/", -1)) {
        if (!at.isDirectory()) {
          throw new FsException(Errno.ENOTDIR, path.toString());
        }
        Node next = at.children.get(FileName.of(part));
        if (next == null) {
          throw new FsException(Errno.ENOENT, path.toString());
        }
        at = next;
      }
    }
    if (!at.isDirectory()) {
      throw new FsException(Errno.ENOTDIR, path.toString());
    }
    return newFile(at);
  }

  @Override
  public synchronized int openNode(int directory, FileName name) throws FsException {
    int file = newFile(child(directory, name));
    opened.put(file, name);
    return file;
  }

  @Override
  public synchronized int open(int directory, FileName name, int flags, int mode)
      throws FsException {
    Node parent = node(directory);
    Node there = parent.children.get(name);
    if (there == null) {
      if ((flags & O_CREAT) == 0) {
        throw new FsException(Errno.ENOENT, name.toString());
      }
      before(parent, "create", name);
      Node made = add(parent, name, REGULAR | mode);
      after(parent, "create", name);
      return newFile(made);
    }
    if ((flags & O_EXCL) != 0) {
      throw new FsException(Errno.EEXIST, name.toString());
    }
    if (there.type() != FileType.REGULAR) {
      throw new FsException(Errno.EINVAL, name.toString());
    }
    if ((flags & O_WRONLY) != 0) {
      before(parent, "open", name);
    }
    return newFile(there);
  }

  private Node add(Node parent, FileName name, int mode) throws FsException {
    if (!parent.isDirectory() || (parent.links == 0)) {
      throw new FsException(parent.links == 0 ? Errno.ENOENT : Errno.ENOTDIR, name.toString());
    }
    if (parent.children.containsKey(name)) {
      throw new FsException(Errno.EEXIST, name.toString());
    }
    if (parent.isClosed && isStranger(parent)) {
      throw new FsException(Errno.EACCES, name.toString());
    }
    requireRoom(parent, name.toString());
    Node made = newNode(parent.isSource && !hasModes ? mode | 0777 : mode);
    Integer user = acting.get();
    made.uid = user != null ? user : parent.isSource ? daemon : 0;
    made.gid = made.uid;
    made.isSource = parent.isSource;
    made.root = parent.root;
    made.disk = parent.disk;
    byte[] list = parent.extended.get(DEFAULT_LIST);
    if (list != null) {
      made.extended.put(PosixAcl.ACCESS, list);
    }
    parent.children.put(name, made);
    parent.links += made.isDirectory() ? 1 : 0;
    touch(parent);
    return made;
  }

  private void touch(Node node) {
    node.modified = now();
    node.changed = node.modified;
  }

  @Override
  public synchronized void close(int file) {
    Node node = open.get(file);
    if (node != null && node.isSource && !node.isDirectory()) {
      awaitSource();
    }
    open.remove(file);
    opened.remove(file);
  }

  @Override
  public synchronized Stat status(int directory, FileName name) throws FsException {
    Node node = child(directory, name);
    FileName known = name.size() == 0 ? nameOf(directory) : name;
    if (node.isSource) {
      watcher.looking(known);
    }
    Stat stat =
        new Stat(
            device(node.disk),
            node.number,
            hasBirths || roots.containsValue(node) ? node.birth : Instant.EPOCH,
            new Attributes(
                node.mode,
                node.links,
                node.uid,
                node.gid,
                node.device,
                node.content.length,
                (node.content.length + 4095) / 4096 * 8L,
                node.accessed,
                node.modified,
                node.changed),
            node.protection);
    watcher.looked(known);
    return stat;
  }

  private static long device(@Nullable Disk disk) {
    return disk == null ? 1 : disk.device;
  }

  @Override
  public synchronized FileSystem fileSystem(int file) throws FsException {
    Disk disk = node(file).disk;
    Set<Long> mounted = new HashSet<>();
    for (Node below : root(source).children.values()) {
      mounted.add(device(below.disk));
    }
    return new FileSystem(disk == null ? List.of() : disk.names, mounted);
  }

  @Override
  public synchronized void list(int directory, Names names) throws FsException {
    node(directory)
        .children
        .forEach(
            (name, child) ->
                names.accept(name, listsNumbers ? child.number : 0xffffffffL, child.type()));
  }

  @Override
  public synchronized FileName readSymbolicLink(int directory, FileName name) throws FsException {
    return child(directory, name).target();
  }

  @Override
  public synchronized int read(int file, ByteBuffer destination, long offset) throws FsException {
    if (unreadable != null && unreadable.equals(node(file).root)) {
      throw new FsException(Errno.EIO, "read");
    }
    byte[] content = node(file).content;
    int count = (int) Math.max(0, Math.min(destination.remaining(), content.length - offset));
    if (count > 0) {
      destination.put(content, Math.toIntExact(offset), count);
    }
    return count;
  }

  @Override
  public synchronized void write(int file, ByteBuffer bytes, long offset) throws FsException {
    Node node = node(file);
    before(node, "write", Inode.NO_NAME);
    int count = refusing.containsKey(node.root) ? bytes.remaining() / 2 : bytes.remaining();
    int end = Math.toIntExact(offset + count);
    if (end > node.content.length) {
      node.content = Arrays.copyOf(node.content, end);
    }
    bytes.get(node.content, (int) offset, count);
    requireRoom(node, "write");
    touch(node);
    after(node, "write", Inode.NO_NAME);
  }

  @Override
  public synchronized void truncate(int file, long size) throws FsException {
    Node node = node(file);
    before(node, "truncate", Inode.NO_NAME);
    if (size > node.content.length) {
      requireRoom(node, "truncate");
    }
    node.content = Arrays.copyOf(node.content, (int) size);
    touch(node);
    after(node, "truncate", Inode.NO_NAME);
  }

  @Override
  public synchronized void sync(int file, boolean dataOnly) throws FsException {
    Node node = node(file);
    before(node, "sync", Inode.NO_NAME);
    if (unsyncable != null && unsyncable.equals(node.root) && !node.isDirectory()) {
      throw new FsException(Errno.EIO, "sync");
    }
    node.synced = node.content.length;
    if (!node.isDirectory()) {
      syncs++;
    }
  }

  @Override
  public void beginWriteBack(int file) {
    synchronized (this) {
      Node node = open.get(file);
      if (node != null) {
        begun.add(node.content.length);
        notifyAll();
      }
    }
    try {
      diskIsFree.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Waits until the write-back of a file begins; the size of the first one then. */
  synchronized int awaitWriteBack() throws InterruptedException {
    while (begun.isEmpty()) {
      wait();
    }
    return begun.get(0);
  }

  @Override
  public synchronized void allocate(int file, int mode, long offset, long length)
      throws FsException {
    Node node = node(file);
    if ((mode & FALLOC_PUNCH_HOLE) == 0) {
      requireRoom(node, "fallocate");
    }
    int end = (int) Math.min(offset + length, node.content.length);
    if ((mode & (FALLOC_PUNCH_HOLE | FALLOC_ZERO_RANGE)) != 0 && offset < end) {
      Arrays.fill(node.content, (int) offset, end, (byte) 0);
    }
    if ((mode & FALLOC_KEEP_SIZE) == 0 && offset + length > node.content.length) {
      node.content = Arrays.copyOf(node.content, (int) (offset + length));
    }
  }

  @Override
  public synchronized long seek(int file, long offset, int whence) throws FsException {
    Node node = node(file);
    if (offset >= node.content.length) {
      throw new FsException(Errno.ENXIO, "offset " + offset);
    }
    return whence == SEEK_DATA ? offset : node.content.length;
  }

  @Override
  public synchronized long project(int directory) {
    Node node = open.get(directory);
    return node == null ? 0 : node.project;
  }

  @Override
  public void cloneFile(int from, int to) throws FsException {
    throw new FsException(Errno.EOPNOTSUPP, "FICLONE");
  }

  @Override
  public synchronized void mkdir(int directory, FileName name, int mode) throws FsException {
    make(directory, name, (DIRECTORY & ~07777) | mode, "mkdir");
  }

  @Override
  public synchronized void mknod(int directory, FileName name, int mode, long device)
      throws FsException {
    make(directory, name, mode, "mknod").device = device;
  }

  @Override
  public synchronized void symlink(FileName target, int directory, FileName name)
      throws FsException {
    make(directory, name, 0120777, "symlink").content = target.bytes();
    after(node(directory), "symlink", name);
  }

  private Node make(int directory, FileName name, int mode, String call) throws FsException {
    Node parent = node(directory);
    before(parent, call, name);
    Node made = add(parent, name, mode);
    if (!call.equals("symlink")) {
      after(parent, call, name);
    }
    return made;
  }

  @Override
  public synchronized void link(int directory, FileName name, int toDirectory, FileName toName)
      throws FsException {
    Node linked = child(directory, name);
    Node parent = node(toDirectory);
    before(parent, "link", toName);
    if (parent.children.containsKey(toName)) {
      throw new FsException(Errno.EEXIST, toName.toString());
    }
    parent.children.put(toName, linked);
    linked.links++;
    linked.changed = now();
    touch(parent);
    after(parent, "link", toName);
  }

  @Override
  public synchronized void unlink(int directory, FileName name) throws FsException {
    Node node = child(directory, name);
    Node parent = node(directory);
    if (node.isDirectory()) {
      throw new FsException(Errno.EISDIR, name.toString());
    }
    if (refusing.get(node.root) == Errno.EROFS) {
      throw new FsException(Errno.EROFS, name.toString());
    }
    before(parent, "unlink", name);
    parent.children.remove(name);
    node.links--;
    removeIfUnnamed(node);
    node.changed = now();
    touch(parent);
    after(parent, "unlink", name);
  }

  @Override
  public synchronized void rmdir(int directory, FileName name) throws FsException {
    Node node = child(directory, name);
    Node parent = node(directory);
    if (!node.isDirectory()) {
      throw new FsException(Errno.ENOTDIR, name.toString());
    }
    if (!node.children.isEmpty()) {
      throw new FsException(Errno.ENOTEMPTY, name.toString());
    }
    before(parent, "rmdir", name);
    parent.children.remove(name);
    node.links = 0;
    removeIfUnnamed(node);
    parent.links--;
    touch(parent);
    after(parent, "rmdir", name);
  }

  @Override
  public synchronized void rename(
      int directory, FileName name, int toDirectory, FileName toName, int flags)
      throws FsException {
    Node moved = child(directory, name);
    Node from = node(directory);
    Node to = node(toDirectory);
    if (from.isApart != to.isApart) {
      throw new FsException(Errno.EXDEV, toName.toString());
    }
    Node replaced = to.children.get(toName);
    if (replaced != null && flags == RENAME_NOREPLACE) {
      throw new FsException(Errno.EEXIST, toName.toString());
    }
    if (isWithin(moved, to) || (flags == RENAME_EXCHANGE && isWithin(replaced, from))) {
      throw new FsException(Errno.EINVAL, toName.toString());
    }
    if (replaced == moved) {
      return; // Two names of one file.
    }
    if (flags == RENAME_EXCHANGE) {
      if (replaced == null) {
        throw new FsException(Errno.ENOENT, toName.toString());
      }
      before(to, "rename", toName);
      from.children.put(name, replaced);
      to.children.put(toName, moved);
      replaced.changed = now();
    } else {
      if (replaced != null && replaced.isDirectory() != moved.isDirectory()) {
        throw new FsException(
            moved.isDirectory() ? Errno.ENOTDIR : Errno.EISDIR, toName.toString());
      }
      if (replaced != null && replaced.isDirectory() && !replaced.children.isEmpty()) {
        throw new FsException(Errno.ENOTEMPTY, toName.toString());
      }
      before(to, "rename", toName);
      from.children.remove(name);
      to.children.put(toName, moved);
      if (replaced != null) {
        replaced.links = replaced.isDirectory() ? 0 : replaced.links - 1;
        replaced.changed = now();
        removeIfUnnamed(replaced);
      }
    }
    moved.changed = now();
    touch(from);
    touch(to);
    after(to, "rename", toName);
  }

  private static boolean isWithin(@Nullable Node above, Node node) {
    return above == node
        || (above != null
            && above.children.values().stream().anyMatch(child -> isWithin(child, node)));
  }

  /** A file that is open for its attributes; tests know it by the name it was opened by. */
  private Node attributes(int file, String call) throws FsException {
    Node node = node(file);
    before(node, call, nameOf(file));
    requireOwner(node, call);
    return node;
  }

  private void changed(Node node, int file, String call) throws FsException {
    node.changed = now();
    after(node, call, nameOf(file));
  }

  private FileName nameOf(int file) {
    return opened.getOrDefault(file, Inode.NO_NAME);
  }

  /** Only in a directory of its user, because most tests are not about rights. */
  private void requireOwner(Node node, String call) throws FsException {
    if (node.isClosed && isStranger(node)) {
      throw new FsException(Errno.EPERM, call);
    }
  }

  private boolean isStranger(Node node) {
    Integer user = acting.get();
    return user != null && user != 0 && user != node.uid;
  }

  @Override
  public synchronized void chmod(int file, int mode) throws FsException {
    Node node = attributes(file, "chmod");
    // As Linux does, without an error: the user, whose group has the same number, is not in it.
    boolean isOutside = acting.get() != null && acting.get() != 0 && acting.get() != node.gid;
    node.mode = (node.mode & ~07777) | (isOutside ? mode & ~02000 : mode);
    changed(node, file, "chmod");
  }

  @Override
  public synchronized void chown(int file, int uid, int gid) throws FsException {
    Node node = attributes(file, "chown");
    node.uid = uid;
    node.gid = gid;
    changed(node, file, "chown");
  }

  @Override
  public synchronized void setTimes(int file, Instant accessTime, Instant modificationTime)
      throws FsException {
    Node node = attributes(file, "utimes");
    node.accessed = kept(accessTime);
    node.modified = kept(modificationTime);
    changed(node, file, "utimes");
  }

  @Override
  public synchronized Map<FileName, byte[]> extendedAttributes(int file) throws FsException {
    Map<FileName, byte[]> found = new LinkedHashMap<>(node(file).extended);
    found.keySet().removeAll(hiddenAttributes);
    watcher.looked(nameOf(file));
    return found;
  }

  @Override
  public synchronized Map<FileName, byte[]> extendedAttributesToCopy(int file) throws FsException {
    Map<FileName, byte[]> found = extendedAttributes(file);
    if (found.size() < node(file).extended.size()) {
      throw new FsException(Errno.EACCES, "the test lets nobody read an attribute");
    }
    return found;
  }

  @Override
  public synchronized void setExtendedAttribute(int file, FileName attribute, byte[] value)
      throws FsException {
    Node node = attributes(file, "setxattr");
    node.extended.put(attribute, value);
    changed(node, file, "setxattr");
  }

  @Override
  public synchronized void removeExtendedAttribute(int file, FileName attribute)
      throws FsException {
    Node node = attributes(file, "removexattr");
    if (node.extended.remove(attribute) == null) {
      throw new FsException(Errno.ENODATA, attribute.toString());
    }
    changed(node, file, "removexattr");
  }

  @Override
  public synchronized StoreStatistics statistics(int directory) {
    return new StoreStatistics(
        4096, 4096, localRoom / 4096, localRoom / 4096, localRoom / 4096, 1, 1, 255);
  }

  @Override
  public int mostDataFiles() {
    return mostDataFiles;
  }

  @Override
  public boolean isInGroup(int pid, int uid, int gid, int group) {
    return gid == group;
  }

  @Override
  public void lowerPriority() {}

  @Override
  public Acting actAs(int uid, int gid) {
    acting.set(uid);
    return acting::remove;
  }
}
