package io.pmfs.writable;

import io.pmfs.metadata.Attributes;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.OutputCalls.Acting;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The data files that this node keeps for the owner of a writable mount: what its programs write to
 * new files, until the source has it. A file is found again by the next process. Safe for use by
 * many threads.
 */
public final class NodeFiles implements NodeData, AutoCloseable {
  /** The beginning of the name of the directory in each place; the owner's id follows. */
  private static final String DIRECTORY = "of-";

  private final List<Place> places;
  private final Path source;
  private final OutputCalls calls;
  private final InstantSource clock;
  private final Map<Id, KeptFile> files = new ConcurrentHashMap<>();

  /** The latest file of an inode. */
  private final Map<Long, KeptFile> latest = new ConcurrentHashMap<>();

  private volatile @Nullable LocalFiles local;
  private volatile @Nullable String owner;

  /**
   * Opens nothing yet.
   *
   * @param places for data files, fastest first
   * @param source the directory that is mounted, as this node sees it
   */
  public NodeFiles(List<Place> places, Path source, OutputCalls calls, InstantSource clock) {
    this.places = List.copyOf(places);
    this.source = source;
    this.calls = calls;
    this.clock = clock;
  }

  /**
   * The owner is known: finds what a former process kept for it.
   *
   * @param id of the owner's state
   */
  public synchronized void use(String id) throws FsException {
    if (id.equals(owner)) {
      return;
    }
    if (owner != null) {
      throw new FsException(
          Errno.EIO, "the owner lost its state; unmount, and mount again on all nodes");
    }
    Path other = left(places, id);
    if (other != null) {
      throw new FsException(Errno.EEXIST, leftReason(other));
    }
    LocalFiles found =
        new LocalFiles(
            calls,
            places.stream()
                .map(
                    place ->
                        new Place(
                            place.name(),
                            place.directory().resolve(DIRECTORY + id),
                            place.capacityBytes(),
                            place.keepFreeBytes()))
                .toList(),
            clock);
    found.count(
        Long.MAX_VALUE,
        (place, number, generation) -> {
          add(new KeptFile(new Id(number, generation), place));
          return true;
        });
    local = found;
    owner = id;
  }

  /**
   * A directory with files that were kept for another owner: they may exist nowhere else.
   *
   * @param except the id of the owner whose files do not count; empty for none
   * @return null if there is none
   */
  public static @Nullable Path left(List<Place> places, String except) throws FsException {
    for (Place place : places) {
      if (!Files.isDirectory(place.directory())) {
        continue;
      }
      try (DirectoryStream<Path> all =
          Files.newDirectoryStream(place.directory(), DIRECTORY + "*")) {
        for (Path path : all) {
          if (!path.endsWith(DIRECTORY + except) && hasFiles(path)) {
            return path;
          }
        }
      } catch (IOException e) {
        throw new FsException(Errno.EIO, place.directory() + ": " + e.getMessage(), e);
      }
    }
    return null;
  }

  private static boolean hasFiles(Path directory) throws IOException {
    try (Stream<Path> all = Files.walk(directory)) {
      return all.anyMatch(Files::isRegularFile);
    }
  }

  /** Why nothing else can be done while such a directory has files. */
  public static String leftReason(Path directory) {
    return directory
        + " has files that were written here as another node of a cluster; mount with the same"
        + " --nodes as then, or remove that directory if they are not needed";
  }

  /** Whether the owner is known, so that requests can be answered. */
  public boolean isReady() {
    return local != null;
  }

  private LocalFiles local() throws FsException {
    LocalFiles known = local;
    if (known == null) {
      throw new FsException(Errno.EIO, "the owner of the mount is not known yet");
    }
    return known;
  }

  private void add(KeptFile file) {
    files.put(file.id, file);
    latest.merge(
        file.id.inode(), file, (one, two) -> one.id.generation() > two.id.generation() ? one : two);
  }

  // ---- for this node's programs

  /** Whether a new file can be kept here. */
  public boolean hasRoom() {
    LocalFiles known = local;
    return known != null && known.placeWithRoom(SMALL_BYTES) >= 0;
  }

  /** The file of a content that the owner says is kept here; null if it is not here. */
  public @Nullable KeptFile find(long inode, long generation) {
    return files.get(new Id(inode, generation));
  }

  /** The latest file of an inode that this node may go on writing to; null if there is none. */
  public @Nullable KeptFile latest(long inode) {
    KeptFile file = latest.get(inode);
    return file == null || file.isGone ? null : file;
  }

  /** Makes the file of a content that is still empty. */
  public KeptFile make(long inode, long generation) throws FsException {
    int place = local().placeWithRoom(0);
    KeptFile file =
        new KeptFile(new Id(inode, generation), place < 0 ? local().firstPlace() : place);
    file.isWriting = true;
    file.onlyGrew = true;
    file.modified = clock.instant();
    file.users = 1;
    file.file = local().open(file.place, inode, generation);
    add(file);
    return file;
  }

  /**
   * A handle uses a file: it is open until as many uses have ended.
   *
   * @throws FsException with ENOENT if it was removed meanwhile
   */
  public void acquire(KeptFile file) throws FsException {
    file.lock.writeLock().lock();
    try {
      open(file);
      file.users++;
    } finally {
      file.lock.writeLock().unlock();
    }
  }

  private void open(KeptFile file) throws FsException {
    if (file.file < 0) {
      file.file = local().openThere(file.place, file.id.inode(), file.id.generation());
      Attributes there = calls.status(file.file, Inode.NO_NAME).attributes();
      file.size = there.size();
      file.countedBytes = there.blocks() * 512;
      file.modified = there.modificationTime();
    }
  }

  /** Ends a use. */
  public void release(KeptFile file) {
    file.lock.writeLock().lock();
    try {
      file.users--;
      closeUnused(file);
    } finally {
      file.lock.writeLock().unlock();
    }
  }

  private void closeUnused(KeptFile file) {
    if (file.users == 0 && file.file >= 0) {
      calls.close(file.file);
      file.file = -1;
      file.isNameSynced = false;
    }
  }

  /** The owner must be asked before a change. */
  public static final class AskFirst extends Exception {
    private static final long serialVersionUID = 1;

    /** The first byte that is to change. */
    public final long low;

    /** Whether the file only grew since the owner was asked last. */
    public final boolean onlyGrew;

    private final long freezes;

    AskFirst(KeptFile file, long low) {
      super("the owner must be asked", null, false, false);
      this.low = low;
      this.onlyGrew = file.onlyGrew;
      this.freezes = file.freezes;
    }
  }

  /** A change of an open file. */
  private interface Work<T> {
    T run() throws FsException;
  }

  private <T> T changed(KeptFile file, long low, Work<T> work) throws FsException, AskFirst {
    if (!file.isWriting || low < file.floor) {
      throw new AskFirst(file, low);
    }
    T result = work.run();
    file.modified = clock.instant();
    return result;
  }

  /**
   * The owner has answered {@link OwnedFileSystem#resume}.
   *
   * @return false if the file was frozen meanwhile
   */
  public boolean resume(KeptFile file, AskFirst asked, long floor) {
    file.lock.writeLock().lock();
    try {
      if (file.freezes != asked.freezes) {
        return false;
      }
      file.isWriting = true;
      file.floor = floor;
      file.onlyGrew = true;
      return true;
    } finally {
      file.lock.writeLock().unlock();
    }
  }

  /**
   * Writes to an open file.
   *
   * @param isAgain whether a former process may have appended the same
   * @return false if there is no room: the owner has to write
   */
  public boolean write(
      KeptFile file, long offset, ByteBuffer bytes, boolean append, boolean isAgain)
      throws FsException, AskFirst {
    file.lock.writeLock().lock();
    try {
      int length = bytes.remaining();
      if (append && isAgain && isWritten(file, offset, bytes)) {
        return true;
      }
      long at = append ? file.size : offset;
      if (at < 0 || at > FileData.MAX_SIZE - length) {
        throw new FsException(Errno.EFBIG, "inode " + file.id.inode());
      }
      long more = Math.max(0, at + length - file.size);
      if (!local().hasRoom(file.place, more)) {
        return false;
      }
      return changed(
          file,
          at,
          () -> {
            if (!put(file, bytes, at)) {
              return false;
            }
            file.onlyGrew &= at == file.size;
            file.size = Math.max(file.size, at + length);
            charge(file, more);
            return true;
          });
    } finally {
      file.lock.writeLock().unlock();
    }
  }

  private boolean put(KeptFile file, ByteBuffer bytes, long offset) throws FsException {
    int start = bytes.position();
    try {
      calls.write(file.file, bytes, offset);
      return true;
    } catch (FsException e) {
      if (e.errno() != Errno.ENOSPC && e.errno() != Errno.EDQUOT) {
        throw e;
      }
      bytes.position(start);
      return false;
    }
  }

  private boolean isWritten(KeptFile file, long offset, ByteBuffer bytes) throws FsException {
    int length = bytes.remaining();
    if (offset < 0 || offset + length != file.size) {
      return false;
    }
    ByteBuffer there = ByteBuffer.allocateDirect(length);
    return calls.read(file.file, there, offset) == length && there.flip().equals(bytes);
  }

  private void charge(KeptFile file, long bytes) throws FsException {
    file.countedBytes += bytes;
    local().charge(file.place, bytes);
  }

  /** Sets the size of an open file. */
  public void truncate(KeptFile file, long size) throws FsException, AskFirst {
    file.lock.writeLock().lock();
    try {
      changed(
          file,
          Math.min(size, file.size),
          () -> {
            calls.truncate(file.file, size);
            file.onlyGrew = false;
            file.size = size;
            return size;
          });
    } finally {
      file.lock.writeLock().unlock();
    }
  }

  /**
   * Allocates room in an open file.
   *
   * @param mode 0 or FALLOC_KEEP_SIZE
   * @return false if there is no room: the owner has to allocate
   */
  public boolean allocate(KeptFile file, int mode, long offset, long length)
      throws FsException, AskFirst {
    file.lock.writeLock().lock();
    try {
      if (offset > FileData.MAX_SIZE - length) {
        throw new FsException(Errno.EFBIG, "fallocate up to " + (offset + length));
      }
      if (!local().hasRoom(file.place, length)) {
        return false;
      }
      return changed(
          file,
          file.size,
          () -> {
            calls.allocate(file.file, mode, offset, length);
            file.onlyGrew = false;
            if (mode == 0) {
              file.size = Math.max(file.size, offset + length);
            }
            return true;
          });
    } finally {
      file.lock.writeLock().unlock();
    }
  }

  /** Reads what an open file has; fewer bytes at its end only. */
  public int read(KeptFile file, ByteBuffer destination, long offset) throws FsException {
    file.lock.readLock().lock();
    try {
      long left = Math.max(0, file.size - offset);
      if (left < destination.remaining()) {
        destination.limit(destination.position() + (int) left);
      }
      return destination.hasRemaining() ? calls.read(file.file, destination, offset) : 0;
    } finally {
      file.lock.readLock().unlock();
    }
  }

  // ---- for the owner

  private KeptFile known(Id id) throws FsException {
    local();
    KeptFile file = files.get(id);
    if (file == null) {
      throw new FsException(Errno.ENOENT, "this node keeps no data of inode " + id.inode());
    }
    return file;
  }

  /** Runs while a file is open and locked. */
  private <T> T exclusively(Id id, Work<T> work) throws FsException {
    KeptFile file = known(id);
    file.lock.writeLock().lock();
    try {
      open(file);
      return work.run();
    } finally {
      closeUnused(file);
      file.lock.writeLock().unlock();
    }
  }

  @Override
  public Frozen freeze(Id id, boolean sync) throws FsException {
    KeptFile file = known(id);
    return exclusively(
        id,
        () -> {
          file.isWriting = false;
          file.freezes++;
          if (sync) {
            sync(file);
          }
          Attributes there = calls.status(file.file, Inode.NO_NAME).attributes();
          charge(file, there.blocks() * 512 - file.countedBytes);
          return new Frozen(
              there.size(),
              there.blocks(),
              file.modified,
              file.onlyGrew,
              there.size() > SMALL_BYTES
                  ? null
                  : ByteBuffer.wrap(bytes(file, 0, (int) there.size())));
        });
  }

  private void sync(KeptFile file) throws FsException {
    calls.sync(file.file, false);
    if (!file.isNameSynced) {
      local().syncName(file.place, file.id.inode());
      file.isNameSynced = true;
    }
  }

  private byte[] bytes(KeptFile file, long offset, int size) throws FsException {
    ByteBuffer buffer = CopyBuffers.take();
    try {
      buffer.limit(size);
      int count = size == 0 ? 0 : calls.read(file.file, buffer, offset);
      byte[] bytes = new byte[count];
      buffer.get(0, bytes);
      return bytes;
    } finally {
      CopyBuffers.give(buffer);
    }
  }

  @Override
  public byte[] read(Id id, long offset, int size) throws FsException {
    if (size < 0 || size > CopyBuffers.BYTES) {
      throw new FsException(Errno.EINVAL, size + " bytes");
    }
    KeptFile file = known(id);
    return exclusively(id, () -> bytes(file, offset, size));
  }

  @Override
  public void setTimes(Id id, Instant accessTime, Instant modificationTime) throws FsException {
    KeptFile file = known(id);
    exclusively(
        id,
        () -> {
          calls.setTimes(file.file, Inode.NO_NAME, accessTime, modificationTime);
          file.modified = modificationTime;
          return id;
        });
  }

  @Override
  public void copy(Id id, Target target, long from, long end) throws FsException {
    KeptFile file = known(id);
    acquire(file);
    try {
      if (end > file.size) {
        throw new FsException(Errno.EIO, "the data end before " + end);
      }
      int to = openTarget(target);
      try {
        DataCopy.copy(calls, file.file, to, from, end, bytes -> {});
        calls.sync(to, true);
      } finally {
        calls.close(to);
      }
    } finally {
      release(file);
    }
  }

  private int openTarget(Target target) throws FsException {
    int root = calls.openRoot(source);
    try (Acting acting = calls.actAs(target.uid(), target.gid())) {
      Objects.requireNonNull(acting);
      boolean isRoot = target.directory().size() == 0;
      int directory = isRoot ? root : calls.openDirectory(root, target.directory());
      try {
        int opened = calls.open(directory, target.name(), OutputCalls.O_WRONLY, 0);
        if (calls.status(opened, Inode.NO_NAME).inode() != target.inode()) {
          calls.close(opened);
          throw new FsException(Errno.ESTALE, target.name() + " is another file on this node");
        }
        return opened;
      } finally {
        if (directory != root) {
          calls.close(directory);
        }
      }
    } finally {
      calls.close(root);
    }
  }

  // ---- what is of no use any more

  /** From now on the owner has the content, which it reads here. */
  public void giveUp(KeptFile file) {
    file.isGone = true;
    latest.remove(file.id.inode(), file);
  }

  /** Files that no program here is writing to, for {@link OwnedFileSystem#unused}. */
  public List<Id> idle() {
    List<Id> idle = new ArrayList<>();
    for (KeptFile file : files.values()) {
      if (file.users == 0 || !file.isWriting) {
        idle.add(file.id);
      }
    }
    return idle;
  }

  /** The room that the files take. */
  public long bytes() {
    LocalFiles known = local;
    return known == null ? 0 : known.usedBytes();
  }

  /** How many files are kept. */
  public int count() {
    return files.size();
  }

  /** Removes files; who has one open may read on. */
  public void remove(List<Id> unused) throws FsException {
    for (Id id : unused) {
      KeptFile file = files.remove(id);
      if (file != null) {
        file.isGone = true;
        latest.remove(id.inode(), file);
        local().remove(file.place, id.inode(), id.generation());
      }
    }
  }

  @Override
  public void close() {
    for (KeptFile file : files.values()) {
      file.lock.writeLock().lock();
      try {
        file.users = 0;
        closeUnused(file);
      } finally {
        file.lock.writeLock().unlock();
      }
    }
    LocalFiles known = local;
    if (known != null) {
      known.close();
    }
  }
}
