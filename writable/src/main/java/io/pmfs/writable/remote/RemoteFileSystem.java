package io.pmfs.writable.remote;

import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.Interrupts;
import io.pmfs.writable.NodeAway;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * A writable mount that another node owns. This node handles what it can and forwards the rest.
 * While the owner does not answer, operations wait as long as its daemon may take to be replaced,
 * then fail with EIO; open files stay readable if their content is here or at the source.
 * Thread-safe.
 */
public final class RemoteFileSystem extends OwnerCalls implements Interrupts.Holder {
  /**
   * Longer than the replacement of a daemon takes, and shorter than this node's supervisor
   * tolerates silence: a waiting change locks its directory, and in the root all paths.
   */
  public static final long PATIENCE_MILLIS = 12_000;

  private final KeptContent kept;
  private final SourceReads sourceReads;
  private final Upkeep upkeep;
  private volatile @Nullable Node root;

  /**
   * This node's part.
   *
   * @param member its id, which persists
   * @param name for messages on other nodes
   * @param session identifies the kernel's session
   * @param source the mounted directory, as this node sees it
   * @param calls on the source
   * @param files that this node keeps
   */
  public record Self(
      UUID member, String name, UUID session, Path source, OutputCalls calls, NodeFiles files) {}

  private RemoteFileSystem(Owner owner, Self self) {
    super(owner);
    this.kept = new KeptContent(self.files(), owner);
    this.sourceReads = new SourceReads(self.calls(), self.source(), owner.interrupts());
    this.upkeep = new Upkeep(owner, kept);
  }

  /**
   * Joins the owner.
   *
   * @param isResumed whether an earlier process served the same session: then the owner may be away
   * @param patience how long the owner may take to answer for the first time
   * @param patienceMillis how long it may take to answer later
   * @throws FsException if the owner cannot be reached, or has another version of pmfs
   */
  public static WritableFileSystem join(
      OwnerLink link, Self self, boolean isResumed, Duration patience, long patienceMillis)
      throws FsException {
    RemoteFileSystem remote = new RemoteFileSystem(new Owner(link, self, patienceMillis), self);
    remote.upkeep.start(isResumed ? null : patience.toMillis());
    return remote;
  }

  @Override
  public Interrupts interrupts() {
    return owner.interrupts();
  }

  // ---- names and attributes

  @Override
  public @Nullable Node lookup(long directory, FileName name) throws FsException {
    MessageWriter values = with().at(directory, name);
    Node node =
        ask(OwnerRequest.LOOKUP, values, in -> in.optional(MessageReader::node)).orElse(null);
    return node == null ? null : seen(node);
  }

  @Override
  public Node link(long inode, long directory, FileName name, Caller caller) throws FsException {
    MessageWriter values = with().number(inode).at(directory, name).caller(caller);
    return seen(ask(OwnerRequest.LINK, values, MessageReader::node));
  }

  private Node seen(Node node) {
    kept.saw(node);
    sourceReads.saw(node);
    return node;
  }

  /**
   * Uses the last known attributes of open files while the owner does not answer, because read(2)
   * asks for them.
   */
  @Override
  public Node attributes(long inode) throws FsException {
    if (inode == ROOT) {
      return root();
    }
    Node written = kept.attributes(inode);
    if (written != null) {
      return seen(written);
    }
    MessageWriter values = with().number(inode);
    try {
      return seen(ask(OwnerRequest.ATTRIBUTES, values, MessageReader::node));
    } catch (FsException e) {
      Node known = e.getCause() instanceof NodeAway ? known(inode) : null;
      if (known == null) {
        throw e;
      }
      return known;
    }
  }

  private @Nullable Node known(long inode) throws FsException {
    Node known = sourceReads.known(inode);
    return known == null ? kept.known(inode) : known;
  }

  /**
   * Uses the last known attributes of the root while the owner does not answer, because every path
   * starts there, the heartbeat's too.
   */
  private Node root() throws FsException {
    Node known = root;
    MessageWriter values = with().number(ROOT);
    try {
      Node now =
          known == null
              ? ask(OwnerRequest.ATTRIBUTES, values, MessageReader::node)
              : owner.ask(
                  Upkeep.COMMAND_MILLIS, OwnerRequest.ATTRIBUTES, values, MessageReader::node);
      root = now;
      return now;
    } catch (FsException e) {
      if (known == null) {
        throw e;
      }
      return known;
    }
  }

  @Override
  public Node setAttributes(long inode, NewAttributes wanted, Caller caller) throws FsException {
    NewAttributes left;
    try {
      left = kept.truncate(inode, wanted, caller);
    } finally {
      if (wanted.size() != null) {
        sourceReads.changed(inode);
      }
    }
    if (wanted.size() != null && isEmpty(left)) {
      return attributes(inode);
    }
    MessageWriter values = with().number(inode).newAttributes(left).caller(caller);
    return seen(
        left.size() == null
            ? ask(OwnerRequest.SET_ATTRIBUTES, values, MessageReader::node)
            : askToChange(inode, OwnerRequest.SET_ATTRIBUTES, values, MessageReader::node));
  }

  private static boolean isEmpty(NewAttributes wanted) {
    return wanted.size() == null
        && wanted.mode() == null
        && wanted.uid() == null
        && wanted.gid() == null
        && wanted.accessTime() == null
        && wanted.modificationTime() == null;
  }

  /** Asks for a change of a content. */
  private <T> T askToChange(
      long inode, OwnerRequest request, MessageWriter values, MessageReader.Reading<T> result)
      throws FsException {
    try {
      return ask(request, values, result);
    } finally {
      changed(inode);
    }
  }

  /** The owner has changed a content, or may have: what this node has of it is obsolete. */
  private void changed(long inode) {
    kept.changed(inode);
    sourceReads.changed(inode);
  }

  // ---- open files

  @Override
  public Opened create(long directory, FileName name, int mode, int flags, Caller caller)
      throws FsException {
    OwnerRequest request = kept.hasRoom() ? OwnerRequest.CREATE_HERE : OwnerRequest.CREATE;
    MessageWriter values = with().at(directory, name).small(mode).small(flags).caller(caller);
    Opened opened = askToOpen(request, values, caller);
    if ((flags & OutputCalls.O_TRUNC) != 0) {
      changed(opened.node().inode());
    }
    return here(opened, true, -1, caller);
  }

  @Override
  public Opened createUnnamed(long directory, int mode, int flags, Caller caller)
      throws FsException {
    MessageWriter values = with().number(directory).small(mode).small(flags).caller(caller);
    return askToOpen(OwnerRequest.CREATE_UNNAMED, values, caller);
  }

  /** Asks for a handle, which the owner closes if its answer does not arrive. */
  private Opened askToOpen(OwnerRequest request, MessageWriter values, Caller caller)
      throws FsException {
    try {
      return ask(request, values, MessageReader::opened);
    } catch (FsException e) {
      // An earlier attempt than the one that failed last may have arrived.
      if (e.getCause() instanceof NodeAway || e.getCause() instanceof BusyException) {
        upkeep.unanswered(caller.unique());
      }
      throw e;
    }
  }

  @Override
  public Opened open(long inode, int flags, Caller caller) throws FsException {
    boolean empties = (flags & OutputCalls.O_TRUNC) != 0;
    OwnerRequest request = empties && !kept.hasRoom() ? OwnerRequest.OPEN : OwnerRequest.OPEN_HERE;
    MessageWriter values = with().number(inode).small(flags).caller(caller);
    long changes = sourceReads.changesOf(inode);
    Opened opened;
    try {
      opened = askToOpen(request, values, caller);
    } finally {
      if (empties) {
        changed(inode);
      }
    }
    return here(opened, empties, changes, caller);
  }

  private Opened here(Opened opened, boolean begins, long changes, Caller caller)
      throws FsException {
    try {
      kept.opened(opened, begins);
      sourceReads.opened(opened, changes, caller);
      return opened;
    } catch (FsException e) {
      upkeep.closed(opened.node().inode(), opened.handle());
      throw e;
    }
  }

  @Override
  public void read(long inode, long handle, long offset, int size, ReadSink sink)
      throws FsException {
    if (kept.read(inode, handle, offset, size, sink)
        || sourceReads.read(handle, offset, size, sink)) {
      return;
    }
    MessageWriter values = with(inode, handle).number(offset).small(size);
    ByteBuffer bytes = ask(OwnerRequest.READ, values, MessageReader::content);
    int count = bytes.remaining();
    if (count > size) {
      throw new FsException(Errno.EIO, "the owner has sent more bytes than requested");
    }
    pass(sink.buffer(count).position(0).limit(count).put(bytes).flip(), sink);
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
    int length = bytes.remaining();
    try {
      if (kept.write(inode, handle, offset, bytes, append, caller)) {
        return length;
      }
    } finally {
      sourceReads.changed(inode);
    }
    MessageWriter values = with(inode, handle).number(offset).content(bytes);
    values.flag(append).flag(clearSetId).caller(caller);
    return askToChange(inode, OwnerRequest.WRITE, values, MessageReader::small);
  }

  @Override
  public void flush(long inode, long handle, Caller caller) throws FsException {
    if (!kept.isUntouched(inode, handle)) {
      NodeData.Paused paused = kept.pause(inode, handle);
      owner.send(
          OwnerRequest.FLUSH,
          flushing(inode, handle, paused, caller),
          flushing(inode, handle, null, caller));
    }
  }

  /** Without the state, the owner asks for it. */
  private static MessageWriter flushing(
      long inode, long handle, NodeData.@Nullable Paused paused, Caller caller) {
    return with(inode, handle).optional(paused, MessageWriter::paused).caller(caller);
  }

  @Override
  public void allocate(long inode, long handle, int mode, long offset, long length, Caller caller)
      throws FsException {
    try {
      if (kept.allocate(inode, handle, mode, offset, length, caller)) {
        return;
      }
    } finally {
      sourceReads.changed(inode);
    }
    MessageWriter values = with(inode, handle).small(mode).number(offset).number(length);
    askToChange(inode, OwnerRequest.ALLOCATE, values.caller(caller), Owner.NOTHING);
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
    MessageWriter values = with(inode, handle).number(offset);
    values.number(toInode).number(toHandle).number(toOffset).number(length).caller(caller);
    return askToChange(toInode, OwnerRequest.COPY_RANGE, values, MessageReader::number);
  }

  @Override
  public void release(long inode, long handle) {
    kept.release(inode, handle);
    sourceReads.release(handle);
    upkeep.closed(inode, handle);
  }

  @Override
  public void forget(long inode, long lookups) {
    upkeep.forgotten(inode);
  }

  // ---- the way to the source

  @Override
  public DrainStatus drainStatus() {
    return upkeep.report().status();
  }

  @Override
  public @Nullable String stateFailure() {
    return upkeep.report().failure();
  }

  @Override
  public @Nullable String sourceFailure() {
    return upkeep.report().sourceFailure();
  }

  @Override
  public List<String> waiting(int most) {
    return upkeep.waiting(most);
  }

  @Override
  public boolean drain(long timeoutMillis) throws InterruptedException {
    return upkeep.drain(timeoutMillis);
  }

  @Override
  public void endSession() throws FsException {
    upkeep.sendAll();
    send(OwnerRequest.END_SESSION, with());
  }

  @Override
  public void close() {
    owner.close();
    upkeep.close();
    kept.close();
    sourceReads.close();
  }

  @Override
  public String toString() {
    return "the writable mount of " + owner.name();
  }
}
