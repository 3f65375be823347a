package io.pmfs.writable;

import java.util.List;

/**
 * How far the source is behind a writable mount.
 *
 * @param dirtyBytes bytes of files that are not at the source yet
 * @param dirtyFiles files with such bytes
 * @param waitingChanges changes that the source does not have yet
 * @param oldestAgeSeconds age of the oldest of them, in seconds; 0 if none waits
 * @param drainedBytes bytes copied to the source since the daemon started
 * @param drainedChanges changes made at the source since the daemon started
 * @param bytesPerSecond copied in the last ten seconds
 * @param localBytes room that the files of this mount take in the tiers
 * @param conflicts files that somebody else changed at the source; they were kept beside
 * @param refused changes that the source refuses at the moment, or that were given up
 * @param failures the first hundred of what is refused or in conflict, a sentence each
 */
public record DrainStatus(
    long dirtyBytes,
    long dirtyFiles,
    long waitingChanges,
    long oldestAgeSeconds,
    long drainedBytes,
    long drainedChanges,
    long bytesPerSecond,
    long localBytes,
    long conflicts,
    long refused,
    List<Failure> failures) {

  /** A path of the mount and what is wrong with it. */
  public record Failure(String path, String reason) {}
}
