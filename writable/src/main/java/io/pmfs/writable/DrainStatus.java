package io.pmfs.writable;

import io.pmfs.posix.FsException;
import java.io.IOException;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

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
 * @param localBytes room that the files of this mount take in this node's tiers
 * @param conflicts files that another program changed at the source; they were kept beside
 * @param refused changes that the source refuses at the moment, or that were given up
 * @param failures the first hundred of what is refused or in conflict, a sentence each
 * @param away the node that changes wait for, because it does not answer; null if there is none. If
 *     it is the owner, everything else is as it was when it answered last
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
    List<Failure> failures,
    @Nullable Away away) {
  /** Nothing is known, and nothing waits. */
  public static final DrainStatus NONE =
      new DrainStatus(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, List.of(), null);

  /**
   * A node that does not answer.
   *
   * @param since when it was asked for the first time without an answer
   * @param path of the first change that waits for it; empty if that is not known
   * @param changes how many changes wait, those behind that one among them
   */
  public record Away(String node, boolean isOwner, Instant since, String path, long changes) {}

  /**
   * A path of the mount and what is wrong with it.
   *
   * @param cause what the source answered; null for a conflict, or if another node failed
   * @param isAside whether it is not tried again by itself
   * @param behind how many changes wait for it
   */
  public record Failure(
      String path, String reason, @Nullable FsException cause, boolean isAside, long behind) {
    public Failure(String path, String reason, @Nullable FsException cause) {
      this(path, reason, cause, false, 0);
    }

    /** What failed: a call at the source, or a request to another node. */
    public static Failure of(String path, FsException e) {
      String text = String.valueOf(e.getMessage());
      return e.getCause() instanceof IOException
          ? new Failure(path, text.substring(text.indexOf(": ") + 2), null)
          : new Failure(path, text, e);
    }
  }

  /** The same with what another node's tiers hold. */
  public DrainStatus withLocalBytes(long bytes) {
    return new DrainStatus(
        dirtyBytes,
        dirtyFiles,
        waitingChanges,
        oldestAgeSeconds,
        drainedBytes,
        drainedChanges,
        bytesPerSecond,
        bytes,
        conflicts,
        refused,
        failures,
        away);
  }

  /** The last one of an owner that does not answer any more. */
  public DrainStatus without(NodeAway owner) {
    return new DrainStatus(
        dirtyBytes,
        dirtyFiles,
        waitingChanges,
        oldestAgeSeconds,
        drainedBytes,
        drainedChanges,
        0,
        localBytes,
        conflicts,
        refused,
        failures,
        owner.unknown());
  }
}
