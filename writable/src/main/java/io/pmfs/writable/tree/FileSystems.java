package io.pmfs.writable.tree;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls.FileSystem;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * The numbers of file systems below the source, which stay when the kernel gives one another device
 * number: after a reboot, or when NFS mounts it again. A number is the device number that the file
 * system had when it was first seen. Thread-safe.
 */
@SuppressWarnings("try")
final class FileSystems {
  private static final int KEPT = 10_000;
  private static final String PREFIX = "mount ";

  /** Beyond the kernel's device numbers, for one that another file system had first. */
  private static final long NEXT = 1L << 48;

  private final State state;
  private final long freshMillis;

  /** By device number, which may soon be that of another file system. */
  private final Cache<Long, Known> known = CacheBuilder.newBuilder().maximumSize(KEPT).build();

  /** The last device numbers of file systems, by their numbers. GUARDED_BY(state's lock) */
  private final Cache<Long, Long> devices = CacheBuilder.newBuilder().maximumSize(KEPT).build();

  private record Known(long number, long atMillis) {}

  FileSystems(State state, long freshMillis) {
    this.state = state;
    this.freshMillis = freshMillis;
  }

  /** The number of a file system that was seen a moment ago; null if it was not. */
  @Nullable Long known(long device) {
    Known last = known.getIfPresent(device);
    long now = state.millis();
    return last != null && now >= last.atMillis && now - last.atMillis < freshMillis
        ? (Long) last.number
        : null;
  }

  /** The number of a file system that is there now. Do not call with an uncommitted update. */
  long number(long device, FileSystem found) throws FsException {
    long begin = state.millis();
    try (State.Held held = state.hold()) {
      Long named = named(device, found);
      long number = named == null ? unused(device, found) : named;
      State.Update update = state.update();
      for (String name : found.names()) {
        if (state.get(Tables.FACTS, fact(name)) == null) {
          update.put(Tables.FACTS, fact(name), Tables.key(number));
        }
      }
      if (!update.isEmpty()) {
        update.commit();
      }
      devices.put(number, device);
      known.put(device, new Known(number, begin));
      return number;
    }
  }

  private @Nullable Long named(long device, FileSystem found) throws FsException {
    for (String name : found.names()) {
      byte[] row = state.get(Tables.FACTS, fact(name));
      if (row != null && isFree(Tables.first(row), device, found)) {
        return Tables.first(row);
      }
    }
    return null;
  }

  /** Whether no other file system that is mounted has a number: copies of a disk share a name. */
  private boolean isFree(long number, long device, FileSystem found) {
    Long last = devices.getIfPresent(number);
    return last == null || last == device || !found.mounted().contains(last);
  }

  private long unused(long device, FileSystem found) throws FsException {
    long number = device;
    while (isNamed(number) || !isFree(number, device, found)) {
      number += NEXT;
    }
    return number;
  }

  private boolean isNamed(long number) throws FsException {
    boolean[] isNamed = {false};
    state.scan(
        Tables.FACTS,
        PREFIX.getBytes(StandardCharsets.UTF_8),
        (key, value) -> {
          boolean isName = new String(key, StandardCharsets.UTF_8).startsWith(PREFIX);
          isNamed[0] |= isName && Tables.first(value) == number;
          return isName && !isNamed[0];
        });
    return isNamed[0];
  }

  private static byte[] fact(String name) {
    return (PREFIX + name).getBytes(StandardCharsets.UTF_8);
  }
}
