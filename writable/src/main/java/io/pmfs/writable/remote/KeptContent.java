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
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * What this node's programs write to new files: it stays on this node, and the owner learns of it
 * when a file is closed, or when somebody asks. Everything here falls back to the owner, which then
 * takes the content. Safe for use by many threads.
 */
final class KeptContent {
  private static final Caller NOBODY = new Caller(0, 0, 0, 0);

  private final NodeFiles files;
  private final Owner owner;

  /**
   * What the owner recorded last of files that are open here: a program that reads on while the
   * owner is away needs their attributes, too.
   */
  private final Map<Long, Node> recorded = new ConcurrentHashMap<>();

  /** The files that this process's handles use. */
  private final Map<Long, KeptFile> handles = new ConcurrentHashMap<>();

  KeptContent(NodeFiles files, Owner owner) {
    this.files = files;
    this.owner = owner;
  }

  /** Whether new content can be kept here. */
  boolean hasRoom() {
    return files.hasRoom();
  }

  /** How much is kept here. */
  long bytes() {
    return files.bytes();
  }

  /**
   * The owner has opened a file.
   *
   * @param begins whether its content begins now, so that this node may have to make its file
   */
  void opened(Opened opened, boolean begins) throws FsException {
    if (opened.generation() == 0) {
      return;
    }
    long inode = opened.node().inode();
    KeptFile file = files.find(inode, opened.generation());
    if (file != null) {
      use(opened.handle(), file);
      recorded.put(inode, opened.node());
    } else if (begins && opened.node().attributes().size() == 0) {
      KeptFile made = files.make(inode, opened.generation());
      if (made != null) {
        handles.put(opened.handle(), made);
        recorded.put(inode, opened.node());
      }
    }
  }

  /** A file that was removed meanwhile is read from the owner. */
  private void use(long handle, KeptFile file) throws FsException {
    try {
      file.acquire();
      handles.put(handle, file);
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
    }
  }

  void release(long handle) {
    KeptFile file = handles.remove(handle);
    if (file != null) {
      recorded.remove(file.id().inode());
      file.release();
    }
  }

  /** The attributes of a file that this node writes; null if it does not. */
  @Nullable Node attributes(long inode) throws FsException {
    KeptFile file = files.latest(inode);
    if (file == null || file.isIdle()) {
      return null;
    }
    Attributes shown = file.shown(recorded(inode).attributes());
    return shown == null ? null : new Node(inode, shown);
  }

  private Node recorded(long inode) throws FsException {
    try {
      Node now =
          owner.ask(OwnerRequest.RECORDED, Message.request().number(inode), MessageReader::node);
      recorded.replace(inode, now);
      return now;
    } catch (FsException e) {
      Node last = recorded.get(inode);
      if (last == null || !(e.getCause() instanceof NodeAway)) {
        throw e;
      }
      return last;
    }
  }

  /**
   * Whether a close tells the owner nothing: a program has only copied the descriptor of a file
   * that it has not written to. The last close tells of an empty file.
   */
  boolean isUntouched(long handle) {
    KeptFile file = handles.get(handle);
    return file != null && file.isUntouched();
  }

  /** What the owner is told when a file is closed; null if this node did not write to it. */
  NodeData.@Nullable Told pause(long handle) throws FsException {
    KeptFile file = handles.get(handle);
    return file == null ? null : file.pause();
  }

  /** Reads what is kept here; returns false if it is not. */
  boolean read(long handle, long offset, int size, ReadSink sink) throws FsException {
    KeptFile file = handles.get(handle);
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

  /** A change of a file that is kept here. */
  private interface Change {
    /** Returns false if the owner has to make it. */
    boolean make(KeptFile file) throws FsException, AskFirst;
  }

  private boolean change(long inode, long handle, Caller caller, Change change) throws FsException {
    KeptFile known = handles.get(handle);
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
    if (handles.get(handle) != file) {
      file.acquire();
      handles.put(handle, file);
    }
    file.resume(asked, floor);
    return true;
  }

  /** From now on the owner has the content. */
  private void giveUp(KeptFile file) {
    files.giveUp(file);
    handles.forEach(
        (handle, used) -> {
          if (used == file) {
            release(handle);
          }
        });
  }

  /** Writes; returns false if the owner has to. */
  boolean write(
      long inode, long handle, long offset, ByteBuffer bytes, boolean append, Caller caller)
      throws FsException {
    boolean isAgain = !handles.containsKey(handle);
    return change(
        inode,
        handle,
        caller,
        file -> {
          if (!isAgain) {
            return file.write(offset, bytes, append, false);
          }
          file.acquire(); // A handle of a former process has not opened it yet.
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
   * @return what is left for the owner to change; the same as {@code wanted} if that is all
   */
  NewAttributes truncate(long inode, NewAttributes wanted, Caller caller) throws FsException {
    Long size = wanted.size();
    if (size == null || size < 0 || !handles.containsKey(wanted.handle())) {
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

  /** Allocates room; returns false if the owner has to. */
  boolean allocate(long inode, long handle, int mode, long offset, long length, Caller caller)
      throws FsException {
    boolean isPlain = (mode & ~OutputCalls.FALLOC_KEEP_SIZE) == 0;
    if (!isPlain || offset < 0 || length <= 0 || !handles.containsKey(handle)) {
      return false;
    }
    return change(inode, handle, caller, file -> file.allocate(mode, offset, length));
  }

  // ---- what is of no use any more

  /** Removes what the owner does not need. */
  void tidy() throws FsException {
    List<NodeData.Id> idle = files.idle();
    for (int from = 0; from < idle.size(); from += Message.LISTED) {
      List<NodeData.Id> asked =
          List.copyOf(idle.subList(from, Math.min(idle.size(), from + Message.LISTED)));
      MessageWriter values = Message.request().list(asked, MessageWriter::file).caller(NOBODY);
      files.remove(owner.ask(OwnerRequest.UNUSED, values, in -> in.list(MessageReader::file)));
    }
  }

  void close() {
    files.close();
  }
}
