package io.pmfs.writable;

import io.pmfs.metadata.Attributes;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.WritableFileSystem.AtSource;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What files in use have open: their data files, here or on another node, and the source's files;
 * and what those tell of size and times. Unless said otherwise, the caller holds the lock of the
 * file exclusively.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
public final class Descriptors {
  private static final Logger log = LoggerFactory.getLogger(Descriptors.class);

  private static final long RECOUNT_BYTES = 8L << 20;

  private final State state;
  private final SourceTree tree;
  private final LocalFiles local;
  private final OutputCalls calls;

  /** How many data files are open at the same time; reads need descriptors, too. */
  private final int most;

  /** Files whose data file is open, the one that was opened first in front. */
  private final Set<LiveFile> open = new LinkedHashSet<>(); // GUARDED_BY(open)

  public Descriptors(State state, SourceTree tree, LocalFiles local, OutputCalls calls) {
    this.state = state;
    this.tree = tree;
    this.local = local;
    this.calls = calls;
    this.most = calls.mostDataFiles();
  }

  /** Closes what is open; for the last user of a file, with or without its lock. */
  public void close(LiveFile file) {
    closeLocal(file);
    closeSource(file);
  }

  public void closeLocal(LiveFile file) {
    closeFile(file);
    file.remote = null;
    file.generation = 0;
    file.isNameSynced = false;
    file.size = -1;
    file.countedBytes = 0;
    file.uncountedBytes = 0;
  }

  /** Whoever has the last use of a file closes it without its lock. */
  private void closeFile(LiveFile file) {
    synchronized (file) {
      if (file.file >= 0) {
        if (file.uncountedBytes != 0) {
          recountQuietly(file);
        }
        calls.close(file.file);
        file.file = -1;
      }
    }
    synchronized (open) {
      open.remove(file);
    }
  }

  /** A data file was opened: others, which nothing uses now, are closed until they are used. */
  public void opened(LiveFile file) {
    List<LiveFile> surplus = new ArrayList<>();
    synchronized (open) {
      open.remove(file);
      open.add(file);
      int left = open.size() - most;
      for (LiveFile one : open) {
        if (left-- <= 0) {
          break;
        }
        surplus.add(one);
      }
    }
    surplus.forEach(this::park);
  }

  /** Closes a data file if nothing uses it now; {@link #attach} opens it again. */
  private void park(LiveFile file) {
    if (!file.lock.isWriteLockedByCurrentThread() && file.lock.writeLock().tryLock()) {
      try {
        closeFile(file);
      } finally {
        file.lock.writeLock().unlock();
      }
    }
  }

  private void closeSource(LiveFile file) {
    if (file.source >= 0) {
      tree.closeLater(file.source);
      file.source = -1;
      file.sourceStat = null;
    }
  }

  /**
   * Opens the data file of a file that has one, and learns its size if a write may be recorded.
   *
   * @return the file as it is now: one whose data file is gone is read from the source, if that has
   *     all of it
   */
  public Inode load(LiveFile file, Inode inode) throws FsException {
    Inode now = attach(file, inode);
    boolean isKnown = file.size >= 0 && file.remote == null;
    if (now.generation() != 0 && now.is(Inode.WRITING) && !isKnown) {
      recover(file, now);
    }
    return now;
  }

  /** The same without its size. */
  public Inode attach(LiveFile file, Inode inode) throws FsException {
    if (file.generation != inode.generation()) {
      closeLocal(file);
      if (inode.generation() != 0) {
        openLocal(file, inode);
      }
    } else if (file.generation != 0 && file.remote == null && file.file < 0 && file.size != 0) {
      file.file = openThere(file.place, inode);
      if (file.file >= 0) {
        opened(file);
      }
    }
    boolean isMissing = file.generation != 0 && file.remote == null && file.file < 0;
    return isMissing ? withoutData(file, inode) : inode;
  }

  /** Opens a data file; -1 if it is not there. */
  private int openThere(int place, Inode inode) throws FsException {
    try {
      return local.openThere(place, inode.number(), inode.generation());
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
      return -1;
    }
  }

  /** The data file was not made yet, or somebody removed it: the source may have the same. */
  private Inode withoutData(LiveFile file, Inode inode) throws FsException {
    if (inode.is(Inode.WRITING) || inode.attributes().size() == 0) {
      return inode;
    }
    try (State.Held held = state.hold()) {
      Inode now = state.inode(inode.number());
      boolean isAtSource = now.hasHome() && now.drainedSize() == now.attributes().size();
      if (now.generation() != file.generation || !isAtSource || state.isBusy(now)) {
        return now;
      }
      State.Update update = state.update();
      update.delete(Tables.DATA, Tables.key(now.number(), now.generation()));
      Room.garbage(update, now.number(), now.generation(), file.place);
      Inode next = now.withData(0, 0, -1);
      update.put(next);
      update.commit();
      log.warn("inode {} is read from the source: its data file cannot be read", now.number());
      closeLocal(file);
      return next;
    }
  }

  /**
   * Whether a data file that cannot be read is needed no more, as the source has the same. The
   * caller has not locked the file.
   */
  public boolean isUnneeded(LiveFile file, FsException e) throws FsException {
    if (e.errno() != Errno.EIO || file.remote != null) {
      return false;
    }
    file.lock.writeLock().lock();
    try {
      Inode inode = state.inode(file.number);
      return inode.generation() != 0
          && inode.generation() == file.generation
          && withoutData(file, inode).generation() == 0;
    } finally {
      file.lock.writeLock().unlock();
    }
  }

  /** Makes the data file of a file that is empty so far. */
  public void make(LiveFile file) throws FsException {
    if (file.generation == 0 || file.remote != null || file.file >= 0) {
      return;
    }
    if (file.size > 0) {
      throw gone(file);
    }
    file.file = local.open(file.place, file.number, file.generation);
    opened(file);
  }

  /** The failure to read what was only in a data file that is not there any more. */
  public FsException gone(LiveFile file) throws FsException {
    return new FsException(
        Errno.EIO,
        "inode %d: its data file is gone from %s".formatted(file.number, local.name(file.place)));
  }

  private void openLocal(LiveFile file, Inode inode) throws FsException {
    DataRow row = state.data(inode.number(), inode.generation());
    if (row == null) {
      throw new FsException(Errno.EIO, "no data file of inode " + inode.number());
    }
    file.remote = local.remote(row.place(), inode.number(), inode.generation());
    if (file.remote == null) {
      file.file = openThere(row.place(), inode);
      file.countedBytes = file.file < 0 ? 0 : bytes(calls.status(file.file, Inode.NO_NAME));
    }
    file.place = row.place();
    file.generation = inode.generation();
    file.uncountedBytes = 0;
    file.size = -1;
    if (file.file >= 0) {
      opened(file);
    }
  }

  /** A former process, or another node, wrote to the data file and did not record it. */
  private void recover(LiveFile file, Inode inode) throws FsException {
    RemoteFile remote = file.remote;
    NodeData.Frozen found = remote == null ? frozen(file, inode) : freeze(remote, inode, false);
    Instant written = found.modified();
    Attributes recorded = inode.attributes();
    boolean isLater = written.isAfter(recorded.modificationTime());
    file.modified = isLater ? written : recorded.modificationTime();
    file.changed =
        isLater && written.isAfter(recorded.changeTime()) ? written : recorded.changeTime();
    file.blocks = found.blocks();
    file.onlyGrew =
        found.size() >= inode.announcedSize()
            && found.onlyGrew()
            && (remote == null || file.onlyGrew);
    file.size = found.size();
  }

  private NodeData.Frozen frozen(LiveFile file, Inode inode) throws FsException {
    if (file.file < 0) {
      return empty(inode);
    }
    Attributes found = calls.status(file.file, Inode.NO_NAME).attributes();
    return new NodeData.Frozen(found.size(), found.blocks(), found.modificationTime(), true, null);
  }

  /** A file that its node has not made is empty: it makes it when the owner has answered. */
  private NodeData.Frozen freeze(RemoteFile remote, Inode inode, boolean sync) throws FsException {
    try {
      return remote.freeze(sync);
    } catch (FsException e) {
      DataRow row = state.data(inode.number(), inode.generation());
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
      if (row == null || row.waiting() > 0) {
        throw remote.missing(e);
      }
      return empty(inode);
    }
  }

  private static NodeData.Frozen empty(Inode inode) {
    return new NodeData.Frozen(
        0, 0, inode.attributes().modificationTime(), true, ByteBuffer.allocate(0));
  }

  private static long bytes(Stat stat) {
    return stat.attributes().blocks() * 512;
  }

  /** Counts the room of a data file again, after it changed by much. */
  public void written(LiveFile file, long bytes) throws FsException {
    file.uncountedBytes += bytes;
    local.charge(file.place, bytes);
    if (file.uncountedBytes >= RECOUNT_BYTES) {
      recount(file);
    }
  }

  public void recount(LiveFile file) throws FsException {
    if (file.file >= 0) {
      Stat now = calls.status(file.file, Inode.NO_NAME);
      local.charge(file.place, bytes(now) - file.countedBytes - file.uncountedBytes);
      file.countedBytes = bytes(now);
      file.uncountedBytes = 0;
      file.blocks = now.attributes().blocks();
    }
  }

  public void recountQuietly(LiveFile file) {
    try {
      recount(file);
    } catch (FsException e) {
      log.debug("counting a data file: {}", e.getMessage());
    }
  }

  /** Opens the source's file for reading. */
  public int openSource(LiveFile file, Inode inode) throws FsException {
    Stat seen = inode.seen();
    Stat open = file.sourceStat;
    if (file.source >= 0 && open != null && (seen == null || open.isSameFile(seen))) {
      return file.source;
    }
    closeSource(file);
    if (!inode.hasHome()) {
      throw new FsException(Errno.EIO, "the data of inode " + inode.number() + " are nowhere");
    }
    OpenSource opened =
        tree.looks()
            .await(
                () -> tree.still(() -> openSourceStill(state.inode(inode.number()))),
                unwanted -> calls.close(unwanted.file()));
    file.source = opened.file();
    file.sourceStat = opened.stat();
    return opened.file();
  }

  private record OpenSource(int file, Stat stat) {}

  private OpenSource openSourceStill(Inode inode) throws FsException {
    int opened = -1;
    try (SourceTree.Directory directory = tree.open(inode.homeParent())) {
      opened = calls.open(directory.file(), inode.homeName(), OutputCalls.O_RDONLY, 0);
      return new OpenSource(opened, tree.stat(calls.status(opened, Inode.NO_NAME)));
    } catch (FsException e) {
      if (opened >= 0) {
        calls.close(opened);
      }
      throw e.errno() == Errno.ENOENT
          ? new FsException(Errno.ESTALE, inode.homeName().toString(), e)
          : e;
    }
  }

  /** Bytes of an open file of the source, for {@link CopyBuffers#give}. */
  public ByteBuffer readSource(int from, long offset, int wanted) throws FsException {
    return tree.looks()
        .await(
            () -> {
              ByteBuffer buffer = CopyBuffers.take();
              buffer.limit(Math.min(wanted, buffer.capacity()));
              int count = calls.read(from, buffer, offset);
              return buffer.position(0).limit(count);
            },
            CopyBuffers::give);
  }

  /** Where a file is whose content only the source has; null for other files. */
  @Nullable
  public AtSource atSource(Inode inode) throws FsException {
    Stat seen = inode.seen();
    boolean isThere = inode.generation() == 0 && !inode.is(Inode.WRITING) && inode.hasHome();
    if (!isThere || seen == null || !inode.isRegular()) {
      return null;
    }
    try {
      return new AtSource(tree.relativePath(inode.homeParent()), inode.homeName(), seen.inode());
    } catch (FsException e) {
      log.debug("inode {} is read by way of this node: {}", inode.number(), e.getMessage());
      return null;
    }
  }

  // ---- attributes

  /** The size of a file now. */
  public static long size(LiveFile file, Inode inode) {
    return inode.is(Inode.WRITING) ? file.size : inode.attributes().size();
  }

  /** The attributes of a file that is being written. */
  public static Attributes attributes(LiveFile file, Inode inode) {
    Attributes a = inode.attributes();
    return new Attributes(
        a.mode(),
        a.linkCount(),
        a.uid(),
        a.gid(),
        a.device(),
        file.size,
        file.blocks,
        a.accessTime(),
        file.modified,
        file.changed.isAfter(a.changeTime()) ? file.changed : a.changeTime());
  }

  /** The same; as they were last, if the node that writes the file does not answer. */
  public Attributes attributesNow(LiveFile file, Inode inode) throws FsException {
    try {
      load(file, inode);
    } catch (FsException e) {
      if (file.remote == null) {
        throw e;
      }
      return file.size < 0 ? inode.attributes() : attributes(file, inode);
    }
    return attributes(file, inode);
  }

  /**
   * Whether a node no longer has a data file because something else took its place meanwhile: then
   * another attempt finds that.
   *
   * @throws FsException if the node has lost what is still needed
   */
  public boolean isReplaced(LiveFile file, FsException e) throws FsException {
    RemoteFile remote = file.remote;
    if (e.errno() != Errno.ENOENT || remote == null) {
      return false;
    }
    if (state.inode(file.number).generation() == file.generation) {
      throw remote.missing(e);
    }
    return true;
  }

  /** Makes the data file and its name survive the machine. */
  public void sync(LiveFile file, Inode inode) throws FsException {
    RemoteFile remote = file.remote;
    if (remote != null) {
      freeze(remote, inode, true);
    } else if (file.file >= 0) {
      calls.sync(file.file, false);
      if (!file.isNameSynced) {
        local.syncName(file.place, inode.number());
        file.isNameSynced = true;
      }
    }
  }
}
