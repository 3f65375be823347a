package io.pmfs.writable.remote;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.OutputCalls.Acting;
import io.pmfs.writable.Place;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.places.CopyBuffers;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.places.LocalPlace;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The data files that this node keeps for the owner of a writable mount: what its programs write to
 * new files, until the source has it. The next process finds the files again. Thread-safe.
 */
public final class NodeFiles implements NodeData, AutoCloseable {
  /** Prefix of the directory name in each place; the owner's id follows. */
  private static final String DIRECTORY = "of-";

  /** Far more than files that are being opened. */
  private static final int MOST_MISSED = 16_384;

  /** Far longer than an answer is on its way. */
  private static final Duration KEPT_MISSED = Duration.ofMinutes(5);

  private final List<Place> places;
  private final Path source;
  private final OutputCalls calls;
  private final InstantSource clock;
  private final Map<Id, KeptFile> files = new ConcurrentHashMap<>();

  /** The latest file of each inode. */
  private final Map<Long, KeptFile> latest = new ConcurrentHashMap<>();

  /** Files that the owner has asked for in vain: its order to make them may be on its way. */
  private final Cache<Id, Boolean> missed = // GUARDED_BY(missed)
      CacheBuilder.newBuilder().maximumSize(MOST_MISSED).expireAfterWrite(KEPT_MISSED).build();

  private volatile @Nullable DataPlaces local;
  private volatile @Nullable String owner;

  /**
   * Creates the object without opening anything.
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
   * This node has joined: finds the files that an earlier process kept for the owner. The owner may
   * have let others write since an earlier time, so it must be asked before each is written again.
   *
   * @param id of the owner's state
   */
  public synchronized void use(String id) throws FsException {
    if (id.equals(owner)) {
      files.values().forEach(KeptFile::stop);
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
    DataPlaces found =
        new DataPlaces(
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
        (place, kept) -> {
          add(new KeptFile(kept, place, clock));
          return true;
        });
    local = found;
    owner = id;
  }

  /**
   * A directory with files kept for another owner, which may exist nowhere else.
   *
   * @param except the id of the owner to ignore; empty for none
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

  /** The error while such a directory has files. */
  public static String leftReason(Path directory) {
    return directory
        + " has files that were written here as another node of a cluster; mount with the same"
        + " --nodes as then, or remove that directory if they are not needed";
  }

  /** Whether the owner is known, so that requests can be answered. */
  public boolean isReady() {
    return local != null;
  }

  private DataPlaces local() throws FsException {
    DataPlaces known = local;
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

  public boolean hasRoom() {
    DataPlaces known = local;
    return known != null && known.withRoom(SMALL_BYTES) != null;
  }

  /** The kept file of a content; null if it is not here. */
  public @Nullable KeptFile find(long inode, long generation) {
    return files.get(new Id(inode, generation));
  }

  /** The latest file of an inode, if this node may continue writing it; else null. */
  public @Nullable KeptFile latest(long inode) {
    KeptFile file = latest.get(inode);
    return file == null || file.isGone() ? null : file;
  }

  /**
   * Creates the file of an empty content, with one use.
   *
   * @return null if no place has room: then the owner takes the content
   */
  public @Nullable KeptFile make(long inode, long generation) throws FsException {
    for (int left = places.size(); left > 0; left--) {
      LocalPlace place = local().withRoom(0);
      if (place == null) {
        break;
      }
      KeptFile file = new KeptFile(new Id(inode, generation), place, clock);
      try {
        file.make();
        addMade(file);
        return file;
      } catch (FsException e) {
        if (!DataPlaces.isRefusal(e)) {
          throw e;
        }
      }
    }
    return null;
  }

  /** Adds a file: frozen if the owner has asked for it already, and may have replaced it since. */
  private void addMade(KeptFile file) throws FsException {
    synchronized (missed) {
      if (missed.getIfPresent(file.id) != null) {
        file.pause();
      }
      add(file);
    }
  }

  // ---- for the owner

  private KeptFile known(Id id) throws FsException {
    local();
    KeptFile file = files.get(id);
    return file == null ? knownAfterAll(id) : file;
  }

  private KeptFile knownAfterAll(Id id) throws FsException {
    synchronized (missed) {
      KeptFile file = files.get(id);
      if (file == null) {
        missed.put(id, true);
        throw new FsException(Errno.ENOENT, "this node keeps no data of inode " + id.inode());
      }
      return file;
    }
  }

  @Override
  public Frozen freeze(Id id, boolean sync) throws FsException {
    return known(id).freeze(sync);
  }

  @Override
  public byte[] read(Id id, long offset, int size) throws FsException {
    if (size < 0 || size > CopyBuffers.BYTES) {
      throw new FsException(Errno.EINVAL, size + " bytes");
    }
    return known(id).read(offset, size);
  }

  @Override
  public void setTimes(Id id, Instant accessTime, Instant modificationTime) throws FsException {
    known(id).setTimes(accessTime, modificationTime);
  }

  @Override
  public void copy(Id id, Target target, long from, long end) throws FsException {
    KeptFile file = known(id);
    int to = openTarget(target);
    try {
      file.copy(to, from, end);
      calls.sync(to, true);
    } finally {
      calls.close(to);
    }
  }

  private int openTarget(Target target) throws FsException {
    int root = calls.openRoot(source);
    try (Acting acting = calls.actAs(target.uid(), target.gid())) {
      Objects.requireNonNull(acting);
      boolean isRoot = target.directory().size() == 0;
      int directory = isRoot ? root : calls.openDirectory(root, target.directory());
      try {
        return checked(calls.open(directory, target.name(), OutputCalls.O_WRONLY, 0), target);
      } finally {
        if (directory != root) {
          calls.close(directory);
        }
      }
    } finally {
      calls.close(root);
    }
  }

  private int checked(int opened, Target target) throws FsException {
    try {
      if (calls.status(opened, Inode.NO_NAME).inode() != target.inode()) {
        throw new FsException(Errno.ESTALE, target.name() + " is another file on this node");
      }
      return opened;
    } catch (FsException e) {
      calls.close(opened);
      throw e;
    }
  }

  // ---- obsolete files

  /** Gives the content to the owner, which reads it here. */
  public void giveUp(KeptFile file) {
    file.end();
    latest.remove(file.id.inode(), file);
  }

  /** Files that no program here is writing, for {@link OwnedFileSystem#unused}. */
  public List<Id> idle() {
    return files.values().stream().filter(KeptFile::isIdle).map(KeptFile::id).toList();
  }

  public long bytes() {
    DataPlaces known = local;
    return known == null ? 0 : known.usedBytes();
  }

  public int count() {
    return files.size();
  }

  /** Removes files; open ones stay readable. */
  public void remove(List<Id> unused) throws FsException {
    for (Id id : unused) {
      KeptFile file = files.remove(id);
      if (file != null) {
        giveUp(file);
        file.remove();
      }
    }
  }

  @Override
  public void close() {
    files.values().forEach(KeptFile::close);
    DataPlaces known = local;
    if (known != null) {
      known.close();
    }
  }
}
