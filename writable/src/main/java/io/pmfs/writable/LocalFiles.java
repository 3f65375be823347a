package io.pmfs.writable;

import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.StoreStatistics;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Data files: one for each generation of a file's content, in one of the places. Which place holds
 * a file is in the tables; this class knows paths and room. Safe for use by many threads.
 */
final class LocalFiles implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(LocalFiles.class);

  private static final int FANS = 64;
  private static final int DIRECTORY_MODE = 0700;
  private static final int FILE_MODE = 0600;
  private static final long STATISTICS_MILLIS = 200;

  private final OutputCalls calls;
  private final List<Place> places;
  private final InstantSource clock;
  private final int[][] directories; // GUARDED_BY(this); -1 if not open
  private final AtomicLongArray used;
  private final AtomicLong[] askedMillis;
  private final AtomicLongArray free;

  LocalFiles(OutputCalls calls, List<Place> places, InstantSource clock) {
    this.calls = calls;
    this.places = places;
    this.clock = clock;
    directories = new int[places.size()][FANS];
    used = new AtomicLongArray(places.size());
    free = new AtomicLongArray(places.size());
    askedMillis = new AtomicLong[places.size()];
    for (int i = 0; i < places.size(); i++) {
      Arrays.fill(directories[i], -1);
      askedMillis[i] = new AtomicLong(Long.MIN_VALUE);
    }
  }

  int placeCount() {
    return places.size();
  }

  // ---- files

  /** Opens a data file for reading and writing, and creates it if it is not there. */
  int open(int place, long number, long generation) throws FsException {
    return calls.open(
        directory(place, number),
        name(number, generation),
        OutputCalls.O_RDWR | OutputCalls.O_CREAT,
        FILE_MODE);
  }

  void remove(int place, long number, long generation) throws FsException {
    try {
      calls.unlink(directory(place, number), name(number, generation));
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
    }
  }

  void setTimes(int place, long number, long generation, Instant access, Instant modified)
      throws FsException {
    calls.setTimes(directory(place, number), name(number, generation), access, modified);
  }

  /** Makes the names of data files survive the machine. */
  void syncName(int place, long number) throws FsException {
    calls.sync(directory(place, number), false);
  }

  private static FileName name(long number, long generation) {
    return FileName.of(Long.toHexString(number) + "." + Long.toHexString(generation));
  }

  private synchronized int directory(int place, long number) throws FsException {
    if (place < 0 || place >= places.size()) {
      throw new FsException(Errno.EIO, "no place " + place + " for data files");
    }
    int fan = (int) (number & (FANS - 1));
    int open = directories[place][fan];
    if (open >= 0) {
      return open;
    }
    Path path = places.get(place).directory().resolve("%02x".formatted(fan));
    try {
      Files.createDirectories(path.getParent());
    } catch (IOException e) {
      throw new FsException(Errno.EIO, places.get(place).directory() + ": " + e.getMessage(), e);
    }
    int parent = calls.openRoot(places.get(place).directory());
    try {
      FileName name = FileName.of("%02x".formatted(fan));
      try {
        calls.mkdir(parent, name, DIRECTORY_MODE);
        calls.sync(parent, false);
      } catch (FsException e) {
        if (e.errno() != Errno.EEXIST) {
          throw e;
        }
      }
      directories[place][fan] = calls.openDirectory(parent, name);
      return directories[place][fan];
    } finally {
      calls.close(parent);
    }
  }

  // ---- room

  /** The first place that has room for so many more bytes; -1 if none has. */
  int placeWithRoom(long bytes) {
    for (int i = 0; i < places.size(); i++) {
      if (hasRoom(i, bytes)) {
        return i;
      }
    }
    return -1;
  }

  boolean hasRoom(int place, long bytes) {
    Place where = places.get(place);
    return used.get(place) + bytes <= where.capacityBytes()
        && freeBytes(place) - bytes >= where.keepFreeBytes();
  }

  /** What the place's file system has left, as last asked. */
  private long freeBytes(int place) {
    long now = clock.millis();
    long asked = askedMillis[place].get();
    if (asked == Long.MIN_VALUE || now - asked >= STATISTICS_MILLIS || now < asked) {
      askedMillis[place].set(now);
      try {
        StoreStatistics found = calls.statistics(directory(place, 0));
        free.set(place, found.blocksAvailable() * found.fragmentSize());
      } catch (FsException e) {
        log.warn("{}: cannot ask for its room: {}", places.get(place).name(), e.getMessage());
        free.set(place, 0);
      }
    }
    return free.get(place);
  }

  /** Counts room that data files take more, or less if negative. */
  void charge(int place, long bytes) {
    used.addAndGet(place, bytes);
    free.addAndGet(place, -bytes);
  }

  long usedBytes() {
    long sum = 0;
    for (int i = 0; i < used.length(); i++) {
      sum += used.get(i);
    }
    return sum;
  }

  @Override
  public synchronized void close() {
    for (int[] opened : directories) {
      for (int i = 0; i < FANS; i++) {
        if (opened[i] >= 0) {
          calls.close(opened[i]);
          opened[i] = -1;
        }
      }
    }
  }
}
