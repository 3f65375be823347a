package io.pmfs.writable.mount;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.NamespaceException;
import io.pmfs.metadata.TableStore;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.ReadSink;
import io.pmfs.tier.StoreStatistics;
import io.pmfs.writable.Contents;
import io.pmfs.writable.Descriptors;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.Extended;
import io.pmfs.writable.FileData;
import io.pmfs.writable.Homes;
import io.pmfs.writable.Interrupts;
import io.pmfs.writable.LiveFile;
import io.pmfs.writable.LiveFiles;
import io.pmfs.writable.LocalFiles;
import io.pmfs.writable.Names;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.Nodes;
import io.pmfs.writable.OpenFiles;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.OwnedFileSystem;
import io.pmfs.writable.Renames;
import io.pmfs.writable.Rights;
import io.pmfs.writable.Room;
import io.pmfs.writable.SourceLooks;
import io.pmfs.writable.SourceTree;
import io.pmfs.writable.Untold;
import io.pmfs.writable.Waiting;
import io.pmfs.writable.WritableSettings;
import io.pmfs.writable.drain.Actors;
import io.pmfs.writable.drain.Committer;
import io.pmfs.writable.drain.Conflicts;
import io.pmfs.writable.drain.Copies;
import io.pmfs.writable.drain.Drain;
import io.pmfs.writable.drain.LostData;
import io.pmfs.writable.drain.Pace;
import io.pmfs.writable.drain.Refused;
import io.pmfs.writable.drain.Remains;
import io.pmfs.writable.drain.Step;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A directory of the source with changes over it: files are written to a tier at once, the changes
 * are journaled, and a committer brings them to the source in their order. What the source does not
 * have yet survives the process.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
public final class WritableMount implements OwnedFileSystem, Interrupts.Holder {
  private static final Logger log = LoggerFactory.getLogger(WritableMount.class);

  /** Another one after each start of the machine (random(4)). */
  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

  private static final byte[] ID = "id".getBytes(StandardCharsets.US_ASCII);
  private static final int ID_SIZE = 8;
  private static final int MILLIS = 1000;

  private final State state;
  private final SourceTree tree;
  private final LocalFiles local;
  private final Nodes nodes;
  private final Names names;
  private final Renames renames;
  private final LiveFiles live;
  private final Descriptors descriptors;
  private final Contents contents;
  private final FileData data;
  private final OpenFiles openFiles;
  private final Rights rights;
  private final Extended extended;
  private final Waiting waiting;
  private final Pace pace;
  private final Copies copies;
  private final Committer committer;
  private final Conflicts conflicts;
  private final Room room;
  private final Untold untold;
  private final Drain drain;
  private final Refused refused;
  private final Sessions sessions;
  private final Interrupts interrupts = new Interrupts();
  private final boolean syncsAtSource;
  private final String id;

  private WritableMount(
      State state, WritableSettings settings, OutputCalls calls, InstantSource clock)
      throws FsException {
    this.state = state;
    syncsAtSource = settings.syncsAtSource();
    SourceLooks looks =
        new SourceLooks(settings.momentMillis(), settings.patienceMillis(), interrupts);
    tree = new SourceTree(calls, state, settings, looks, clock);
    id = mountId(state);
    local = new LocalFiles(calls, settings.places(), state, tree, id, clock);
    waiting = new Waiting();
    pace = new Pace(settings.drainBytesPerSecond(), System::nanoTime);
    conflicts = new Conflicts();
    untold = new Untold(state);
    room = new Room(state, local);
    extended = new Extended(state, tree, calls, clock);
    descriptors = new Descriptors(state, tree, local, calls);
    contents = new Contents(state, descriptors, local, room, calls, clock, waiting, extended);
    live = new LiveFiles(descriptors::close);
    room.use(live);
    nodes = new Nodes(state, tree, live, descriptors, contents);
    names = new Names(state, nodes, tree, live, contents, clock);
    renames = new Renames(state, names, nodes, tree, clock);
    rights = new Rights(state, nodes, live, local, descriptors, calls, clock);
    data = new FileData(state, nodes, live, descriptors, local, contents, rights, calls, clock);
    openFiles =
        new OpenFiles(state, nodes, names, live, descriptors, contents, room, data, untold, clock);
    Homes homes = new Homes(state);
    Actors actors = new Actors(calls);
    Step step = new Step(state, tree, calls, actors, homes, conflicts, settings.hostName());
    copies = new Copies(state, tree, local, calls, actors, pace, id, settings.copiers());
    LostData lost = new LostData(state, local, live, room, step, waiting);
    Remains remains = new Remains(state, live, descriptors, extended);
    committer = new Committer(state, step, copies, room, extended, waiting, lost, remains, untold);
    refused = new Refused(state, step, contents, room, live, waiting, untold, committer.again());
    drain =
        new Drain(state, committer, room, live, contents, untold, step, conflicts, settings, clock);
    sessions = new Sessions(state, names, room, local, waiting, conflicts, committer, drain, lost);
  }

  /**
   * Opens a mount, and continues what a former one left. The source need not be there.
   *
   * @throws NamespaceException if the state belongs to another mount or cannot be read
   */
  public static WritableMount open(WritableSettings settings, OutputCalls calls)
      throws FsException {
    WritableMount mount = open(settings, calls, InstantSource.system(), bootId());
    mount.tree.beginStatistics();
    return mount;
  }

  private static String bootId() {
    try {
      return Files.readString(BOOT_ID);
    } catch (IOException e) {
      log.warn("{}: {}; kept data is forgotten", BOOT_ID, e.getMessage());
      return UUID.randomUUID().toString();
    }
  }

  public static WritableMount open(
      WritableSettings settings, OutputCalls calls, InstantSource clock, String bootId)
      throws FsException {
    TableStore store =
        TableStore.open(
            settings.state(),
            "writable mount of " + settings.source(),
            Tables.ALL,
            settings.memoryBytes());
    try {
      WritableMount mount = new WritableMount(new State(store), settings, calls, clock);
      mount.sessions.begin(settings, bootId.getBytes(StandardCharsets.UTF_8));
      return mount;
    } catch (FsException | RuntimeException e) {
      store.close();
      throw e;
    }
  }

  private static String mountId(State state) throws FsException {
    try (State.Held held = state.hold()) {
      byte[] there = state.get(Tables.FACTS, ID);
      if (there != null) {
        return new String(there, StandardCharsets.US_ASCII);
      }
      String id = UUID.randomUUID().toString().substring(0, ID_SIZE);
      State.Update update = state.update();
      update.put(Tables.FACTS, ID, id.getBytes(StandardCharsets.US_ASCII));
      update.commit();
      return id;
    }
  }

  // ---- reading

  private interface Operation<T> {
    T run() throws FsException;
  }

  /** A failure of the tables that no other code expected is one of their disk. */
  private static <T> T io(Operation<T> operation) throws FsException {
    try {
      return operation.run();
    } catch (NamespaceException e) {
      throw new FsException(Errno.EIO, String.valueOf(e.getMessage()), e);
    }
  }

  private interface Action {
    void run() throws FsException;
  }

  private static void run(Action action) throws FsException {
    try {
      action.run();
    } catch (NamespaceException e) {
      throw new FsException(Errno.EIO, String.valueOf(e.getMessage()), e);
    }
  }

  @Override
  public @Nullable Node lookup(long directory, FileName name) throws FsException {
    try {
      Inode found = nodes.lookup(directory, name);
      return found == null ? null : nodes.shown(nodes.refresh(found));
    } catch (NamespaceException e) {
      throw new FsException(Errno.EIO, String.valueOf(e.getMessage()), e);
    }
  }

  @Override
  public Node attributes(long inode) throws FsException {
    return io(() -> nodes.node(inode));
  }

  @Override
  public void list(long directory, long position, EntryConsumer entries) throws FsException {
    run(() -> nodes.list(directory, position, entries));
  }

  @Override
  public long parent(long directory) throws FsException {
    return io(
        () -> {
          long parent = nodes.find(directory).parent();
          return parent == 0 ? directory : parent;
        });
  }

  @Override
  public FileName readSymbolicLink(long number) throws FsException {
    return io(
        () -> {
          Inode inode = nodes.find(number);
          if (inode.type() != FileType.SYMBOLIC_LINK) {
            throw new FsException(Errno.EINVAL, "inode " + number);
          }
          return nodes.target(inode);
        });
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(long inode) throws FsException {
    return io(
        () -> {
          nodes.find(inode);
          return extended.of(inode);
        });
  }

  @Override
  public byte @Nullable [] extendedAttribute(long inode, FileName name) throws FsException {
    Extended.checkName(name.toString());
    return io(() -> {
          nodes.find(inode);
          return Optional.ofNullable(extended.of(inode, name));
        })
        .orElse(null);
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    return io(tree::statistics);
  }

  // ---- names

  @Override
  public Node mkdir(long directory, FileName name, int mode, Caller caller) throws FsException {
    return io(() -> names.mkdir(directory, name, mode, caller));
  }

  @Override
  public Node mknod(long directory, FileName name, int mode, long device, Caller caller)
      throws FsException {
    return io(() -> names.mknod(directory, name, mode, device, caller));
  }

  @Override
  public Node symlink(long directory, FileName name, FileName target, Caller caller)
      throws FsException {
    return io(() -> names.symlink(directory, name, target, caller));
  }

  @Override
  public Node link(long inode, long directory, FileName name, Caller caller) throws FsException {
    return io(() -> names.link(inode, directory, name, caller));
  }

  @Override
  public void unlink(long directory, FileName name, Caller caller) throws FsException {
    run(() -> names.unlink(directory, name, caller));
  }

  @Override
  public void rmdir(long directory, FileName name, Caller caller) throws FsException {
    run(() -> names.rmdir(directory, name, caller));
  }

  @Override
  public void rename(
      long directory, FileName name, long newDirectory, FileName newName, int flags, Caller caller)
      throws FsException {
    run(() -> renames.rename(directory, name, newDirectory, newName, flags, caller));
  }

  // ---- open files

  @Override
  public Opened create(long directory, FileName name, int mode, int flags, Caller caller)
      throws FsException {
    return io(() -> openFiles.create(directory, name, mode, flags, -1, caller));
  }

  @Override
  public Opened createHere(long directory, FileName name, int mode, int flags, Caller caller)
      throws FsException {
    return io(
        () -> openFiles.create(directory, name, mode, flags, openFiles.placeOf(caller), caller));
  }

  @Override
  public Opened createUnnamed(long directory, int mode, int flags, Caller caller)
      throws FsException {
    return io(() -> openFiles.createUnnamed(directory, mode, flags, caller));
  }

  @Override
  public Opened open(long inode, int flags, Caller caller) throws FsException {
    return io(() -> openFiles.open(inode, flags, -1, caller));
  }

  @Override
  public Opened openHere(long inode, int flags, Caller caller) throws FsException {
    return io(() -> openFiles.open(inode, flags, openFiles.placeOf(caller), caller));
  }

  @Override
  public void read(long inode, long handle, long offset, int size, ReadSink sink)
      throws FsException {
    run(() -> data.read(inode, offset, size, sink));
  }

  @Override
  public int write(
      long inode,
      long handle,
      long offset,
      ByteBuffer bytes,
      boolean append,
      boolean clearSetId,
      Caller caller)
      throws FsException {
    return io(
        () -> {
          openFiles.use(inode, handle, caller);
          return data.write(
              inode, openFiles.origin(handle), offset, bytes, append, clearSetId, caller);
        });
  }

  @Override
  public void flush(long inode, long handle, Caller caller) throws FsException {
    run(() -> openFiles.flush(inode, caller));
  }

  @Override
  public void fsync(long inode, long handle, boolean dataOnly, Caller caller) throws FsException {
    run(
        () -> {
          if (syncsAtSource) {
            openFiles.announce(inode, caller);
          }
          openFiles.fsync(inode);
          if (syncsAtSource) {
            awaitSource(inode);
          } else {
            untold.check(inode);
          }
        });
  }

  @Override
  public void fsyncDirectory(long inode, Caller caller) throws FsException {
    run(
        () -> {
          state.sync();
          awaitSource(inode);
        });
  }

  /** Waits until the source has a node as it is now, if the user wants a sync to mean that. */
  private void awaitSource(long number) throws FsException {
    Inode inode = syncsAtSource ? state.find(number) : null;
    if (inode != null && !inode.isRemoved()) {
      drain.await(inode);
    }
  }

  @Override
  public void release(long inode, long handle) {
    try {
      openFiles.release(inode, handle);
    } catch (FsException | NamespaceException e) {
      log.warn("closing inode {}: {}; it is tried again", inode, e.getMessage());
      drain.closeLater(inode, e);
    }
  }

  @Override
  public void allocate(long inode, long handle, int mode, long offset, long length, Caller caller)
      throws FsException {
    run(
        () -> {
          openFiles.use(inode, handle, caller);
          data.allocate(inode, mode, offset, length, caller);
        });
  }

  @Override
  public long copyRange(
      long inode,
      long handle,
      long offset,
      long toInode,
      long toHandle,
      long toOffset,
      long length,
      Caller caller)
      throws FsException {
    return io(
        () -> {
          openFiles.use(toInode, toHandle, caller);
          return data.copyRange(
              inode, offset, toInode, openFiles.origin(toHandle), toOffset, length, caller);
        });
  }

  @Override
  public long seek(long inode, long handle, long offset, int whence) throws FsException {
    return io(() -> data.seek(inode, offset, whence));
  }

  // ---- attributes

  @Override
  public Node setAttributes(long inode, NewAttributes attributes, Caller caller)
      throws FsException {
    return io(
        () -> {
          if (attributes.size() != null) {
            openFiles.use(inode, attributes.handle(), caller);
          }
          return data.setAttributes(inode, attributes, caller);
        });
  }

  @Override
  public void setExtendedAttribute(
      long inode, FileName name, byte[] value, int flags, Caller caller) throws FsException {
    run(() -> extended.set(inode, name, value, flags, caller));
  }

  @Override
  public void removeExtendedAttribute(long inode, FileName name, Caller caller) throws FsException {
    run(() -> extended.set(inode, name, null, 0, caller));
  }

  @Override
  public void forget(long inode, long lookups) {
    try {
      openFiles.forget(inode);
    } catch (FsException | NamespaceException e) {
      log.warn("forgetting inode {}: {}", inode, e.getMessage());
    }
  }

  @Override
  public void endSession() throws FsException {
    run(sessions::end);
  }

  // ---- other nodes of a cluster

  @Override
  public Interrupts interrupts() {
    return interrupts;
  }

  /** How the data files of other nodes are reached. Called once, before a node joins. */
  public void use(NodeData.Nodes others) {
    local.use(others);
  }

  /** A name for the state of this mount, which persists. */
  public String id() {
    return id;
  }

  /**
   * A session of another node's kernel begins or goes on.
   *
   * @param member the node's id, which persists
   * @param name of the node, for messages
   * @return its number, for {@link Caller#on}
   */
  public int join(UUID session, UUID member, String name) throws FsException {
    return io(
        () -> {
          int node = sessions.join(session);
          openFiles.join(node, local.placeOf(member, name, state));
          return node;
        });
  }

  /** Another node is back: what waits for it is tried again. */
  public void isBack() {
    drain.hurry();
  }

  /** Nothing is open any more on another node, in whatever way it ended. */
  public void leave(int node) {
    openFiles
        .handlesOf(node)
        .forEach(
            (handle, inode) -> {
              release(inode, handle);
              forget(inode, 1);
            });
  }

  @Override
  public Node recorded(long inode) throws FsException {
    return io(() -> new Node(inode, nodes.refresh(nodes.find(inode)).attributes()));
  }

  @Override
  public long resume(
      long inode, long handle, long generation, long low, boolean onlyGrew, Caller caller)
      throws FsException {
    return io(
        () -> {
          openFiles.use(inode, handle, caller);
          return live.exclusively(inode, file -> contents.resume(file, generation, low, onlyGrew));
        });
  }

  @Override
  public List<NodeData.Id> unused(List<NodeData.Id> files, Caller caller) throws FsException {
    int place = openFiles.placeOf(caller);
    return io(
        () -> {
          List<NodeData.Id> unused = new ArrayList<>();
          for (NodeData.Id file : files) {
            DataRow row = state.data(file.inode(), file.generation());
            if (row == null || row.place() != place) {
              unused.add(file);
            }
          }
          return unused;
        });
  }

  // ---- the way to the source

  @Override
  public @Nullable String stateFailure() {
    String failure = state.failure();
    return failure == null ? state.shortage() : failure;
  }

  @Override
  public @Nullable String sourceFailure() {
    return tree.failure();
  }

  @Override
  public DrainStatus drainStatus() {
    return status(drain.refusedCount() + conflicts.givenUpCount(), drain.failures());
  }

  private DrainStatus status(long refused, List<DrainStatus.Failure> failures) {
    return new DrainStatus(
        waiting.bytes(),
        waiting.files() + drain.unclosedCount(),
        state.waitingCount() + drain.unclosedCount(),
        drain.oldestMillis() / MILLIS,
        pace.totalBytes(),
        committer.madeCount(),
        pace.recentBytesPerSecond(),
        local.usedBytes(),
        conflicts.count(),
        refused,
        failures,
        drain.away());
  }

  @Override
  public DrainStatus acknowledge() throws FsException {
    return io(
        () -> {
          try (State.Held held = state.hold()) {
            DrainStatus told = status(conflicts.givenUpCount(), conflicts.last());
            State.Update update = state.update();
            state.scan(
                Tables.CONFLICTS,
                new byte[0],
                (key, value) -> {
                  update.delete(Tables.CONFLICTS, key);
                  return true;
                });
            update.afterwards(conflicts::acknowledge);
            update.commit();
            return told;
          }
        });
  }

  @Override
  public List<String> retry(FileName path) throws FsException {
    return io(() -> refused.retry(path));
  }

  @Override
  public List<String> drop(FileName path) throws FsException {
    return io(() -> refused.drop(path));
  }

  @Override
  public List<String> waiting(int most) {
    return drain.waiting(most);
  }

  @Override
  public boolean drain(long timeoutMillis) throws InterruptedException {
    return drain.drain(timeoutMillis);
  }

  /** Makes one step at the source, for tests without threads; returns false if there is none. */
  public boolean step() throws FsException {
    return drain.step();
  }

  /** What the source does not have is tried again in the next steps, for tests without threads. */
  public void tryAgain() {
    committer.again().ask();
  }

  /** The same, with what the committer's thread does about a refusal. */
  public boolean attempt() throws FsException {
    return drain.attempt();
  }

  /** Runs something whenever the tables are on the disk, for tests of power cuts. */
  public void afterSyncs(Runnable then) {
    state.afterSyncs(then);
  }

  /** Removes data files without use, for tests without threads. */
  public void tidy() throws FsException {
    while (room.collect()) {
      log.trace("removed data files");
    }
    room.tidyAtSource();
  }

  /** Brings files that stay open and grow to the journal, for tests without threads. */
  public void announcePieces() throws FsException {
    drain.announcePieces();
  }

  @Override
  public void close() {
    drain.close();
    copies.close();
    for (LiveFile file : live.all()) {
      descriptors.close(file);
    }
    tree.close();
    local.close();
    state.close();
  }
}
