package io.pmfs.writable.mount;

import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.table.StateException;
import io.pmfs.table.TableStore;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.Interrupts;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.OwnedFileSystem;
import io.pmfs.writable.WritableSettings;
import io.pmfs.writable.data.OutputData;
import io.pmfs.writable.data.OutputFiles;
import io.pmfs.writable.drain.Drain;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.tree.Extended;
import io.pmfs.writable.tree.OutputTree;
import io.pmfs.writable.tree.SourceLooks;
import io.pmfs.writable.tree.SourceTree;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A writable view of a source directory: files are written to a tier immediately, changes are
 * journaled, and a committer makes them at the source in order. Changes that the source lacks
 * survive the process.
 */
@SuppressWarnings("try")
public final class WritableMount implements OwnedFileSystem, Interrupts.Holder {
  private static final Logger log = LoggerFactory.getLogger(WritableMount.class);

  /** Differs after each start of the machine (random(4)). */
  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

  private static final byte[] ID = "id".getBytes(StandardCharsets.US_ASCII);
  private static final int ID_SIZE = 8;

  private final State state;
  private final OutputTree tree;
  private final OutputData data;
  private final Drain drain;
  private final Sessions sessions;
  private final Interrupts interrupts = new Interrupts();
  private final boolean syncsAtSource;
  private final String id;

  private WritableMount(State state, WritableSettings settings, OutputCalls calls)
      throws FsException {
    this.state = state;
    syncsAtSource = settings.syncsAtSource();
    id = mountId(state);
    SourceLooks looks =
        new SourceLooks(settings.momentMillis(), settings.patienceMillis(), interrupts);
    SourceTree source = new SourceTree(calls, state, settings, looks);
    Extended extended = new Extended(state, source);
    DataPlaces places = new DataPlaces(settings.places(), state, source, id);
    OutputFiles files = new OutputFiles(state, source, places, extended);
    tree = OutputTree.of(state, source, extended, files);
    data = OutputData.of(state, tree, files, places);
    drain = new Drain(state, tree, data, settings, id);
    sessions = new Sessions(state, tree, data, drain);
  }

  /**
   * Opens a mount and continues an earlier one. The source need not be reachable.
   *
   * @throws StateException if the state belongs to another mount or cannot be read
   */
  public static WritableMount open(WritableSettings settings, OutputCalls calls)
      throws FsException {
    WritableMount mount = open(settings, calls, InstantSource.system(), bootId());
    mount.tree.source().beginStatistics();
    return mount;
  }

  private static String bootId() {
    try {
      return Files.readString(BOOT_ID);
    } catch (IOException e) {
      log.warn("{}: {}; unsynced data files are not trusted", BOOT_ID, e.getMessage());
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
      WritableMount mount = new WritableMount(new State(store, clock), settings, calls);
      mount.sessions.begin(settings, bootId.getBytes(StandardCharsets.UTF_8));
      return mount;
    } catch (FsException | RuntimeException | Error e) {
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

  @Override
  public @Nullable Node lookup(long directory, FileName name) throws FsException {
    Inode found = tree.nodes().lookup(directory, name);
    return found == null ? null : tree.nodes().shown(tree.nodes().refresh(found));
  }

  @Override
  public Node attributes(long inode) throws FsException {
    return tree.nodes().node(inode);
  }

  @Override
  public void list(long directory, long position, EntryConsumer entries) throws FsException {
    tree.nodes().list(directory, position, entries);
  }

  @Override
  public long parent(long directory) throws FsException {
    long parent = tree.nodes().find(directory).parent();
    return parent == 0 ? directory : parent;
  }

  @Override
  public FileName readSymbolicLink(long number) throws FsException {
    Inode inode = tree.nodes().find(number);
    if (inode.type() != FileType.SYMBOLIC_LINK) {
      throw new FsException(Errno.EINVAL, "inode " + number);
    }
    return tree.nodes().target(inode);
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(long inode) throws FsException {
    tree.nodes().find(inode);
    return tree.extended().of(inode);
  }

  @Override
  public byte @Nullable [] extendedAttribute(long inode, FileName name) throws FsException {
    Extended.checkName(name.toString());
    tree.nodes().find(inode);
    return tree.extended().of(inode, name);
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    return tree.source().statistics();
  }

  // ---- names

  @Override
  public Node mkdir(long directory, FileName name, int mode, Caller caller) throws FsException {
    return tree.names().mkdir(directory, name, mode, caller);
  }

  @Override
  public Node mknod(long directory, FileName name, int mode, long device, Caller caller)
      throws FsException {
    return tree.names().mknod(directory, name, mode, device, caller);
  }

  @Override
  public Node symlink(long directory, FileName name, FileName target, Caller caller)
      throws FsException {
    return tree.names().symlink(directory, name, target, caller);
  }

  @Override
  public Node link(long inode, long directory, FileName name, Caller caller) throws FsException {
    return tree.names().link(inode, directory, name, caller);
  }

  @Override
  public void unlink(long directory, FileName name, Caller caller) throws FsException {
    tree.names().unlink(directory, name, caller);
  }

  @Override
  public void rmdir(long directory, FileName name, Caller caller) throws FsException {
    tree.names().rmdir(directory, name, caller);
  }

  @Override
  public void rename(
      long directory, FileName name, long newDirectory, FileName newName, int flags, Caller caller)
      throws FsException {
    tree.renames().rename(directory, name, newDirectory, newName, flags, caller);
  }

  // ---- open files

  @Override
  public Opened create(long directory, FileName name, int mode, int flags, Caller caller)
      throws FsException {
    return data.open().create(directory, name, mode, flags, -1, caller);
  }

  @Override
  public Opened createHere(long directory, FileName name, int mode, int flags, Caller caller)
      throws FsException {
    return data.open().create(directory, name, mode, flags, data.handles().placeOf(caller), caller);
  }

  @Override
  public Opened createUnnamed(long directory, int mode, int flags, Caller caller)
      throws FsException {
    return data.open().createUnnamed(directory, mode, flags, caller);
  }

  @Override
  public Opened open(long inode, int flags, Caller caller) throws FsException {
    return data.open().open(inode, flags, -1, caller);
  }

  @Override
  public Opened openHere(long inode, int flags, Caller caller) throws FsException {
    return data.open().open(inode, flags, data.handles().placeOf(caller), caller);
  }

  @Override
  public void read(long inode, long handle, long offset, int size, ReadSink sink)
      throws FsException {
    data.requests().read(inode, offset, size, sink);
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
    data.handles().use(inode, handle, caller);
    return data.requests()
        .write(inode, data.handles().origin(handle), offset, bytes, append, clearSetId, caller);
  }

  @Override
  public void flush(long inode, long handle, Caller caller) throws FsException {
    data.open().announce(inode, caller);
    drain.unreported().report(inode);
  }

  @Override
  public void fsync(long inode, long handle, boolean dataOnly, Caller caller) throws FsException {
    if (syncsAtSource) {
      data.open().announce(inode, caller);
    }
    data.open().fsync(inode);
    if (syncsAtSource) {
      awaitSource(inode);
    } else {
      drain.unreported().check(inode);
    }
  }

  @Override
  public void fsyncDirectory(long inode, Caller caller) throws FsException {
    state.sync();
    awaitSource(inode);
  }

  /** Waits until the source has the node's present state, if fsync is configured to mean that. */
  private void awaitSource(long number) throws FsException {
    Inode inode = syncsAtSource ? state.find(number) : null;
    if (inode != null && !inode.isRemoved()) {
      drain.await(inode);
    }
  }

  @Override
  public void release(long inode, long handle) {
    try {
      data.open().release(inode, handle);
    } catch (FsException e) {
      log.warn("closing inode {}: {}; it will be retried", inode, e.getMessage());
      drain.unclosed().closeLater(inode, e);
    }
  }

  @Override
  public void allocate(long inode, long handle, int mode, long offset, long length, Caller caller)
      throws FsException {
    data.handles().use(inode, handle, caller);
    data.requests().allocate(inode, mode, offset, length, caller);
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
    data.handles().use(toInode, toHandle, caller);
    return data.requests()
        .copyRange(
            inode, offset, toInode, data.handles().origin(toHandle), toOffset, length, caller);
  }

  @Override
  public long seek(long inode, long handle, long offset, int whence) throws FsException {
    return data.requests().seek(inode, offset, whence);
  }

  // ---- attributes

  @Override
  public Node setAttributes(long inode, NewAttributes attributes, Caller caller)
      throws FsException {
    if (attributes.size() != null) {
      data.handles().use(inode, attributes.handle(), caller);
    }
    return data.requests().setAttributes(inode, attributes, caller);
  }

  @Override
  public void setExtendedAttribute(
      long inode, FileName name, byte[] value, int flags, Caller caller) throws FsException {
    tree.extended().set(inode, name, value, flags, caller);
  }

  @Override
  public void removeExtendedAttribute(long inode, FileName name, Caller caller) throws FsException {
    tree.extended().set(inode, name, null, 0, caller);
  }

  @Override
  public void forget(long inode, long lookups) {
    try {
      data.open().forget(inode);
    } catch (FsException e) {
      log.warn("forgetting inode {}: {}", inode, e.getMessage());
    }
  }

  @Override
  public void endSession() throws FsException {
    sessions.end();
  }

  // ---- other nodes of a cluster

  @Override
  public Interrupts interrupts() {
    return interrupts;
  }

  /** Sets how the data files of other nodes are reached. Called once, before a node joins. */
  public void use(NodeData.Nodes others) {
    data.places().use(others);
  }

  /** A persistent id of this mount's state. */
  public String id() {
    return id;
  }

  /**
   * Starts or continues a session of another node's kernel.
   *
   * @param member the node's id, which persists
   * @param name of the node, for messages
   * @return its number, for {@link Caller#on}
   */
  public int join(UUID session, UUID member, String name) throws FsException {
    int node = sessions.join(session);
    data.handles().join(node, data.places().placeOf(member, name, session, state));
    return node;
  }

  /** Retries what waits for a node that is back. */
  public void isBack(UUID member) {
    data.places().nodes().isBack(member);
    drain.hurry();
  }

  /** Returns what closes everything that another node has open now. */
  public Runnable leaving(int node) {
    Map<Long, Long> open = data.handles().handlesOf(node);
    return () -> close(open);
  }

  private void close(Map<Long, Long> handles) {
    handles.forEach(
        (handle, inode) -> {
          release(inode, handle);
          forget(inode, 1);
        });
  }

  @Override
  public void closeUnanswered(long unique, Caller caller) {
    close(data.handles().handlesOf(new Caller(unique, 0, 0, 0).on(caller.node())));
  }

  @Override
  public Node recorded(long inode) throws FsException {
    return new Node(inode, tree.nodes().refresh(tree.nodes().find(inode)).attributes());
  }

  @Override
  public long resume(
      long inode,
      long handle,
      long generation,
      long low,
      boolean onlyGrew,
      long pauses,
      Caller caller)
      throws FsException {
    data.handles().use(inode, handle, caller);
    try (OutputFiles.Locked locked = data.files().lock(inode)) {
      return data.contents().resume(locked.file(), generation, low, onlyGrew, pauses);
    }
  }

  @Override
  public void flushHere(long inode, long handle, NodeData.@Nullable Paused paused, Caller caller)
      throws FsException {
    if (paused != null) {
      try (OutputFiles.Locked locked = data.files().lock(inode)) {
        locked.file().paused(paused, data.handles().placeOf(caller));
      }
    }
    flush(inode, handle, caller);
  }

  @Override
  public List<NodeData.Id> unused(List<NodeData.Id> kept, Caller caller) throws FsException {
    int place = data.handles().placeOf(caller);
    List<NodeData.Id> unused = new ArrayList<>();
    for (NodeData.Id file : kept) {
      if (!data.files().isNeeded(file, place)) {
        unused.add(file);
      }
    }
    if (!unused.isEmpty()) {
      state.sync(); // After a power failure, the tables must not name what the node removes.
    }
    return unused;
  }

  // ---- the way to the source

  @Override
  public @Nullable String stateFailure() {
    String failure = state.failure();
    return failure == null ? state.shortage() : failure;
  }

  @Override
  public @Nullable String sourceFailure() {
    return tree.source().failure();
  }

  @Override
  public DrainStatus drainStatus() {
    return drain.status();
  }

  @Override
  public DrainStatus acknowledge() throws FsException {
    return drain.acknowledge();
  }

  @Override
  public List<String> retry(FileName path) throws FsException {
    return drain.refused().retry(path);
  }

  @Override
  public List<String> drop(FileName path) throws FsException {
    return drain.refused().drop(path);
  }

  @Override
  public List<String> waiting(int most) {
    return drain.waiting(most);
  }

  @Override
  public boolean drain(long timeoutMillis) throws InterruptedException {
    return drain.drain(timeoutMillis);
  }

  /** Makes one step at the source, for tests; returns false if there is nothing to do. */
  public boolean step() throws FsException {
    return drain.step();
  }

  /** Makes the next steps retry deferred changes, for tests without threads. */
  public void tryAgain() {
    drain.tryAgain();
  }

  /** Makes one step and handles a refusal as the committer's thread does, for tests. */
  public boolean attempt() throws FsException {
    return drain.attempt();
  }

  /** Sets a hook that runs after each sync of the tables, for tests of power failures. */
  public void afterSyncs(Runnable then) {
    state.afterSyncs(then);
  }

  /** Removes obsolete data files, for tests without threads. */
  public void tidy() throws FsException {
    drain.tidy();
  }

  /** Announces growing open files, for tests without threads. */
  public void announcePieces() throws FsException {
    drain.announcePieces();
  }

  @Override
  public void close() {
    drain.close();
    data.contents().keepEmptied();
    data.files().close();
    tree.source().close();
    data.places().close();
    state.close();
  }
}
