package io.pmfs.pack;

import java.nio.file.Path;

/**
 * What to pack, where to and how.
 *
 * @param source its absolute path; for messages, and to recognise an interrupted pack
 * @param shardBytes maximum size of a shard before compression; files that must stay together may
 *     exceed it
 * @param jobs files that are read at once, 1 to 1,024
 * @param skipUnreadable whether a pack is complete without the files that cannot be read
 * @param program name and version of the program, for the manifest
 */
public record PackSettings(
    String source,
    Path directory,
    long shardBytes,
    PackCompression compression,
    PackOrder order,
    int jobs,
    boolean skipUnreadable,
    String program) {
  public static final int MAX_JOBS = 1024;

  /** Enough to hide the latency of a source; see docs/decisions/0020. */
  public static final int LEAST_DEFAULT_JOBS = 32;

  public PackSettings {
    if (shardBytes < 1) {
      throw new IllegalArgumentException("shard-size must be greater than 0");
    }
    if (jobs < 1 || jobs > MAX_JOBS) {
      throw new IllegalArgumentException("jobs must be from 1 to " + MAX_JOBS);
    }
  }

  /** The default number of files that are read at once, for a machine with that many processors. */
  public static int defaultJobs(int cores) {
    return Math.max(LEAST_DEFAULT_JOBS, Math.min(cores, MAX_JOBS));
  }
}
