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
 * @param waitingChanges changes not at the source yet
 * @param oldestAgeSeconds age of the oldest waiting change, in seconds; 0 if none waits
 * @param drainedBytes bytes copied to the source since the daemon started
 * @param drainedChanges changes made at the source since the daemon started
 * @param bytesPerSecond copied in the last ten seconds
 * @param localBytes bytes that this mount uses in this node's tiers
 * @param conflicts files that another program changed too; this mount's versions were saved under
 *     other names
 * @param refused changes that the source refuses now, and changes given up
 * @param failures the first hundred refusals and conflicts, one sentence each
 * @param away the unreachable node that changes wait for; null if there is none. If it is the
 *     owner, the other figures are from its last answer
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
  /** An empty status: nothing is known and nothing waits. */
  public static final DrainStatus NONE =
      new DrainStatus(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, List.of(), null);

  /**
   * A node that does not answer.
   *
   * @param since time of the first request without an answer
   * @param path of the first change that waits for it; empty if unknown
   * @param changes how many changes wait, counting those behind the first
   */
  public record Away(String node, boolean isOwner, Instant since, String path, long changes) {}

  /**
   * A path of the mount and what is wrong with it.
   *
   * @param cause the source's error; null for a conflict, or if another node failed
   * @param isAside whether it is only retried on request
   * @param behind how many changes wait for it
   */
  public record Failure(
      String path, String reason, @Nullable FsException cause, boolean isAside, long behind) {
    public Failure(String path, String reason, @Nullable FsException cause) {
      this(path, reason, cause, false, 0);
    }

    /** The kind of a failure: a call at the source, or a request to another node. */
    public static Failure of(String path, FsException e) {
      String text = String.valueOf(e.getMessage());
      return e.getCause() instanceof IOException
          ? new Failure(path, text.substring(text.indexOf(": ") + 2), null)
          : new Failure(path, text, e);
    }
  }

  /** Adds the bytes that another node's tiers hold. */
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

  /** The last status of an owner that no longer answers. */
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
