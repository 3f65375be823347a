package io.pmfs.writable.remote;

import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeAway;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.remote.KeptFile.AskFirst;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.List;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import org.jspecify.annotations.Nullable;

/**
 * Content that this node's programs write to new files. It stays on this node; the owner learns of
 * it when a file is closed, or when it asks. Every operation can fall back to the owner, which then
 * takes the content.
 *
 * <p>A handle reads the file that the answer to its open named, until the owner reports another
 * version or makes a change for a program of this node. Then it reads from the owner. Thread-safe.
 */
final class KeptContent {
  /** Asks for what no program asked for. */
  static final Caller NO_CALLER = new Caller(0, 0, 0, 0);

  private final NodeFiles files;
  private final Owner owner;

  /** The kept file of each handle of this process, which is one use of it. */
  private final NavigableMap<Handle, KeptFile> handles =
      new ConcurrentSkipListMap<>(
          Comparator.comparingLong(Handle::inode).thenComparingLong(Handle::number));

  private record Handle(long inode, long number) {}

  KeptContent(NodeFiles files, Owner owner) {
    this.files = files;
    this.owner = owner;
  }

  boolean hasRoom() {
    return files.hasRoom();
  }

  long bytes() {
    return files.bytes();
  }

  /**
   * The owner has opened a file.
   *
   * @param begins whether the file is empty now, so that this node may create its data file
   */
  void opened(Opened opened, boolean begins) throws FsException {
    Node node = opened.node();
    saw(node);
    KeptFile file = opened.generation() == 0 ? null : acquire(opened, begins);
    if (file != null) {
      file.record(node.attributes());
      use(opened.handle(), file);
      if (mayBeOld(file)) {
        release(node.inode(), opened.handle());
      }
    }
  }

  /** Takes a use of the content; null if it is not here, and is read from the owner. */
  private @Nullable KeptFile acquire(Opened opened, boolean begins) throws FsException {
    long inode = opened.node().inode();
    KeptFile file = files.find(inode, opened.generation());
    if (file == null) {
      boolean isEmpty = begins && opened.node().attributes().size() == 0;
      return isEmpty ? files.make(inode, opened.generation()) : null;
    }
    try {
      file.acquire();
      return file;
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
      return null; // It was removed meanwhile.
    }
  }

  /** Whether the owner may have begun another content while its answer was on its way. */
  private boolean mayBeOld(KeptFile file) {
    return files.latest(file.id().inode()) != file || file.isBlank();
  }

  /** Gives a use to a handle. */
  private void use(long handle, KeptFile file) {
    KeptFile former = handles.put(new Handle(file.id().inode(), handle), file);
    if (former != null) {
      former.release();
    }
  }

  void release(long inode, long handle) {
    KeptFile file = handles.remove(new Handle(inode, handle));
    if (file != null) {
      file.release();
    }
  }

  private @Nullable KeptFile used(long inode, long handle) {
    return handles.get(new Handle(inode, handle));
  }

  private NavigableMap<Handle, KeptFile> usesOf(long inode) {
    return handles.subMap(
        new Handle(inode, Long.MIN_VALUE), true, new Handle(inode, Long.MAX_VALUE), true);
  }

  /** The owner says what a node is now. */
  void saw(Node node) {
    usesOf(node.inode())
        .forEach(
            (handle, file) -> {
              if (!file.isStill(node.attributes().version())) {
                release(handle.inode(), handle.number());
              }
            });
  }

  /** The owner has changed a content for a program of this node, or may have. */
  void changed(long inode) {
    KeptFile file = files.latest(inode);
    if (file != null) {
      files.giveUp(file);
    }
    usesOf(inode).keySet().forEach(handle -> release(inode, handle.number()));
  }

  /** The attributes of a file that this node writes; null if it does not. */
  @Nullable Node attributes(long inode) throws FsException {
    KeptFile file = files.latest(inode);
    if (file == null || file.isIdle()) {
      return null;
    }
    Attributes shown = file.shown(recorded(file));
    return shown == null ? null : new Node(inode, shown);
  }

  private Attributes recorded(KeptFile file) throws FsException {
    try {
      MessageWriter values = Message.request().number(file.id().inode());
      Attributes now = owner.ask(OwnerRequest.RECORDED, values, MessageReader::node).attributes();
      file.record(now);
      return now;
    } catch (FsException e) {
      Attributes last = file.recorded();
      if (last == null || !(e.getCause() instanceof NodeAway)) {
        throw e;
      }
      return last;
    }
  }

  /** The attributes, without the owner, of a file that is open and kept here; else null. */
  @Nullable Node known(long inode) throws FsException {
    KeptFile file = files.latest(inode);
    Attributes known = file == null ? null : file.known();
    return known == null ? null : new Node(inode, known);
  }

  /**
   * Whether this close needs no report: a program has only duplicated the descriptor of a file that
   * it has not written. The last close reports an empty file.
   */
  boolean isUntouched(long inode, long handle) {
    KeptFile file = used(inode, handle);
    return file != null && file.isUntouched();
  }

  /**
   * Stops writing for a close, and returns the state to report to the owner; null if this node did
   * not write.
   */
  NodeData.@Nullable Paused pause(long inode, long handle) throws FsException {
    KeptFile file = used(inode, handle);
    return file == null ? null : file.pause();
  }

  /** Reads kept content; returns false if it is not kept here. */
  boolean read(long inode, long handle, long offset, int size, ReadSink sink) throws FsException {
    KeptFile file = used(inode, handle);
    if (file == null) {
      return false;
    }
    ByteBuffer buffer = sink.buffer(size);
    buffer.position(0).limit(size);
    int count = file.read(buffer, offset);
    if (count < 0) {
      return false; // Another thread has given it up.
    }
    OwnerCalls.pass(buffer.position(0).limit(count), sink);
    return true;
  }

  private interface Change {
    /** Returns false if the owner must make it. */
    boolean make(KeptFile file) throws FsException, AskFirst;
  }

  private boolean change(long inode, long handle, Caller caller, Change change) throws FsException {
    KeptFile known = used(inode, handle);
    KeptFile file = known == null ? files.latest(inode) : known;
    if (file == null || handle == 0) {
      return false;
    }
    if (owner.isCutOff()) {
      throw new FsException(Errno.EIO, "the owner of the mount does not answer");
    }
    while (true) {
      try {
        if (change.make(file)) {
          return true;
        }
        giveUp(file);
        return false;
      } catch (AskFirst asked) {
        if (!mayGoOn(file, handle, asked, caller)) {
          giveUp(file);
          return false;
        }
      }
    }
  }

  private boolean mayGoOn(KeptFile file, long handle, AskFirst asked, Caller caller)
      throws FsException {
    NodeData.Id id = file.id();
    MessageWriter values =
        Message.request().number(id.inode()).number(handle).number(id.generation());
    values.number(asked.low).flag(asked.onlyGrew).number(asked.pauses).caller(caller.unasked());
    long floor = owner.ask(OwnerRequest.RESUME, values, MessageReader::number);
    if (floor < 0) {
      return false;
    }
    file.acquire();
    use(handle, file);
    file.resume(asked, floor);
    return true;
  }

  /** Gives the content to the owner. */
  private void giveUp(KeptFile file) {
    files.giveUp(file);
    changed(file.id().inode());
  }

  /** Writes; returns false if the owner must do it. */
  boolean write(
      long inode, long handle, long offset, ByteBuffer bytes, boolean append, Caller caller)
      throws FsException {
    boolean isAgain = used(inode, handle) == null;
    return change(
        inode,
        handle,
        caller,
        file -> {
          if (!isAgain) {
            return file.write(offset, bytes, append, false);
          }
          file.acquire(); // A handle of an earlier process has not opened it yet.
          try {
            return file.write(offset, bytes, append, true);
          } finally {
            file.release();
          }
        });
  }

  /**
   * Sets the size.
   *
   * @return the attributes that the owner must still change; {@code wanted} itself if all
   */
  NewAttributes truncate(long inode, NewAttributes wanted, Caller caller) throws FsException {
    Long size = wanted.size();
    if (size == null || size < 0 || used(inode, wanted.handle()) == null) {
      return wanted;
    }
    boolean isMade = change(inode, wanted.handle(), caller, file -> file.truncate(size));
    return !isMade
        ? wanted
        : new NewAttributes(
            wanted.mode(),
            wanted.uid(),
            wanted.gid(),
            null,
            wanted.accessTime(),
            wanted.modificationTime(),
            wanted.handle(),
            wanted.clearSetId());
  }

  /** Allocates room; returns false if the owner must do it. */
  boolean allocate(long inode, long handle, int mode, long offset, long length, Caller caller)
      throws FsException {
    boolean isPlain = (mode & ~OutputCalls.FALLOC_KEEP_SIZE) == 0;
    if (!isPlain || offset < 0 || length <= 0 || used(inode, handle) == null) {
      return false;
    }
    return change(inode, handle, caller, file -> file.allocate(mode, offset, length));
  }

  // ---- obsolete files

  /** Removes files that the owner no longer needs. */
  void tidy() throws FsException {
    List<NodeData.Id> idle = files.idle();
    for (int from = 0; from < idle.size(); from += Message.LISTED) {
      List<NodeData.Id> asked =
          List.copyOf(idle.subList(from, Math.min(idle.size(), from + Message.LISTED)));
      MessageWriter values = Message.request().list(asked, MessageWriter::file).caller(NO_CALLER);
      files.remove(owner.ask(OwnerRequest.UNUSED, values, in -> in.list(MessageReader::file)));
    }
  }

  void close() {
    files.close();
  }
}
