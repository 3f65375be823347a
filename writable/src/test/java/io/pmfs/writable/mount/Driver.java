package io.pmfs.writable.mount;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import com.google.common.io.MoreFiles;
import com.google.common.io.RecursiveDeleteOption;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.table.TableStore;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.Place;
import io.pmfs.writable.TemporaryNames;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Entry;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.WritableSettings;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Programs that use a writable mount by paths, and a process of it that can die. */
final class Driver implements AutoCloseable {
  static final Path SOURCE = Path.of("/source");

  /** What waits for another change is tried after it. */
  private static final int PASSES = 3;

  final FakeCalls calls = new FakeCalls(SOURCE);
  private final int copiers;
  private final InstantSource clock;
  private final Path state;
  private final Path synced;
  final Path places;
  final Path others;

  /** Whose programs make the calling thread's changes. */
  final ThreadLocal<Integer> user = ThreadLocal.withInitial(() -> 0);

  private WritableMount mount;
  private final AtomicLong unique = new AtomicLong(2);
  private long session = 1;
  private long capacity = 1L << 40;
  private String bootId = "first";
  private boolean syncsAtSource;
  private boolean hasOthers;
  private Pauses.@Nullable Pause pause;
  private long keptNames = WritableSettings.KEPT_NAMES;
  private long momentMillis = 10_000;
  private long patienceMillis = 60_000;

  Driver(Path directory) throws FsException {
    this(directory, 0, InstantSource.system());
  }

  /** With threads that copy to the source, unless there are none of them, and a wall clock. */
  Driver(Path directory, int copiers, InstantSource clock) throws FsException {
    this.copiers = copiers;
    this.clock = clock;
    state = directory.resolve("state");
    synced = directory.resolve("synced");
    places = directory.resolve("outputs");
    others = directory.resolve("others");
    mount = open(false);
  }

  private WritableMount open(boolean resumed) throws FsException {
    return WritableMount.open(
        new WritableSettings(
            SOURCE,
            state,
            hasOthers
                ? List.of(
                    new Place("ssd", places, capacity, 0), new Place("hdd", others, 1L << 40, 0))
                : List.of(new Place("ssd", places, capacity, 0)),
            new UUID(0, session),
            resumed,
            0,
            syncsAtSource,
            "node1",
            16L << 20,
            copiers,
            10_000,
            0,
            keptNames,
            momentMillis,
            patienceMillis),
        pause == null ? calls : Pauses.around(calls, pause),
        clock,
        bootId);
  }

  WritableMount mount() {
    return mount;
  }

  void setCapacity(long bytes) {
    capacity = bytes;
  }

  /** From the next start on, so many names of the source are cached. */
  void setKeptNames(long count) {
    keptNames = count;
  }

  /** From the next start on, there is a second tier. */
  void setHasOthers() {
    hasOthers = true;
  }

  /** From the next start on, requests wait so long for a source that hangs, and go on so long. */
  void setPatience(long moment, long patience) {
    momentMillis = moment;
    patienceMillis = patience;
  }

  /** From the next start on, threads do this before and after each call. */
  void setPause(Pauses.Pause next) {
    pause = next;
  }

  /** From the next start on, a sync waits for the source. */
  void setSyncsAtSource() {
    syncsAtSource = true;
  }

  /** The process dies and another one takes over; programs keep what they have open. */
  void restart() throws FsException {
    end();
    begin();
  }

  /** Ends the process, with its threads. */
  void end() {
    mount.close();
    calls.closeAll();
  }

  void begin() throws FsException {
    mount = open(true);
  }

  /** The tables, while no process has them open. */
  State openState() throws FsException {
    String owner = "writable mount of " + SOURCE;
    return new State(TableStore.open(state, owner, Tables.ALL, 16L << 20), clock);
  }

  /** The mount ends, and another one begins. */
  void remount() throws FsException {
    session++;
    mount.close();
    calls.closeAll();
    mount = open(false);
  }

  /** The machine loses its power, and with it all local data that was not synced: here all. */
  void reboot() throws FsException {
    bootId += " again";
    calls.loseFiles(places);
    remount();
  }

  /** From now on, {@link #cut} takes from the tables what was not synced. */
  void keepSynced() {
    copyTables(state, synced);
    mount.afterSyncs(() -> copyNew(state, synced));
  }

  /** The machine loses its power, and what is in the tables but not on the disk. */
  void cut() throws FsException {
    bootId += " again";
    session++;
    mount.close();
    calls.closeAll();
    copyTables(synced, state);
    mount = open(false);
    keepSynced();
  }

  /** The same, and so many bytes of each local file are left, or what was synced; -1: no file. */
  void cutWithData(int left) throws FsException {
    tearFiles(left);
    cut();
  }

  /** Whether the disk of the local files is mounted. */
  void setDisk(boolean isMounted) {
    calls.setMounted(places, isMounted);
  }

  void tearFiles(int left) {
    calls.tearFiles(places, left);
  }

  private static void copyTables(Path from, Path to) {
    try (Stream<Path> files = Files.walk(from)) {
      if (Files.exists(to)) {
        MoreFiles.deleteRecursively(to, RecursiveDeleteOption.ALLOW_INSECURE);
      }
      for (Path file : files.toList()) {
        Files.copy(file, to.resolve(from.relativize(file)));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Copies what changed since the last copy: CURRENT, and what has another size, as RocksDB's other
   * files only grow.
   */
  private static void copyNew(Path from, Path to) {
    try (Stream<Path> files = Files.list(from);
        Stream<Path> copies = Files.list(to)) {
      for (Path copy : copies.toList()) {
        if (!Files.exists(from.resolve(copy.getFileName()))) {
          Files.delete(copy);
        }
      }
      for (Path file : files.toList()) {
        Path copy = to.resolve(file.getFileName());
        if (file.endsWith("CURRENT")
            || !Files.exists(copy)
            || Files.size(file) != Files.size(copy)) {
          Files.copy(file, copy, StandardCopyOption.REPLACE_EXISTING);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  Caller caller() {
    return new Caller(unique.addAndGet(2), user.get(), user.get(), 1);
  }

  long lastUnique() {
    return unique.get();
  }

  static FileName name(String text) {
    return FileName.of(text);
  }

  static ByteBuffer bytes(String text) {
    byte[] bytes = text.getBytes(ISO_8859_1);
    return ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
  }

  // ---- by paths

  @Nullable Node find(String path) throws FsException {
    Node node = mount.attributes(WritableFileSystem.ROOT);
    for (String part : path.split("/", -1)) {
      if (!part.isEmpty()) {
        Node next = mount.lookup(node.inode(), name(part));
        if (next == null) {
          return null;
        }
        node = next;
      }
    }
    return node;
  }

  Node node(String path) throws FsException {
    Node found = find(path);
    if (found == null) {
      throw new FsException(Errno.ENOENT, path);
    }
    return found;
  }

  private long parent(String path) throws FsException {
    int slash = path.lastIndexOf('/');
    return slash < 0 ? WritableFileSystem.ROOT : node(path.substring(0, slash)).inode();
  }

  private static FileName last(String path) {
    return name(path.substring(path.lastIndexOf('/') + 1));
  }

  void mkdir(String path) throws FsException {
    mount.mkdir(parent(path), last(path), 0755, caller());
  }

  void symlink(String target, String path) throws FsException {
    mount.symlink(parent(path), last(path), name(target), caller());
  }

  Opened create(String path) throws FsException {
    return mount.create(parent(path), last(path), 0644, OutputCalls.O_RDWR, caller());
  }

  Opened createOnlyWritten(String path) throws FsException {
    return mount.create(parent(path), last(path), 0644, OutputCalls.O_WRONLY, caller());
  }

  void write(Opened file, long offset, String text) throws FsException {
    mount.write(file.node().inode(), file.handle(), offset, bytes(text), false, false, caller());
  }

  void close(Opened file) throws FsException {
    try {
      mount.flush(file.node().inode(), file.handle(), caller());
    } finally {
      mount.release(file.node().inode(), file.handle());
    }
  }

  /** Creates or replaces a whole file. */
  void put(String path, String text) throws FsException {
    Node there = find(path);
    Opened file =
        there == null
            ? create(path)
            : mount.open(there.inode(), OutputCalls.O_WRONLY | OutputCalls.O_TRUNC, caller());
    if (!text.isEmpty()) {
      write(file, 0, text);
    }
    close(file);
  }

  void append(String path, String text) throws FsException {
    Opened file =
        mount.open(node(path).inode(), OutputCalls.O_WRONLY | OutputCalls.O_APPEND, caller());
    mount.write(file.node().inode(), file.handle(), 0, bytes(text), true, false, caller());
    close(file);
  }

  void overwrite(String path, long offset, String text) throws FsException {
    Opened file = mount.open(node(path).inode(), OutputCalls.O_WRONLY, caller());
    write(file, offset, text);
    close(file);
  }

  void truncate(String path, long size) throws FsException {
    mount.setAttributes(
        node(path).inode(),
        new WritableFileSystem.NewAttributes(null, null, null, size, null, null, 0, false),
        caller());
  }

  void chmod(String path, int mode) throws FsException {
    mount.setAttributes(
        node(path).inode(),
        new WritableFileSystem.NewAttributes(mode, null, null, null, null, null, 0, false),
        caller());
  }

  void chown(String path, int uid, int gid) throws FsException {
    mount.setAttributes(
        node(path).inode(),
        new WritableFileSystem.NewAttributes(null, uid, gid, null, null, null, 0, false),
        caller());
  }

  void setTimes(String path, Instant time) throws FsException {
    mount.setAttributes(
        node(path).inode(),
        new WritableFileSystem.NewAttributes(null, null, null, null, time, time, 0, false),
        caller());
  }

  void mknod(String path, int mode) throws FsException {
    mount.mknod(parent(path), last(path), mode, 0, caller());
  }

  void setExtended(String path, String attribute, String value) throws FsException {
    mount.setExtendedAttribute(
        node(path).inode(), name(attribute), value.getBytes(ISO_8859_1), 0, caller());
  }

  void removeExtended(String path, String attribute) throws FsException {
    mount.removeExtendedAttribute(node(path).inode(), name(attribute), caller());
  }

  void rename(String from, String to, int flags) throws FsException {
    mount.rename(parent(from), last(from), parent(to), last(to), flags, caller());
  }

  void link(String from, String to) throws FsException {
    mount.link(node(from).inode(), parent(to), last(to), caller());
  }

  void unlink(String path) throws FsException {
    mount.unlink(parent(path), last(path), caller());
  }

  void rmdir(String path) throws FsException {
    mount.rmdir(parent(path), last(path), caller());
  }

  String read(long inode) throws FsException {
    Text sink = new Text();
    int before;
    do {
      before = sink.text.length();
      mount.read(inode, 0, before, 1 << 20, sink);
    } while (sink.text.length() - before == 1 << 20);
    return sink.text;
  }

  String read(String path) throws FsException {
    return read(node(path).inode());
  }

  private static final class Text implements ReadSink {
    private String text = "";

    @Override
    public ByteBuffer buffer(int size) {
      return ByteBuffer.allocateDirect(size);
    }

    @Override
    public void accept(ReadResult piece) throws IOException {
      ByteBuffer copy = ByteBuffer.allocate(piece.size());
      piece.copyTo(copy);
      text += new String(copy.array(), ISO_8859_1);
    }
  }

  List<String> names(String path) throws FsException {
    List<String> names = new ArrayList<>();
    mount.list(
        node(path).inode(),
        0,
        entry -> {
          names.add(entry.name().toString());
          return true;
        });
    return names;
  }

  /** Everything below the root: paths and what is there. */
  Map<String, String> tree() throws FsException {
    Map<String, String> tree = new TreeMap<>();
    add(tree, "", mount.attributes(WritableFileSystem.ROOT));
    return tree;
  }

  private void add(Map<String, String> tree, String path, Node node) throws FsException {
    List<Entry> entries = new ArrayList<>();
    mount.list(node.inode(), 0, entries::add);
    for (Entry entry : entries) {
      String below = path.isEmpty() ? entry.name().toString() : path + "/" + entry.name();
      Node child = Objects.requireNonNull(mount.lookup(node.inode(), entry.name()), below);
      if (child.inode() != entry.inode()) {
        throw new AssertionError(below + " has two numbers");
      }
      tree.put(below, describe(child));
      if (child.attributes().type() == FileType.DIRECTORY) {
        add(tree, below, child);
      }
    }
  }

  private String describe(Node node) throws FsException {
    String mode = Integer.toOctalString(node.attributes().mode() & 07777);
    return switch (node.attributes().type()) {
      case DIRECTORY -> "dir " + mode;
      case SYMBOLIC_LINK -> "link " + mount.readSymbolicLink(node.inode());
      case FIFO -> "pipe " + mode;
      default -> "file " + mode + " " + whole(node);
    };
  }

  private String whole(Node node) throws FsException {
    String content = read(node.inode());
    if (content.length() != node.attributes().size()) {
      throw new AssertionError(content + " has " + node.attributes().size() + " bytes");
    }
    return content;
  }

  /** The same of the source, without files that are not complete. */
  Map<String, String> sourceTree() {
    Map<String, String> tree = new TreeMap<>();
    addSource(tree, "", calls.sourceRoot());
    return tree;
  }

  private static void addSource(Map<String, String> tree, String path, FakeCalls.Node node) {
    node.children.forEach(
        (name, child) -> {
          if (TemporaryNames.contains(name)) {
            return;
          }
          String below = path.isEmpty() ? name.toString() : path + "/" + name;
          String mode = Integer.toOctalString(child.mode & 07777);
          tree.put(
              below,
              switch (child.type()) {
                case DIRECTORY -> "dir " + mode;
                case SYMBOLIC_LINK -> "link " + child.target();
                case FIFO -> "pipe " + mode;
                default -> "file " + mode + " " + new String(child.content, ISO_8859_1);
              });
          addSource(tree, below, child);
        });
  }

  /** When directories of the mount were changed last. */
  Map<String, Instant> times() throws FsException {
    Map<String, Instant> times = new TreeMap<>();
    addTimes(times, "", mount.attributes(WritableFileSystem.ROOT));
    return times;
  }

  private void addTimes(Map<String, Instant> times, String path, Node node) throws FsException {
    times.put(path, node.attributes().modificationTime());
    List<Entry> entries = new ArrayList<>();
    mount.list(node.inode(), 0, entries::add);
    for (Entry entry : entries) {
      if (entry.type() == FileType.DIRECTORY) {
        addTimes(
            times,
            path + "/" + entry.name(),
            Objects.requireNonNull(mount.lookup(node.inode(), entry.name())));
      }
    }
  }

  /** The same of the source. */
  Map<String, Instant> sourceTimes() {
    Map<String, Instant> times = new TreeMap<>();
    addSourceTimes(times, "", calls.sourceRoot());
    return times;
  }

  private static void addSourceTimes(Map<String, Instant> times, String path, FakeCalls.Node node) {
    times.put(path, node.modified);
    node.children.forEach(
        (name, child) -> {
          if (child.isDirectory()) {
            addSourceTimes(times, path + "/" + name, child);
          }
        });
  }

  /** Owners, times and extended attributes of everything. */
  Map<String, String> details() throws FsException {
    Map<String, String> details = new TreeMap<>();
    for (String path : tree().keySet()) {
      Node node = node(path);
      Map<String, String> extended = new TreeMap<>();
      mount
          .extendedAttributes(node.inode())
          .forEach((key, value) -> extended.put(key.toString(), new String(value, ISO_8859_1)));
      Attributes is = node.attributes();
      details.put(path, detail(is.uid(), is.gid(), is.modificationTime(), extended));
    }
    return details;
  }

  private static String detail(int uid, int gid, Instant time, Map<String, String> extended) {
    return uid + ":" + gid + " " + time + " " + extended;
  }

  /** The same of the source. */
  Map<String, String> sourceDetails() {
    Map<String, String> details = new TreeMap<>();
    addDetails(details, "", calls.sourceRoot());
    return details;
  }

  private static void addDetails(Map<String, String> details, String path, FakeCalls.Node node) {
    node.children.forEach(
        (name, child) -> {
          if (!TemporaryNames.contains(name)) {
            String below = path.isEmpty() ? name.toString() : path + "/" + name;
            Map<String, String> extended = new TreeMap<>();
            child.extended.forEach(
                (key, value) -> extended.put(key.toString(), new String(value, ISO_8859_1)));
            details.put(below, detail(child.uid, child.gid, child.modified, extended));
            addDetails(details, below, child);
          }
        });
  }

  /** How many names everything but directories has, and which is the first. */
  Map<String, String> links() throws FsException {
    Map<String, String> links = new TreeMap<>();
    Map<Long, String> first = new HashMap<>();
    for (String path : tree().keySet()) {
      Node node = node(path);
      if (node.attributes().type() != FileType.DIRECTORY) {
        first.putIfAbsent(node.inode(), path);
        links.put(path, node.attributes().linkCount() + " " + first.get(node.inode()));
      }
    }
    return links;
  }

  /** The same of the source. */
  Map<String, String> sourceLinks() {
    Map<String, String> links = new TreeMap<>();
    addLinks(links, "", calls.sourceRoot(), new IdentityHashMap<>());
    return links;
  }

  private static void addLinks(
      Map<String, String> links,
      String path,
      FakeCalls.Node node,
      Map<FakeCalls.Node, String> first) {
    node.children.forEach(
        (name, child) -> {
          String below = path.isEmpty() ? name.toString() : path + "/" + name;
          if (child.isDirectory()) {
            addLinks(links, below, child, first);
          } else if (!TemporaryNames.contains(name)) {
            first.putIfAbsent(child, below);
            links.put(below, child.links + " " + first.get(child));
          }
        });
  }

  List<String> temporaries() {
    List<String> found = new ArrayList<>();
    Map<FakeCalls.Node, Boolean> seen = new HashMap<>();
    addTemporaries(found, calls.sourceRoot(), seen);
    return found;
  }

  private static void addTemporaries(
      List<String> found, FakeCalls.Node node, Map<FakeCalls.Node, Boolean> seen) {
    if (seen.put(node, true) != null) {
      return;
    }
    node.children.forEach(
        (name, child) -> {
          if (TemporaryNames.contains(name)) {
            found.add(name.toString());
          }
          addTemporaries(found, child, seen);
        });
  }

  /** Brings everything to the source that it takes. */
  void drainAll() throws FsException {
    for (int pass = 0; pass < PASSES; pass++) {
      mount.tryAgain();
      while (mount.step()) {
        mount.tidy();
      }
      if (mount.drainStatus().waitingChanges() == 0) {
        break;
      }
    }
    mount.tidy();
  }

  @Override
  public void close() {
    mount.close();
  }
}
