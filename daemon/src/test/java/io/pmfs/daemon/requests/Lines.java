package io.pmfs.daemon.requests;

import io.pmfs.fuse.protocol.AnsweredRequest;
import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.metadata.FileName;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** Requests and lines for tests. */
final class Lines {
  static final Instant TIME = Instant.parse("2026-11-22T02:26:04.123456Z");

  private Lines() {}

  static LogLine.Request of(String operation, @Nullable FileName path, String result) {
    Call call = new Call(0, 0, 4403, operation, path, path == null ? 12 : -1, null, -1, -1);
    return new LogLine.Request(TIME, call, result, -1, 7);
  }

  /** A read that began at the given second and took so many microseconds. */
  static LogLine.Request read(String path, long second, long pid, long bytes, long micros) {
    Call call = new Call(1000, 100, pid, "read", FileName.of(path), -1, null, 131072, 0);
    return new LogLine.Request(TIME.plusSeconds(second), call, "OK", bytes, micros);
  }

  /** A read of an inode that began so long ago. */
  static AskedRequest asked(long inode, long nanosAgo) {
    return new AskedRequest(
        "read", 0, 0, 4403, inode, null, null, 0, 131072, System.nanoTime() - nanosAgo);
  }

  /** A read of an inode, answered just now. */
  static AnsweredRequest answered(long inode, long nanos) {
    return new AnsweredRequest(asked(inode, nanos), 0, 1000, nanos);
  }

  /** A lookup of a name. */
  static AnsweredRequest lookup(long directory, String name, int errno) {
    AskedRequest asked =
        new AskedRequest(
            "lookup",
            0,
            0,
            4403,
            directory,
            null,
            FileName.ofLatin1(name),
            -1,
            -1,
            System.nanoTime());
    return new AnsweredRequest(asked, errno, -1, 1000);
  }
}
