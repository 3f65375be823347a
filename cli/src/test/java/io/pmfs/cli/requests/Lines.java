package io.pmfs.cli.requests;

import io.pmfs.fuse.AnsweredRequest;
import io.pmfs.metadata.FileName;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** Requests and lines for tests. */
final class Lines {
  static final Instant TIME = Instant.parse("2026-11-22T02:26:04.123456Z");

  private Lines() {}

  static LogLine.Request of(String operation, @Nullable FileName path, String result) {
    return new LogLine.Request(
        TIME, 0, 0, 4403, operation, path, path == null ? 12 : -1, null, -1, -1, result, -1, 7);
  }

  /** A read that began at a second and took so many microseconds. */
  static LogLine.Request read(String path, long second, long pid, long bytes, long micros) {
    return new LogLine.Request(
        TIME.plusSeconds(second),
        1000,
        100,
        pid,
        "read",
        FileName.of(path),
        -1,
        null,
        131072,
        0,
        "OK",
        bytes,
        micros);
  }

  /** A read of an inode, answered just now. */
  static AnsweredRequest answered(long inode, long nanos) {
    return new AnsweredRequest(
        "read",
        0,
        0,
        4403,
        inode,
        null,
        null,
        0,
        131072,
        0,
        1000,
        System.nanoTime() - nanos,
        nanos);
  }

  /** A name that was looked up. */
  static AnsweredRequest lookup(long directory, String name, int errno) {
    return new AnsweredRequest(
        "lookup",
        0,
        0,
        4403,
        directory,
        null,
        FileName.ofLatin1(name),
        -1,
        -1,
        errno,
        -1,
        System.nanoTime(),
        1000);
  }
}
