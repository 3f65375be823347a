package io.pmfs.writable.places;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.Place;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The directory of a mount on a tier of this node, limited by its disk and the settings.
 * Thread-safe.
 */
final class TierPlace extends LocalPlace {
  private static final Logger log = LoggerFactory.getLogger(TierPlace.class);

  private static final long STATISTICS_MILLIS = 200;

  /** How long new files avoid a place that turned out to be full. */
  private static final long FULL_MILLIS = 1000;

  /** How long new files avoid a place whose disk fails. */
  private static final long FAILED_MILLIS = 10_000;

  private static final long LOG_PAUSE_MILLIS = 60_000;

  /** The directory that is made before any file is taken. */
  private static final int FIRST = 0;

  private final Place place;
  private final InstantSource clock;
  private final WriteBack writeBack;

  /** Free bytes of the place's file system when last asked, minus what was written since. */
  private final AtomicLong free = new AtomicLong();

  private volatile long askedMillis = Long.MIN_VALUE;

  /** New files avoid this place until then, because it refused one. */
  private volatile long avoidedUntilMillis = Long.MIN_VALUE;

  /** Whether it refused because its disk fails. */
  private volatile boolean isFailing;

  /** When a refusal was last logged. */
  private volatile long loggedMillis = Long.MIN_VALUE;

  TierPlace(int number, Place place, OutputCalls calls, InstantSource clock) {
    super(number, place.name(), calls);
    this.place = place;
    this.clock = clock;
    this.writeBack = new WriteBack(calls);
  }

  // ---- refusals

  /** The cause of a failure: the place has no room, or its disk fails. */
  static final class Refusal extends IOException {
    private Refusal(FsException answer) {
      super(answer);
    }
  }

  @Override
  <T> T asked(Call<T> call) throws FsException {
    try {
      return call.make();
    } catch (FsException e) {
      if (DataPlaces.isRefusal(e) || !isOfPlace(e.errno())) {
        throw e;
      }
      throw refused(e);
    }
  }

  private static boolean isOfPlace(Errno errno) {
    return switch (errno) {
      case ENOSPC,
          EDQUOT,
          EFBIG,
          EIO,
          EROFS,
          ENOENT,
          ENOTDIR,
          ESTALE,
          ENODEV,
          ENXIO,
          EACCES,
          EPERM ->
          true;
      default -> false;
    };
  }

  private FsException refused(FsException e) {
    boolean isFull =
        e.errno() == Errno.ENOSPC || e.errno() == Errno.EDQUOT || e.errno() == Errno.EFBIG;
    long now = clock.millis();
    isFailing = !isFull;
    avoidedUntilMillis = now + (isFull ? FULL_MILLIS : FAILED_MILLIS);
    long logged = loggedMillis;
    if (logged == Long.MIN_VALUE || now - logged >= LOG_PAUSE_MILLIS || now < logged) {
      loggedMillis = now;
      log.warn(
          "{} ({}) takes no more: {}; new data goes to another place",
          name(),
          place.directory(),
          e.getMessage());
    }
    return new FsException(e.errno(), name(), new Refusal(e));
  }

  /** Whether new files avoid it because it has just refused one. */
  boolean isAvoided() {
    long now = clock.millis();
    return now < avoidedUntilMillis && avoidedUntilMillis - now <= FAILED_MILLIS;
  }

  /** Whether it will have room once the source has its content; false if its disk fails. */
  boolean mayGetRoom() {
    return !isFailing || !isAvoided();
  }

  @Override
  void removed(boolean makesRoom) {
    if (makesRoom) {
      avoidedUntilMillis = Long.MIN_VALUE;
    }
  }

  // ---- room

  @Override
  void charge(long bytes) {
    super.charge(bytes);
    free.addAndGet(-bytes);
  }

  @Override
  void grew(int file) {
    writeBack.begin(file);
  }

  @Override
  public boolean hasRoom(long bytes) {
    return usedBytes() + bytes <= place.capacityBytes()
        && freeBytes() - bytes >= place.keepFreeBytes();
  }

  /** Free bytes of the place's file system, as last asked. */
  private long freeBytes() {
    long now = clock.millis();
    long asked = askedMillis;
    if (asked == Long.MIN_VALUE || now - asked >= STATISTICS_MILLIS || now < asked) {
      askedMillis = now;
      try {
        StoreStatistics found = in(FIRST, true, calls::statistics);
        free.set(found.blocksAvailable() * found.fragmentSize());
      } catch (FsException e) {
        refused(e);
        free.set(0);
      }
    }
    return free.get();
  }

  // ---- the directory

  @Override
  int openTop(boolean makes) throws FsException {
    Path path = place.directory();
    try {
      if (makes) {
        Files.createDirectories(path);
      }
    } catch (IOException e) {
      throw new FsException(Errno.EIO, path + ": " + e.getMessage(), e);
    }
    return calls.openRoot(path);
  }

  /** Whether it has the directory that it makes before it takes any file. */
  boolean isMade() {
    try {
      return in(FIRST, false, directory -> true);
    } catch (FsException e) {
      return false;
    }
  }

  @Override
  void checkOwn(int opened, FileName name) {
    // Other users have no rights in the directory of a tier.
  }

  @Override
  public void checkThere(long inode) throws FsException {
    int top = openTop(true);
    try {
      calls.close(calls.openDirectory(top, directoryName(inode)));
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
      throw new FsException(
          Errno.ENOENT,
          place.directory()
              + ": the data files of an earlier mount are not there; is its disk mounted?",
          e);
    } finally {
      calls.close(top);
    }
  }

  @Override
  void count(long end, DataPlaces.Left left) throws FsException {
    if (Files.isDirectory(place.directory())) {
      super.count(end, left);
    }
  }
}
