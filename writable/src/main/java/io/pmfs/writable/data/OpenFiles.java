package io.pmfs.writable.data;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.tree.Names;
import io.pmfs.writable.tree.Nodes;
import io.pmfs.writable.tree.OutputTree;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Opening, syncing and closing files. Thread-safe. */
@SuppressWarnings("try")
public final class OpenFiles {
  private static final Logger log = LoggerFactory.getLogger(OpenFiles.class);

  private static final int REGULAR = 0100000;
  private static final int PERMISSIONS = 07777;
  private static final int OWNER_READS = 0400;
  private static final int OWNER_WRITES = 0200;

  private final State state;
  private final Nodes nodes;
  private final Names names;
  private final OutputFiles files;
  private final Contents contents;
  private final FileData data;
  private final Handles handles;

  public OpenFiles(
      State state,
      OutputTree tree,
      OutputFiles files,
      Contents contents,
      FileData data,
      Handles handles) {
    this.state = state;
    this.nodes = tree.nodes();
    this.names = tree.names();
    this.files = files;
    this.contents = contents;
    this.data = data;
    this.handles = handles;
  }

  // ---- opening

  /**
   * Creates and opens a file.
   *
   * @param place index of the place for its data if another node keeps them; -1 if this one does
   */
  public Opened create(long directory, FileName name, int mode, int flags, int place, Caller caller)
      throws FsException {
    Nodes.checkName(name);
    Long before = state.result(caller.unique());
    if (before != null) {
      return opened(state.inode(before), flags, place, caller);
    }
    while (true) {
      try {
        return createNew(directory, name, mode, flags, place, caller);
      } catch (FsException e) {
        if (e.errno() != Errno.EEXIST || (flags & OutputCalls.O_EXCL) != 0) {
          throw e;
        }
      }
      Inode existing = nodes.lookup(directory, name);
      if (existing != null) {
        requireChecked(existing, name, flags, caller);
        return open(existing.number(), flags, place, caller);
      }
    }
  }

  /**
   * Others who open the file by its new name wait until it has its data file. The lock of a new
   * file is free, so that taking it while holding the state's lock cannot wait.
   */
  private Opened createNew(
      long directory, FileName name, int mode, int flags, int place, Caller caller)
      throws FsException {
    List<OutputFiles.Locked> locked = new ArrayList<>(1);
    try {
      Inode created =
          names.makeName(
              directory,
              name,
              (update, parent, found) -> {
                Inode inode = fresh(update, parent, name, mode, place, caller);
                locked.add(Objects.requireNonNull(files.tryLock(inode.number())));
                names.addName(update, parent, name, inode, found.change(), false);
                update.put(inode);
                update.result(caller.unique(), inode.number());
                return inode;
              });
      return openedNew(created, flags, place, caller);
    } finally {
      locked.forEach(OutputFiles.Locked::close);
    }
  }

  /**
   * The kernel creates a name that it has just seen to be free, and has checked only the rights to
   * the directory. If it became anything but a file since that the caller owns and may open, ESTALE
   * lets the kernel look again, check what is there, and open it as its kind is opened.
   */
  private static void requireChecked(Inode inode, FileName name, int flags, Caller caller)
      throws FsException {
    Attributes found = inode.attributes();
    boolean writes = Handles.isWriter(flags) || (flags & OutputCalls.O_TRUNC) != 0;
    int wanted = (Handles.isOnlyWriter(flags) ? 0 : OWNER_READS) | (writes ? OWNER_WRITES : 0);
    boolean mayOpen = found.uid() == caller.uid() && (found.mode() & wanted) == wanted;
    if (!inode.isRegular() || !mayOpen) {
      throw new FsException(Errno.ESTALE, name + " is there by now");
    }
  }

  /** A new file, which is being written from the start. */
  private Inode fresh(
      State.Update update, Inode parent, FileName name, int mode, int place, Caller caller)
      throws FsException {
    Inode inode = names.fresh(update, parent, name, REGULAR | (mode & PERMISSIONS), 0, caller);
    long generation = update.newNumber();
    update.data(
        inode.number(),
        generation,
        new DataRow(isHere(place, mode) ? files.places().forNew().number() : place, 0));
    update.writing(inode.number(), 0, generation);
    return inode.withData(generation, 0, -1).withFlag(Inode.WRITING, true);
  }

  /** A file with set-id bits stays with the owner, because writes must clear them. */
  private static boolean isHere(int place, int mode) {
    return place < 0 || (mode & Contents.SET_ID) != 0;
  }

  public Opened createUnnamed(long directory, int mode, int flags, Caller caller)
      throws FsException {
    Long before = state.result(caller.unique());
    if (before != null) {
      return opened(state.inode(before), flags, -1, caller);
    }
    nodes.directory(directory);
    Inode created;
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      update.add();
      Inode parent = update.inode(directory);
      parent.protection().requireGrowing("directory " + directory);
      if (parent.isRemoved()) {
        // As ext4.
        throw new FsException(Errno.EPERM, "directory " + directory + " was removed");
      }
      Inode fresh = fresh(update, parent, Inode.NO_NAME, mode, -1, caller);
      Inode inode =
          fresh
              .withLinks(0, fresh.attributes().changeTime())
              .withFlag(Inode.UNNAMED, (flags & OutputCalls.O_EXCL) == 0)
              .withPlace(0, Inode.NO_NAME);
      update.put(inode);
      update.put(Tables.NAMELESS, Tables.key(inode.number()), new byte[0]);
      update.result(caller.unique(), inode.number());
      update.commit();
      created = inode;
    }
    return openedNew(created, flags, -1, caller);
  }

  /**
   * Opens a file.
   *
   * @param place index of the place for its data if it is truncated and another node keeps them; -1
   *     if this one does
   */
  public Opened open(long number, int flags, int place, Caller caller) throws FsException {
    Inode inode = nodes.refresh(nodes.find(number));
    if (inode.isDirectory()) {
      throw new FsException(Errno.EISDIR, "inode " + number);
    }
    boolean isWriter = Handles.isWriter(flags);
    boolean empties = (flags & OutputCalls.O_TRUNC) != 0 && state.result(caller.unique()) == null;
    if (!isWriter && !empties) {
      return opened(inode, flags, place, caller);
    }
    if (isWriter && !empties && (flags & OutputCalls.O_APPEND) != 0) {
      inode.protection().requireGrowing("inode " + number);
    } else {
      inode.protection().requireChangeable("inode " + number);
    }
    // Check for another writer before anything is changed: another node may be doing the same.
    try (Handles.Writing writing = handles.write(number, caller)) {
      return empties
          ? openEmptied(number, flags, place, caller)
          : opened(inode, flags, place, caller);
    }
  }

  private Opened openEmptied(long number, int flags, int place, Caller caller) throws FsException {
    try (OutputFiles.Locked locked = files.lock(number)) {
      OutputFile file = locked.file();
      data.truncate(file, 0, caller.uid() != 0, caller);
      if (Handles.isWriter(flags) && !isHere(place, state.inode(number).attributes().mode())) {
        contents.restart(file, place);
      }
      announceAtOnce(file, flags, caller);
      return opened(state.inode(number), flags, place, caller);
    }
  }

  /** Read-only handles may be closed without a request. */
  private void announceAtOnce(OutputFile file, int flags, Caller caller) throws FsException {
    if (!Handles.isWriter(flags) && !file.hasWriter()) {
      files.announce(file, caller);
    }
  }

  /** A file just created by this process is empty: its data file need not be asked for its size. */
  private Opened openedNew(Inode inode, int flags, int place, Caller caller) throws FsException {
    try (OutputFiles.Locked locked = files.lock(inode.number())) {
      locked.file().beginNew(inode);
      announceAtOnce(locked.file(), flags, caller);
      Node node = new Node(inode.number(), inode.attributes());
      return opened(node, inode, flags, Handles.isOnlyWriter(flags), place, caller);
    }
  }

  private Opened opened(Inode inode, int flags, int place, Caller caller) throws FsException {
    return opened(nodes.shown(inode), inode, flags, false, place, caller);
  }

  private Opened opened(
      Node node, Inode inode, int flags, boolean isOnlyWritten, int place, Caller caller)
      throws FsException {
    long handle = handles.open(inode.number(), flags, isOnlyWritten, caller);
    boolean isElsewhere = caller.node() != 0 && !Handles.isWriter(flags);
    return new Opened(
        node,
        handle,
        isOnlyWritten,
        place < 0 ? 0 : generation(inode, place),
        isElsewhere ? nodes.atSource(inode) : null);
  }

  /** The generation of the content if it is in this place; else 0. */
  private long generation(Inode inode, int place) throws FsException {
    DataRow row = inode.generation() == 0 ? null : state.data(inode.number(), inode.generation());
    return row != null && row.place() == place ? inode.generation() : 0;
  }

  // ---- syncing and closing

  /** Announces the content if the file was written. */
  public void announce(long number, Caller caller) throws FsException {
    Inode inode = state.find(number);
    if (inode != null && (inode.is(Inode.WRITING) || !inode.is(Inode.ANNOUNCED))) {
      files.announce(number, caller);
    }
  }

  public void fsync(long number) throws FsException {
    Inode found = nodes.find(number);
    if (found.isRegular() && found.generation() != 0) {
      try (OutputFiles.Locked locked = files.lock(number)) {
        locked.file().sync();
        contents.synced(locked.file());
      }
    }
    state.sync();
  }

  /** The kernel sends this some time after close(2); others may be writing again. */
  public void release(long number, long handle) throws FsException {
    try (Handles.Released released = handles.release(number, handle)) {
      if (released.wasWriter()) {
        announceLast(number);
      }
    }
  }

  /** Announces the content unless the file is still open for writing. */
  private void announceLast(long number) throws FsException {
    Inode inode = state.find(number);
    if (inode == null) {
      return;
    }
    boolean isNew = inode.is(Inode.WRITING) || !inode.is(Inode.ANNOUNCED);
    boolean mayBeElsewhere = inode.generation() != 0;
    if (!isNew && !mayBeElsewhere) {
      return;
    }
    try (OutputFiles.Locked locked = files.lock(number)) {
      OutputFile file = locked.file();
      if (isNew && !file.hasWriter()) {
        files.announce(file, owner(inode));
      }
      if (mayBeElsewhere && file.isRemote() && !file.hasWriter()) {
        bringQuietly(file);
      }
    }
  }

  private void bringQuietly(OutputFile file) {
    try {
      contents.bring(file);
    } catch (FsException e) {
      log.debug("inode {} is not fetched: {}", file.number(), e.getMessage());
    }
  }

  /** The actor of changes that no process asked for. */
  public static Caller owner(Inode inode) {
    return new Caller(0, inode.attributes().uid(), inode.attributes().gid(), 0);
  }

  /** A kernel has forgotten a node: its data are removed unless another kernel has it open. */
  public void forget(long number) throws FsException {
    names.forget(number, () -> handles.isOpen(number));
  }
}
