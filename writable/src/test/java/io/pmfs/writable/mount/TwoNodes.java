package io.pmfs.writable.mount;

import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.Place;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.remote.BusyException;
import io.pmfs.writable.remote.NodeFiles;
import io.pmfs.writable.remote.NodeServer;
import io.pmfs.writable.remote.OwnerLink;
import io.pmfs.writable.remote.OwnerServer;
import io.pmfs.writable.remote.RemoteFileSystem;
import io.pmfs.writable.remote.RemoteNodes;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** The owner of a writable mount and another node of it, in one process. */
final class TwoNodes implements AutoCloseable {
  static final UUID MEMBER = new UUID(1, 2);

  /** Where a request has the time of its process, and its number. */
  private static final int ERA = 8;

  private static final int UNIQUE = 16;

  /** Where a request has the number that the node gave it. */
  static final int NUMBER = 24;

  private static final int SLOT = 32;

  /** One that the node does not use. */
  private static final int OTHER_SLOT = 999;

  final Driver owner;
  final Link link;
  private final Path directory;
  private final FakeCalls calls;
  private UUID session = new UUID(0, 1);
  private long capacity = 1L << 40;
  private NodeFiles files;
  WritableFileSystem remote;
  private long unique;

  /** The owner's clock is ahead by so much. */
  final AtomicLong passedMillis = new AtomicLong();

  /** Something that another thread could do. */
  interface Happening {
    void happen() throws FsException;
  }

  /** The ways between the nodes, which lose answers and requests. */
  static final class Link implements OwnerLink {
    private @Nullable OwnerServer server;
    private @Nullable NodeServer node;
    int lostAnswers;
    int lostRequests;
    int lostRequestsToNode;
    boolean isCut;

    /** The id of the node. */
    volatile UUID member = MEMBER;

    /** Whether too many others wait, and how many requests were refused because of that. */
    volatile boolean isBusy;

    final AtomicInteger refused = new AtomicInteger();

    /** Too many others wait with requests that are larger than this. */
    volatile int busyAbove = Integer.MAX_VALUE;

    /** The next answer to such a request is lost. */
    volatile @Nullable String losesAnswerTo;

    /** Happens once, before that. */
    @Nullable Happening beforeLoss;

    /** Happens once, after the owner has decided to read from the node. */
    @Nullable Happening beforeAnswer;

    /** Happens once, before the node reports the state of a file. */
    volatile @Nullable Happening beforeFreeze;

    /** Happens once, while the answer to an open is on its way. */
    @Nullable Happening beforeOpened;

    /** Happens once, before the node joins. */
    volatile @Nullable Happening beforeJoin;

    /** Happens once, while the owner finds out that the node has a data file. */
    @Nullable Happening beforeFinding;

    /** Threads that ask for a parent get their answers when so many have one. */
    volatile CountDownLatch parents = new CountDownLatch(0);

    byte[] onItsWay = {};
    final List<String> asked = Collections.synchronizedList(new ArrayList<>());
    private final Map<String, byte[]> last = new ConcurrentHashMap<>();
    final List<String> askedOfNode = new ArrayList<>();

    @Override
    public byte[] ask(String name, byte[] body) throws IOException {
      if (isCut) {
        if (name.equals("rename")) {
          onItsWay = body.clone();
        }
        throw new IOException("no route");
      }
      if (isBusy || body.length > busyAbove) {
        refused.incrementAndGet();
        throw new BusyException("too many requests", new IOException());
      }
      if (lostRequests > 0) {
        lostRequests--;
        throw new IOException("the request was lost");
      }
      if (name.equals("join")) {
        Happening happening = beforeJoin;
        beforeJoin = null;
        happen(happening);
      }
      asked.add(name);
      last.put(name, body.clone());
      byte[] answer = server().answer(name, body.clone());
      if (name.equals("parent")) {
        awaitOthers();
      }
      if (name.equals("openHere")) {
        Happening happening = beforeOpened;
        beforeOpened = null;
        happen(happening);
      }
      if (name.equals(losesAnswerTo)) {
        losesAnswerTo = null;
        Happening happening = beforeLoss;
        beforeLoss = null;
        happen(happening);
        throw new IOException("the answer was lost");
      }
      if (lostAnswers > 0) {
        lostAnswers--;
        throw new IOException("the answer was lost");
      }
      return answer;
    }

    private void awaitOthers() {
      try {
        parents.countDown();
        parents.await();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }

    private byte[] askNode(UUID asked, String name, byte[] body) throws IOException {
      if (isCut || !asked.equals(member)) {
        throw new IOException("no route");
      }
      if (lostRequestsToNode > 0) {
        lostRequestsToNode--;
        throw new IOException("the request was lost");
      }
      if (name.equals("read")) {
        Happening happening = beforeAnswer;
        beforeAnswer = null;
        happen(happening);
      }
      if (name.equals("freeze")) {
        Happening happening = beforeFreeze;
        beforeFreeze = null;
        happen(happening);
      }
      askedOfNode.add(name);
      return Objects.requireNonNull(node).answer(name, body.clone());
    }

    private static void happen(@Nullable Happening happening) throws IOException {
      try {
        if (happening != null) {
          happening.happen();
        }
      } catch (FsException e) {
        throw new IOException(e);
      }
    }

    /** The last request of a kind, as it was sent. */
    byte[] copyOf(String name) {
      return Objects.requireNonNull(last.get(name)).clone();
    }

    /** The same in another slot, without the number by which it is made only once. */
    byte[] lastOf(String name) {
      byte[] request = copyOf(name);
      ByteBuffer.wrap(request).putInt(SLOT, OTHER_SLOT);
      Arrays.fill(request, UNIQUE, UNIQUE + Long.BYTES, (byte) 0);
      return request;
    }

    /** The last request of a kind, made once with this number of the kernel's. */
    byte[] lastOf(String name, long number) {
      byte[] request = lastOf(name);
      ByteBuffer.wrap(request).putLong(UNIQUE, number);
      return request;
    }

    /** A request to interrupt another; it has one value, like that for a parent. */
    byte[] interruptOf(long number) {
      byte[] request = lastOf("parent");
      ByteBuffer.wrap(request).putLong(request.length - Long.BYTES, number);
      return request;
    }

    /** The era of the last request of a kind. */
    long eraOf(String name) {
      return ByteBuffer.wrap(lastOf(name)).getLong(ERA);
    }

    /** The same as one of a process that began long after. */
    byte[] fromLater(String name) {
      byte[] request = lastOf(name);
      ByteBuffer.wrap(request).putLong(ERA, Long.MAX_VALUE / 2);
      return request;
    }

    @Override
    public String owner() {
      return "node1";
    }

    OwnerServer server() {
      return Objects.requireNonNull(server);
    }
  }

  TwoNodes(Path directory) throws FsException {
    this.directory = directory;
    owner = new Driver(directory, 0, () -> Instant.now().plusMillis(passedMillis.get()));
    calls = new FakeCalls(owner.calls);
    link = new Link();
    serve(new OwnerServer(owner.mount()));
    files = newFiles();
    remote = join(false, 10_000);
  }

  private NodeFiles newFiles() {
    NodeFiles made =
        new NodeFiles(
            List.of(new Place("ssd", directory.resolve("node"), capacity, 0)),
            Driver.SOURCE,
            calls,
            InstantSource.system());
    link.node = new NodeServer(made);
    return made;
  }

  private WritableFileSystem join(boolean isResumed, long patience) throws FsException {
    return join(isResumed, Duration.ofMillis(patience), patience);
  }

  private WritableFileSystem join(boolean isResumed, Duration first, long patience)
      throws FsException {
    return RemoteFileSystem.join(
        link,
        new RemoteFileSystem.Self(link.member, "node2", session, Driver.SOURCE, calls, files),
        isResumed,
        first,
        patience);
  }

  /** The owner's requests are answered by this server from now on. */
  void serve(OwnerServer server) {
    link.server = server;
    RemoteNodes nodes = new RemoteNodes(link::askNode, 100);
    owner
        .mount()
        .use(
            new NodeData.Nodes() {
              @Override
              public NodeData on(UUID node, String name) throws FsException {
                return nodes.on(node, seen(name));
              }

              @Override
              public void isBack(UUID node) {
                nodes.isBack(node);
              }
            });
  }

  private String seen(String name) throws FsException {
    Happening happening = link.beforeFinding;
    link.beforeFinding = null;
    if (happening != null) {
      happening.happen();
    }
    return name;
  }

  /** From now on, requests to the owner wait for a source that hangs. */
  void waitForSource() throws FsException {
    owner.setPatience(20, 600_000);
    restartOwner();
    remote.attributes(WritableFileSystem.ROOT);
  }

  /** The owner's process dies and another one takes over. */
  void restartOwner() throws FsException {
    owner.restart();
    serve(new OwnerServer(owner.mount()));
  }

  /** The owner's machine loses its power, and what only the tables have. */
  void cutOwner() throws FsException {
    owner.cut();
    serve(new OwnerServer(owner.mount()));
  }

  /** The node's process dies and another one takes over; programs keep what they have open. */
  void restartNode() throws FsException {
    remote.close();
    calls.closeAll();
    files = newFiles();
    remote = join(true, 10_000);
    remote.attributes(WritableFileSystem.ROOT);
  }

  /** The node's mount ends without a word, and another one begins. */
  void remountNode() throws FsException {
    session = new UUID(0, session.getLeastSignificantBits() + 1);
    remote.close();
    calls.closeAll();
    files = newFiles();
    remote = join(false, 10_000);
  }

  /** Joins anew, with another time until operations fail. */
  void joinAgain(long patience) throws FsException {
    joinAgain(Duration.ofMillis(patience), patience);
  }

  /** The same with another time for the owner to answer at all. */
  void joinAgain(Duration first, long patience) throws FsException {
    session = new UUID(0, session.getLeastSignificantBits() + 1);
    remote.close();
    files = newFiles();
    remote = join(false, first, patience);
  }

  /** The node's calls at the source fail like this. */
  void setSourceAway(FsException failure) {
    calls.setAway(failure);
  }

  /** The node can open files of the source, but gets no status of them. */
  void setStatusFailing() {
    calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void looking(FileName name) throws FsException {
            throw new FsException(Errno.EIO, "no status");
          }
        });
  }

  /** The node's calls at the source hang, but not the owner's. */
  void setSourceHanging(boolean hangs) {
    calls.setHanging(hangs);
  }

  void awaitSourceHanging() throws InterruptedException {
    calls.awaitHanging();
  }

  /** The node's disk is exchanged while its mount goes on. */
  void loseFiles() throws FsException {
    files.remove(files.idle());
  }

  /** The node does not have a file that the owner has told it to make. */
  void lose(Opened file) throws FsException {
    files.remove(List.of(new NodeData.Id(file.node().inode(), file.generation())));
  }

  /** The node's files lose their ends. */
  void shorten(int size) {
    calls.shorten(directory.resolve("node").resolve("of-" + owner.mount().id()), size);
  }

  /** How many files the node keeps. */
  int keptCount() {
    return files.count();
  }

  /** The disk of the node's data files takes nothing more. */
  void refuse(Errno errno) {
    calls.setRefusing(directory.resolve("node").resolve("of-" + owner.mount().id()), errno);
  }

  /** How many descriptors the node has open. */
  int openCount() {
    return calls.openCount();
  }

  /** How often the node made files survive a power cut. */
  int syncs() {
    return calls.syncCount();
  }

  /** The node asks what is of no use any more. */
  void tidy() throws FsException {
    int node = (int) session.getLeastSignificantBits();
    files.remove(owner.mount().unused(files.idle(), new Caller(0, 0, 0, 0, node)));
  }

  /** Tells how much the node may keep from its next start on. */
  void setCapacity(long bytes) {
    capacity = bytes;
  }

  Caller caller() {
    unique += 2;
    return new Caller(unique, 0, 0, 1);
  }

  Opened create(FileName name) throws FsException {
    return remote.create(WritableFileSystem.ROOT, name, 0644, OutputCalls.O_RDWR, caller());
  }

  void write(Opened file, long offset, String text) throws FsException {
    remote.write(
        file.node().inode(), file.handle(), offset, Driver.bytes(text), false, false, caller());
  }

  void close(Opened file) throws FsException {
    remote.flush(file.node().inode(), file.handle(), caller());
    remote.release(file.node().inode(), file.handle());
  }

  void put(FileName name, String text) throws FsException {
    Opened file = create(name);
    write(file, 0, text);
    close(file);
  }

  private static final class Text implements ReadSink {
    private final ByteBuffer buffer;
    private int size;

    Text(int size) {
      buffer = ByteBuffer.allocate(size);
    }

    @Override
    public ByteBuffer buffer(int wanted) {
      return buffer.clear();
    }

    @Override
    public void accept(ReadResult piece) throws IOException {
      size = piece.size();
      ByteBuffer bytes = ByteBuffer.allocate(size); // The piece may be in the buffer already.
      piece.copyTo(bytes);
      buffer.clear().put(bytes.flip());
    }

    @Override
    public String toString() {
      return new String(buffer.array(), 0, size, StandardCharsets.ISO_8859_1);
    }
  }

  String read(long inode) throws FsException {
    return read(inode, 0, 0, 100);
  }

  String read(long inode, long handle, long offset, int size) throws FsException {
    Text text = new Text(size);
    remote.read(inode, handle, offset, size, text);
    return text.toString();
  }

  @Override
  public void close() {
    remote.close();
    owner.close();
  }
}
