package io.pmfs.cluster;

import io.pmfs.cluster.client.Patience;
import io.pmfs.cluster.client.PeerClient;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.View;
import io.pmfs.cluster.peers.FakeService;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.RequestSignature;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.cluster.server.OutputRequests;
import io.pmfs.cluster.server.PeerLimits;
import io.pmfs.cluster.server.PeerServer;
import io.pmfs.cluster.server.PeerService;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.memory.CollectingSink;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.metadata.RocksNamespace;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.CountedBackingStore;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore;
import io.pmfs.source.SourceOperations;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.Lenders;
import io.pmfs.stage.Stager;
import io.pmfs.stage.StagerSettings;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.RemoteCopies;
import io.pmfs.stage.copies.TestCopies;
import io.pmfs.stage.formats.Bundling;
import io.pmfs.stage.formats.Compression;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.tasks.DatasetTasks;
import io.pmfs.tasks.ScratchFiles;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierSettings;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Consumer;
import java.util.function.ToLongFunction;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** Nodes over one fake source, in one process: they ask each other by method calls. */
final class TestNodes implements AutoCloseable {
  private static final int MAX_READ = 1 << 20;

  final FakeStore store = new FakeStore();

  /** What nodes see that {@link LaggingStore#lagBehind lag behind}. */
  final FakeStore before = new FakeStore();

  final List<Node> nodes = new ArrayList<>();
  private final List<PeerServer> servers = new ArrayList<>();
  private final Path directory;
  private final RemoteCopies remoteCopies;
  private final int replicas;
  private final long capacity;
  private final UnaryOperator<PeerClient> clients;

  /** Decides the fate of a question from one node to another. */
  interface Fault {
    void before(Node from, Node to) throws PeerException;
  }

  volatile Fault fault = (from, to) -> {};

  /** For nodes that are added from now on. */
  Duration patience = SourceProbes.PATIENCE;

  /** For nodes that are added from now on: how long a reader waits for all peers together. */
  Duration readerPatience = FakeService.PATIENT.ofAReader();

  /** For nodes that are added from now on: whether users other than the daemon's enter. */
  boolean isOpenToOthers;

  TestNodes(Path directory, RemoteCopies remoteCopies, int replicas, long capacity) {
    this(directory, remoteCopies, replicas, capacity, direct -> direct);
  }

  /** The same; {@code clients} wraps the client by which a node asks the others. */
  TestNodes(
      Path directory,
      RemoteCopies remoteCopies,
      int replicas,
      long capacity,
      UnaryOperator<PeerClient> clients) {
    this.clients = clients;
    this.directory = directory;
    this.remoteCopies = remoteCopies;
    this.replicas = replicas;
    this.capacity = capacity;
  }

  /** Adds a node that knows no other node yet. */
  Node add() throws Exception {
    Node node = new Node(nodes.size(), true);
    nodes.add(node);
    return node;
  }

  /** Stops all nodes and starts them again with their state; they know no other nodes. */
  void restart() throws Exception {
    nodes.forEach(Node::close);
    for (int i = 0; i < nodes.size(); i++) {
      nodes.set(i, new Node(i, false));
    }
  }

  /** Makes all nodes, or the given ones, know each other. */
  void meet(Node... which) {
    List<Node> met = which.length == 0 ? nodes : List.of(which);
    View view = new View(met.stream().map(node -> node.member).toList());
    met.forEach(node -> node.see(view));
  }

  /** Makes a node answer over HTTP too, until all nodes are closed; returns it as a member. */
  Member serve(Node node, PeerLimits limits) throws IOException {
    Member member = node.member;
    PeerServer server =
        new PeerServer(
            "127.0.0.1",
            new RequestSignature(FakeService.key(), member.instance(), InstantSource.system()),
            null,
            limits,
            node.service,
            NodeRequests.NONE,
            OutputRequests.NONE);
    servers.add(server);
    return new Member(
        member.id(), member.instance(), member.name(), "127.0.0.1", server.address().getPort());
  }

  @Override
  public void close() {
    servers.forEach(PeerServer::close);
    nodes.forEach(Node::close);
  }

  /** One of the nodes. */
  final class Node implements AutoCloseable, PeerClient {
    final Member member;

    /** Its own view of the common source. */
    final LaggingStore view = new LaggingStore(store, before);

    /** Its own way there. */
    final FaultyStore faulty = new FaultyStore(view);

    final CountedBackingStore source = new CountedBackingStore(faulty);
    final Owners owners;
    final PeerStore peers;
    final Namespace namespace;
    final Copies copies;
    final Stager stager;
    final PmfsFileSystem fs;
    final DatasetTasks tasks;
    final DatasetService service;
    final Suspects suspects = new Suspects(System::nanoTime);
    final Suspects withoutSource = new Suspects(System::nanoTime);
    private final ExecutorService threads = Executors.newFixedThreadPool(4);
    private final Map<UUID, Node> known = new ConcurrentHashMap<>();

    /** Bytes that each other node gave this one. */
    final Map<UUID, Long> given = new ConcurrentHashMap<>();

    private boolean closed;

    Node(int index, boolean isNew) throws IOException, FsException {
      Path place = directory.resolve("node" + index);
      member = new Member(new UUID(7, index * 0x9E3779B97F4A7C15L), index, "n" + index, "-", 0);
      owners = new Owners(member.id(), replicas);
      peers =
          new PeerStore(
              source,
              owners,
              clients.apply(this),
              new PeerQuestions(owners, suspects, withoutSource, patience),
              isOpenToOthers,
              readerPatience);
      namespace =
          RocksNamespace.open(
              place.resolve("state"), "test", 16 << 20, UUID.randomUUID(), null, line -> {});
      Tier tier =
          new DirectoryTier(
              new TierSettings("ssd:0", "ssd", place.resolve("tier"), capacity, 0),
              isNew ? Tier.Usage.NONE : null,
              null);
      copies =
          TestCopies.of(
              namespace,
              List.of(tier),
              List.of(new CopyFormat(Compression.NONE, Bundling.ALL, null, Runnable::run, null)));
      stager =
          new Stager(
              namespace,
              peers,
              copies,
              EvictionPolicy.NONE,
              new StagerSettings(2, 8 << 20, 10_000),
              new ClusterShare(owners, namespace, remoteCopies),
              Lenders.none(),
              () -> {});
      stager.compareTiers();
      fs =
          new PmfsFileSystem(
              namespace,
              peers,
              copies,
              stager,
              threads,
              () -> Instant.MAX.minus(Duration.ofDays(1)));
      ScratchFiles scratch = new ScratchFiles(List.of(directory));
      tasks = new DatasetTasks(fs, namespace, peers, copies, stager, scratch, () -> {});
      service =
          new DatasetService(
              fs, namespace, copies, stager, owners, peers::asksElsewhere, peers::readsElsewhere);
    }

    void see(View view) {
      for (Node node : nodes) {
        known.put(node.member.id(), node);
      }
      owners.change(view);
      stager.shareChanged();
    }

    /** What this node has asked the source for so far. */
    SourceOperations asked() {
      return source.operations();
    }

    /** All files below a directory with their contents, read to the end. */
    Map<String, byte[]> readAll() throws FsException {
      Map<String, byte[]> found = new TreeMap<>();
      readBelow(PmfsFileSystem.ROOT, "", found);
      return found;
    }

    private void readBelow(long directory, String path, Map<String, byte[]> found)
        throws FsException {
      List<DirectoryEntry> entries = new ArrayList<>();
      fs.list(directory, 0, entries::add);
      for (DirectoryEntry entry : entries) {
        String name = path.isEmpty() ? entry.name().toString() : path + "/" + entry.name();
        if (entry.type() == FileType.DIRECTORY) {
          readBelow(entry.inode(), name, found);
        } else if (entry.type() == FileType.REGULAR) {
          found.put(name, read(entry.inode()));
        }
      }
    }

    byte[] read(String path) throws FsException {
      return read(number(path));
    }

    /** Opens and reads as the kernel does: if a file is stale, asks for its attributes again. */
    byte[] read(long number) throws FsException {
      fs.refresh(number);
      try {
        fs.open(number);
      } catch (FsException e) {
        if (e.errno() != Errno.ESTALE) {
          throw e;
        }
        fs.refresh(number);
        fs.open(number);
      }
      int size = Math.toIntExact(fs.inode(number).attributes().size());
      ByteBuffer whole = ByteBuffer.allocate(size);
      while (whole.hasRemaining()) {
        CollectingSink sink = new CollectingSink();
        fs.read(number, whole.position(), Math.min(MAX_READ, whole.remaining()), sink);
        whole.put(sink.answer());
      }
      return whole.array();
    }

    long number(String path) throws FsException {
      long at = PmfsFileSystem.ROOT;
      for (FileName name : Paths.names(FileName.of(path))) {
        at = fs.find(at, name).inode();
      }
      return at;
    }

    boolean hasCopy(String path) throws FsException {
      Inode inode = fs.inode(number(path));
      return copies.has(inode);
    }

    void awaitIdle() throws Exception {
      Await.until("staging is idle", () -> stager.status().idle());
    }

    private DatasetService ask(Member peer) throws PeerException {
      Node node = Objects.requireNonNull(known.get(peer.id()));
      fault.before(this, node);
      if (node.closed) {
        throw new PeerException(PeerException.Kind.UNREACHABLE, "it is gone");
      }
      return node.service;
    }

    private interface Call<T> {
      T run() throws FsException, PeerException;
    }

    private <T> T call(Call<T> call) throws PeerException {
      try {
        return call.run();
      } catch (FsException e) {
        throw new PeerException(PeerException.Kind.FAILED, String.valueOf(e.getMessage()));
      }
    }

    @Override
    public void list(
        Member peer, FileName path, Consumer<List<SourceEntry>> batches, Patience waiting)
        throws PeerException {
      DatasetService other = ask(peer);
      List<SourceEntry> entries = new ArrayList<>();
      call(
          () -> {
            other.list(path, entries::addAll);
            return entries;
          });
      batches.accept(entries);
    }

    @Override
    public SourceStatus status(Member peer, FileName path, Patience waiting) throws PeerException {
      DatasetService other = ask(peer);
      return call(() -> other.status(path));
    }

    @Override
    public FileName readSymbolicLink(Member peer, FileName path, Patience waiting)
        throws PeerException {
      DatasetService other = ask(peer);
      return call(() -> other.readSymbolicLink(path));
    }

    @Override
    public Map<FileName, byte[]> extendedAttributes(Member peer, FileName path, Patience waiting)
        throws PeerException {
      DatasetService other = ask(peer);
      return call(() -> other.extendedAttributes(path));
    }

    @Override
    public Given fetch(
        Member peer,
        FileName path,
        SourceVersion expected,
        long offset,
        ByteBuffer destination,
        boolean onlyCopies,
        Patience waiting)
        throws PeerException {
      DatasetService other = ask(peer);
      return call(
          () -> {
            UUID asker = remoteCopies == RemoteCopies.NEVER ? null : member.id();
            PeerService.Content content = other.open(path, expected, onlyCopies, asker);
            if (!destination.hasRemaining()) {
              content.prove();
            }
            CollectingSink sink = new CollectingSink();
            content.copyTo(offset, destination.remaining(), sink);
            destination.put(sink.answer());
            given.merge(peer.id(), (long) destination.position(), Long::sum);
            return new Given(content.status(), content.holders());
          });
    }

    @Override
    public HeldBlocks blocks(
        Member peer,
        FileName path,
        SourceVersion expected,
        HeldBlocks.Wanted wanted,
        Patience waiting)
        throws PeerException {
      DatasetService other = ask(peer);
      UUID asker = remoteCopies == RemoteCopies.NEVER ? null : member.id();
      return other.blocks(path, expected, asker, wanted);
    }

    /** Ends the node without notice to the others. */
    @Override
    public void close() {
      if (closed) {
        return;
      }
      closed = true;
      tasks.close();
      stager.close();
      threads.shutdown();
      copies.close();
      namespace.close();
      peers.close();
    }
  }

  /** The contents of the source. */
  Map<String, byte[]> expected() {
    Map<String, byte[]> expected = new TreeMap<>();
    for (FileName path : store.paths()) {
      SourceStatus status = store.expectedStatus(path);
      if (status.attributes().type() == FileType.REGULAR) {
        int size = Math.toIntExact(status.attributes().size());
        expected.put(path.toString(), store.expected(path, 0, size));
      }
    }
    return expected;
  }

  long asked(ToLongFunction<SourceOperations> what) {
    return nodes.stream().mapToLong(node -> what.applyAsLong(node.asked())).sum();
  }

  static @Nullable String difference(Map<String, byte[]> expected, Map<String, byte[]> found) {
    if (!expected.keySet().equals(found.keySet())) {
      return "names: " + found.keySet() + " instead of " + expected.keySet();
    }
    for (Map.Entry<String, byte[]> file : expected.entrySet()) {
      if (!Arrays.equals(file.getValue(), found.get(file.getKey()))) {
        return file.getKey() + " differs";
      }
    }
    return null;
  }
}
