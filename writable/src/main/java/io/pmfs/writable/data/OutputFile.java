package io.pmfs.writable.data;

import io.pmfs.metadata.Attributes;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.NodeData.Frozen;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.places.CopyBuffers;
import io.pmfs.writable.places.DataCopy;
import io.pmfs.writable.places.DataFile;
import io.pmfs.writable.places.DataPlace;
import io.pmfs.writable.places.LocalData;
import io.pmfs.writable.places.RemoteData;
import io.pmfs.writable.tree.SourceTree;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A regular file that is open or was written: its data file, the source's file, and changes by
 * writes that the tables do not have yet. Callers hold the {@linkplain #lock lock} exclusively
 * unless a method says otherwise; an inode parameter is the present row of the tables.
 */
@SuppressWarnings("try")
public final class OutputFile {
  private static final Logger log = LoggerFactory.getLogger(OutputFile.class);

  /** How often a request that waits for the lock checks whether it was interrupted. */
  private static final long POLL_MILLIS = 200;

  private final long number;
  private final OutputFiles files;

  /** Writers hold it exclusively, readers hold it shared. */
  private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();

  private int users; // GUARDED_BY(files)

  /** Handles of this process that are open for writing. */
  private final AtomicInteger writers = new AtomicInteger();

  // GUARDED_BY(lock)
  /** The data file, on this node or another; null if only the source has the content. */
  private @Nullable DataFile data;

  private @Nullable SourceFile source;

  /** Whether the file only grew since it was last announced, without gaps. */
  private boolean onlyGrew = true;

  /** Bytes; -1 if only the data file knows. Valid only while the inode is being written. */
  private volatile long size = -1;

  private volatile long blocks;
  private volatile Instant modified = Instant.EPOCH;
  private volatile Instant changed = Instant.EPOCH;

  private record SourceFile(int descriptor, Stat stat) {
    boolean isStill(@Nullable Stat seen) {
      return seen == null || stat.isSameFile(seen);
    }
  }

  OutputFile(long number, OutputFiles files) {
    this.number = number;
    this.files = files;
  }

  public long number() {
    return number;
  }

  ReentrantReadWriteLock lock() {
    return lock;
  }

  // ---- uses

  void beginUse() { // GUARDED_BY(files)
    users++;
  }

  /** Ends a use; returns whether it was the last one. */
  boolean endUse() { // GUARDED_BY(files)
    users--;
    return users == 0;
  }

  void beginWriter() {
    writers.incrementAndGet();
  }

  void endWriter() {
    writers.decrementAndGet();
  }

  /** Whether a handle of this process is open for writing; with or without the lock. */
  public boolean hasWriter() {
    return writers.get() > 0;
  }

  /** Closes all descriptors; called by the last user, with or without the lock. */
  void close() {
    closeData();
    closeSource();
  }

  private void closeData() {
    DataFile open = data;
    if (open != null) {
      open.close();
    }
    files.closed(this);
    data = null;
    size = -1;
  }

  private void closeSource() {
    SourceFile open = source;
    if (open != null) {
      files.tree().closeLater(open.descriptor());
      source = null;
    }
  }

  /**
   * Takes a part of its lock, whose holder may be waiting for the source.
   *
   * @throws FsException with EINTR if the request or its thread is interrupted meanwhile
   */
  void await(Lock part) throws FsException {
    try {
      while (!part.tryLock(POLL_MILLIS, TimeUnit.MILLISECONDS)) {
        files.tree().looks().checkInterrupted();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new FsException(Errno.EINTR, "waiting for inode " + number, e);
    }
  }

  /** Closes the data file if it is unused; the next use opens it again. */
  void park() {
    if (!lock.isWriteLockedByCurrentThread() && lock.writeLock().tryLock()) {
      try {
        DataFile open = data;
        if (open != null) {
          open.close();
        }
        files.closed(this);
      } finally {
        lock.writeLock().unlock();
      }
    }
  }

  // ---- the data file

  /**
   * Opens the data file if there is one, and reads its size if a write may have been recorded.
   *
   * @return the present inode: if its data file is gone, the file is read from the source if that
   *     has all of the content
   */
  public Inode load(Inode inode) throws FsException {
    return load(inode, Long.MAX_VALUE);
  }

  /**
   * The same before a change.
   *
   * @param keep how many bytes of the content are still needed; if none, the node that writes it
   *     may have lost it
   */
  Inode load(Inode inode, long keep) throws FsException {
    Inode now = attach(inode);
    DataFile attached = data;
    if (attached != null && now.is(Inode.WRITING) && (size < 0 || !attached.isHere())) {
      recover(attached, now, keep > 0);
    }
    return now;
  }

  /** Like {@link #open}, without reading the size. */
  Inode attach(Inode inode) throws FsException {
    if (generation() != inode.generation()) {
      closeData();
      if (inode.generation() != 0) {
        open(files.places().get(row(inode).place()).file(id(inode.generation())));
      }
    } else if (data != null && size != 0) {
      open(data);
    }
    return data != null && !data.isThere() ? withoutData(data, inode) : inode;
  }

  private void open(DataFile file) throws FsException {
    boolean wasThere = file.isThere();
    data = file;
    file.open();
    if (!wasThere && file.isThere()) {
      files.opened(this);
    }
  }

  private long generation() {
    return data == null ? 0 : data.id().generation();
  }

  private NodeData.Id id(long generation) {
    return new NodeData.Id(number, generation);
  }

  private DataRow row(Inode inode) throws FsException {
    DataRow row = files.state().data(number, inode.generation());
    if (row == null) {
      throw new FsException(Errno.EIO, "no data file of inode " + number);
    }
    return row;
  }

  /** The data file is missing: the source may have the same content. */
  private Inode withoutData(DataFile missing, Inode inode) throws FsException {
    if (inode.is(Inode.WRITING) || inode.attributes().size() == 0) {
      return inode;
    }
    State state = files.state();
    try (State.Held held = state.hold()) {
      Inode now = state.inode(number);
      boolean isAtSource = now.hasHome() && now.drainedSize() == now.attributes().size();
      if (now.generation() != missing.id().generation() || !isAtSource || state.isBusy(now)) {
        return now;
      }
      State.Update update = state.update();
      Room.discard(update, number, now.generation(), missing.place().number());
      Inode next = now.withData(0, 0, -1);
      update.put(next);
      update.commit();
      log.warn("inode {} is read from the source: its data file cannot be read", number);
      closeData();
      return next;
    }
  }

  /**
   * Whether to retry a failed read: the data file became obsolete and was removed meanwhile, or the
   * source has the same content. The caller has not locked the file.
   *
   * @throws FsException if the node has lost content that is still needed
   */
  boolean isToBeReadAgain(FsException e) throws FsException {
    await(lock.writeLock());
    try {
      return isReplaced(e) || isUnneeded(e);
    } finally {
      lock.writeLock().unlock();
    }
  }

  private boolean isUnneeded(FsException e) throws FsException {
    DataFile failed = data;
    if (e.errno() != Errno.EIO || failed == null || !failed.isHere()) {
      return false;
    }
    Inode inode = files.state().inode(number);
    return inode.generation() == failed.id().generation()
        && withoutData(failed, inode).generation() == 0;
  }

  /**
   * Whether a node no longer has the data file because it was replaced meanwhile; a retry then
   * finds the replacement.
   *
   * @throws FsException if the node has lost content that is still needed
   */
  boolean isReplaced(FsException e) throws FsException {
    if (e.errno() == Errno.ENOENT && data instanceof RemoteData remote) {
      if (files.state().inode(number).generation() == remote.id().generation()) {
        throw remote.missing(e);
      }
      return true;
    }
    return false;
  }

  /** Reads the size after unrecorded writes by an earlier process or another node. */
  private void recover(DataFile written, Inode inode, boolean isNeeded) throws FsException {
    Frozen found =
        !isNeeded && written instanceof RemoteData remote
            ? remote.freezeRest(empty(inode))
            : written.freeze(empty(inode));
    long announced = files.state().isPending(inode.contentChange()) ? inode.announcedSize() : 0;
    long least = Math.max(written.place().leastSize(inode), inode.drainedSize());
    if (isNeeded && !written.isHere() && found.size() < Math.max(announced, least)) {
      throw new FsException(
          Errno.EIO, written.place().name() + " no longer has all of what was written there");
    }
    Attributes recorded = inode.attributes();
    boolean isLater = found.modified().isAfter(recorded.modificationTime());
    modified = isLater ? found.modified() : recorded.modificationTime();
    changed =
        isLater && found.modified().isAfter(recorded.changeTime())
            ? found.modified()
            : recorded.changeTime();
    blocks = found.blocks();
    onlyGrew =
        found.size() >= inode.announcedSize() && found.onlyGrew() && (written.isHere() || onlyGrew);
    size = found.size();
  }

  private static Frozen empty(Inode inode) {
    return new Frozen(0, 0, inode.attributes().modificationTime(), true, ByteBuffer.allocate(0));
  }

  /** Whether another node keeps the content. */
  boolean isRemote() {
    return data instanceof RemoteData;
  }

  /** Whether the data file holds nothing that is not recorded elsewhere. */
  boolean isEmpty() {
    return size == 0 && (data == null || (data.isHere() && !data.isThere()));
  }

  // ---- what is seen

  /** The size now; the caller holds the lock at least shared. */
  long size(Inode inode) {
    return inode.is(Inode.WRITING) ? size : inode.attributes().size();
  }

  /** The size of a file that is being written. */
  long size() {
    return size;
  }

  /** The attributes of a file that is being written. */
  Attributes attributes(Inode inode) {
    return attributes(inode, size);
  }

  private Attributes attributes(Inode inode, long bytes) {
    Attributes a = inode.attributes();
    return a.withSize(bytes, blocks)
        .withTimes(a.accessTime(), modified)
        .withChangeTime(changed.isAfter(a.changeTime()) ? changed : a.changeTime());
  }

  /**
   * The attributes of a file that is being written, without waiting for writers if they are known;
   * the last known ones if the writing node does not answer. The caller has not locked the file.
   */
  Attributes shown(Inode inode) throws FsException {
    long known = size; // Who holds the lock may forget it.
    if (known >= 0 && !isRemote()) {
      return attributes(inode, known);
    }
    await(lock.writeLock());
    try {
      Inode now = files.state().inode(number);
      if (!now.is(Inode.WRITING)) {
        return now.attributes();
      }
      try {
        load(now);
      } catch (FsException e) {
        if (!isRemote()) {
          throw e;
        }
        return size < 0 ? now.attributes() : attributes(now);
      }
      return attributes(now);
    } finally {
      lock.writeLock().unlock();
    }
  }

  /** Whether it has grown since it was announced, and nothing else changed. */
  public boolean hasGrown(Inode inode) throws FsException {
    if (isRemote()) {
      load(inode);
    }
    return onlyGrew && size > 0;
  }

  // ---- reading

  /** Whether everything a read needs is open; the caller holds the lock at least shared. */
  boolean isReadable(Inode inode) {
    DataFile open = data;
    boolean isWriting = inode.is(Inode.WRITING);
    if (inode.generation() != 0) {
      return open != null
          && open.id().generation() == inode.generation()
          && (!isWriting || size >= 0)
          && open.isReadable(isWriting);
    }
    SourceFile known = source;
    return open == null && known != null && known.isStill(inode.seen());
  }

  /** Opens what a read needs. */
  Inode prepareRead(Inode inode) throws FsException {
    Inode now = load(inode);
    if (now.generation() == 0 && (now.hasHome() || now.attributes().size() > 0)) {
      openSource(now);
    }
    return now;
  }

  /** Reads from the data file; the caller holds the lock at least shared. */
  int read(ByteBuffer destination, long offset) throws FsException {
    return data().read(destination, offset);
  }

  /**
   * Reads from the source's file; the caller holds the lock at least shared.
   *
   * @return for {@link CopyBuffers#give}
   */
  ByteBuffer readSource(long offset, int wanted) throws FsException {
    SourceFile open = source;
    if (open == null) {
      throw new FsException(Errno.EIO, "the data of inode " + number + " are lost");
    }
    OutputCalls calls = files.calls();
    return files
        .tree()
        .looks()
        .await(
            () -> DataCopy.read(buffer -> calls.read(open.descriptor(), buffer, offset), wanted),
            CopyBuffers::give);
  }

  /** Whether its data file on this node already has these bytes at an offset. */
  boolean has(ByteBuffer bytes, long offset) throws FsException {
    return data instanceof LocalData here && here.isOpen() && here.has(bytes, offset);
  }

  /** The next data or hole at or behind an offset, as lseek(2). */
  long seek(Inode inode, long offset, int whence) throws FsException {
    long end = size(inode);
    if (offset < 0 || offset >= end) {
      throw new FsException(Errno.ENXIO, "offset " + offset);
    }
    if (inode.generation() != 0 && data != null) {
      return Math.min(end, data.seek(offset, whence));
    }
    SourceFile open = source;
    return open == null
        ? whence == OutputCalls.SEEK_HOLE ? offset : end
        : Math.min(end, seekSource(open.descriptor(), offset, whence));
  }

  private long seekSource(int descriptor, long offset, int whence) throws FsException {
    OutputCalls calls = files.calls();
    return files.tree().looks().await(() -> calls.seek(descriptor, offset, whence), unwanted -> {});
  }

  public int openSource(Inode inode) throws FsException {
    SourceFile known = source;
    if (known != null && known.isStill(inode.seen())) {
      return known.descriptor();
    }
    closeSource();
    if (!inode.hasHome()) {
      throw new FsException(Errno.EIO, "the data of inode " + number + " are lost");
    }
    SourceTree tree = files.tree();
    SourceFile opened =
        tree.looks()
            .await(
                () -> tree.still(() -> openStill(files.state().inode(number))),
                unwanted -> files.calls().close(unwanted.descriptor()));
    source = opened;
    return opened.descriptor();
  }

  private SourceFile openStill(Inode known) throws FsException {
    SourceTree tree = files.tree();
    Inode inode = tree.atHome(known);
    OutputCalls calls = files.calls();
    int opened = -1;
    try (SourceTree.Directory directory = tree.openNow(inode.homeParent())) {
      opened = calls.open(directory.file(), inode.homeName(), OutputCalls.O_RDONLY, 0);
      SourceFile found = new SourceFile(opened, tree.opened(opened).status(Inode.NO_NAME));
      if (!inode.mayBe(found.stat())) {
        throw new FsException(Errno.ESTALE, inode.homeName() + ": replaced at the source");
      }
      return found;
    } catch (FsException e) {
      if (opened >= 0) {
        calls.close(opened);
      }
      throw e.errno() == Errno.ENOENT
          ? new FsException(Errno.ESTALE, inode.homeName().toString(), e)
          : e;
    }
  }

  // ---- the next content, which nothing has promised

  /** Starts writing to a file: its state is taken from the tables. */
  void begin(Inode inode) {
    if (!inode.is(Inode.WRITING)) {
      size = inode.attributes().size();
      blocks = inode.attributes().blocks();
      modified = inode.attributes().modificationTime();
      changed = inode.attributes().changeTime();
    }
  }

  /** A file was created; its data file is created with the first byte. */
  void beginNew(Inode inode) throws FsException {
    DataRow row = inode.generation() == 0 ? null : files.state().data(number, inode.generation());
    DataPlace place = row == null ? null : files.places().get(row.place());
    if (place != null && place.isOfNode()) {
      attach(inode);
      beginRemote();
    } else if (size < 0 && (data == null || !data.isThere())) {
      if (place != null) {
        data = place.file(id(inode.generation()));
      }
      size = 0;
      blocks = 0;
      modified = inode.attributes().modificationTime();
      changed = inode.attributes().changeTime();
    }
  }

  private void beginRemote() {
    if (data instanceof RemoteData remote) {
      remote.begin();
    }
  }

  /** Continues with an empty content in a data file that is created with the first byte. */
  void restart(DataPlace place, long generation) throws FsException {
    long kept = size;
    closeData();
    data = place.file(id(generation));
    beginRemote();
    size = kept;
    blocks = 0;
  }

  /** Continues in another data file with the same content. */
  void take(LocalData next) throws FsException {
    if (data instanceof LocalData former) {
      former.closeCounted();
    }
    data = next;
    files.opened(this);
    recount();
  }

  /** Fills the next data file with the first bytes of the content. */
  void fill(Inode inode, LocalData next, long bytes) throws FsException {
    DataCopy.Source from = inode.generation() == 0 ? atSource(openSource(inode)) : data();
    next.fill(from, bytes, this::checkInterrupted);
  }

  /** Fills another data file with the first bytes of the present one. */
  void fill(LocalData next, long bytes) throws FsException {
    next.fill(data(), bytes, this::checkInterrupted);
  }

  private void checkInterrupted(int bytes) throws FsException {
    files.tree().looks().checkInterrupted();
  }

  /** The source's file, read so that the request can be interrupted. */
  private DataCopy.Source atSource(int descriptor) {
    return new DataCopy.Source() {
      @Override
      public long seek(long offset, int whence) throws FsException {
        return seekSource(descriptor, offset, whence);
      }

      @Override
      public ByteBuffer read(long offset, int wanted) throws FsException {
        return readSource(offset, wanted);
      }
    };
  }

  /** Its data file on this node, which the first byte creates. */
  LocalData made() throws FsException {
    LocalData made = here();
    if (!made.isOpen()) {
      if (size > 0) {
        throw made.gone();
      }
      made.make();
      files.opened(this);
    }
    return made;
  }

  /** Its data file on this node, which may not exist. */
  LocalData here() throws FsException {
    if (data instanceof LocalData here) {
      return here;
    }
    throw new FsException(Errno.EIO, "inode " + number + " has no data file on this node");
  }

  /** Its data file on any node. */
  DataFile data() throws FsException {
    DataFile known = data;
    if (known == null) {
      throw new FsException(Errno.EIO, "inode " + number + " has no data file");
    }
    return known;
  }

  /** Undoes the bytes of a change that failed. */
  void cutOff() {
    if (data instanceof LocalData here) {
      here.cutOff(size);
    }
  }

  /** Removes what its data file has behind its content, from changes that a power failure undid. */
  void cutTo(long end) throws FsException {
    if (data instanceof LocalData here && here.isOpen() && here.status().size() > end) {
      here.truncate(end);
    }
  }

  void wrote(long offset, int length, Instant now) throws FsException {
    onlyGrew &= offset == size;
    size = Math.max(size, offset + length);
    blocks = Math.max(blocks, here().blocksAfter(length));
    touch(now);
    long counted = here().wrote(length);
    blocks = counted < 0 ? blocks : counted;
  }

  /** Records that the size was set, or room was allocated. */
  void resized(long next) throws FsException {
    size = next;
    onlyGrew = false;
    recount();
  }

  /** Records that the content was truncated and is kept by another node from now on. */
  void emptied() {
    size = 0;
    onlyGrew = false;
  }

  void touch(Instant now) {
    modified = now;
    changed = now;
  }

  /** Records that another node has written to its data file, perhaps not only at the end. */
  void resumed(boolean grew, long pauses) {
    onlyGrew &= grew;
    if (data instanceof RemoteData remote) {
      remote.resumed(pauses);
    }
  }

  /**
   * Takes the state of a file from the node that writes it.
   *
   * @param place of that node's data files
   */
  public void paused(NodeData.Paused paused, int place) {
    if (data instanceof RemoteData remote
        && remote.place().number() == place
        && remote.id().equals(paused.file())) {
      remote.paused(paused);
    }
  }

  /** Records that a program has set attributes, and perhaps the modification time. */
  void setTimes(Inode next, @Nullable Instant modificationTime) throws FsException {
    changed = next.attributes().changeTime();
    if (modificationTime != null) {
      modified = modificationTime;
      if (data != null) {
        data.setTimes(next.attributes().accessTime(), modificationTime);
      }
    }
  }

  /** Records that another node has its data file now. */
  void moved() {
    closeData();
  }

  /** Measures the disk usage of the data file exactly. */
  void recount() throws FsException {
    if (data instanceof LocalData here) {
      long now = here.recount();
      blocks = now < 0 ? blocks : now;
    }
  }

  /** Records that the present content was announced. */
  void announced() {
    onlyGrew = true;
  }

  /** Syncs the data file on a tier of this node. */
  void syncHere() throws FsException {
    LocalData here = here();
    if (here.place().isElsewhere()) {
      throw new FsException(Errno.EXDEV, "inode " + number + " is at the source");
    }
    here.sync();
  }

  /** Syncs the data file and its name. */
  void sync() throws FsException {
    Inode inode = load(files.state().inode(number));
    if (data != null) {
      data.sync(empty(inode));
    }
  }
}
