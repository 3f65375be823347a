package io.pmfs.daemon.requests;

import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.posix.Errno;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import org.jspecify.annotations.Nullable;

/**
 * Failed requests of readers, not counting errors that programs expect, such as ENOENT.
 * Thread-safe.
 */
public final class FailedRequests {
  /** How long a failure counts as recent, in whole minutes. */
  static final Duration LATELY = Duration.ofMinutes(10);

  private static final int MINUTES = (int) LATELY.toMinutes() + 1;

  private final InstantSource clock;

  // A ring of failure counts, each with its minute.
  private final long[] minutes = new long[MINUTES]; // GUARDED_BY(this)
  private final long[] counts = new long[MINUTES]; // GUARDED_BY(this)
  private long total; // GUARDED_BY(this)
  private @Nullable Last last; // GUARDED_BY(this)

  /** The last failure with a known path. */
  public record Last(Call call, String errno, Instant time) {}

  /** Failures since the daemon started, recent ones, and the last one. */
  public record Counts(long total, long lately, @Nullable Last last) {}

  public FailedRequests(InstantSource clock) {
    this.clock = clock;
  }

  /** Whether an error means that a program did not get data or names. */
  static boolean isFailure(String operation, int errno) {
    return errno != 0
        && switch (Errno.of(errno)) {
          case ENOENT,
              ENOTDIR,
              EISDIR,
              ELOOP,
              ENAMETOOLONG,
              EINVAL,
              ENXIO,
              ENODATA,
              ERANGE,
              ENOSYS,
              EOPNOTSUPP,
              ENOTTY,
              EROFS,
              EEXIST,
              ENOTEMPTY,
              EBUSY,
              EINTR ->
              false;
          // The kernel looks the name up again and repeats the request.
          case ESTALE ->
              !operation.equals(Opcode.LOOKUP.word()) && !operation.equals(Opcode.OPEN.word());
          default -> true;
        };
  }

  synchronized void count() {
    long minute = clock.instant().getEpochSecond() / 60;
    int place = (int) Math.floorMod(minute, (long) MINUTES);
    if (minutes[place] != minute) {
      minutes[place] = minute;
      counts[place] = 0;
    }
    counts[place]++;
    total++;
  }

  synchronized void describe(Call call, String errno, Instant time) {
    last = new Last(call, errno, time);
  }

  public synchronized Counts counts() {
    long minute = clock.instant().getEpochSecond() / 60;
    long lately = 0;
    for (int place = 0; place < MINUTES; place++) {
      if (minute - minutes[place] < MINUTES) {
        lately += counts[place];
      }
    }
    return new Counts(total, lately, last);
  }
}
