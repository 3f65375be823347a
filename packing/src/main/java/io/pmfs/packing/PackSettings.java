package io.pmfs.packing;

import java.nio.file.Path;

/**
 * What is to be packed, where to and how.
 *
 * @param source its path, absolute; for people and to know an interrupted pack again
 * @param shardBytes of a shard at most, before compression; what must stay together may be larger
 * @param jobs files that are read at once, 1 to 1,024
 * @param skipUnreadable whether a pack without what cannot be read is complete
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

  /** So that a source with latency is not waited for; see docs/decisions/0020. */
  public static final int LEAST_DEFAULT_JOBS = 32;

  public PackSettings {
    if (shardBytes < 1) {
      throw new IllegalArgumentException("shard-size must be above 0");
    }
    if (jobs < 1 || jobs > MAX_JOBS) {
      throw new IllegalArgumentException("jobs must be from 1 to " + MAX_JOBS);
    }
  }

  /** Files that are read at once if nothing is asked for, on a machine with so many processors. */
  public static int defaultJobs(int cores) {
    return Math.max(LEAST_DEFAULT_JOBS, Math.min(cores, MAX_JOBS));
  }
}
