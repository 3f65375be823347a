package io.pmfs.cluster.peers;

/** A peer did not give what it was asked for. Callers treat that as a miss, never as a failure. */
public final class PeerException extends Exception {
  /** The reason for the miss. */
  public enum Kind {
    /** The peer was not reached, or was silent for too long; it is suspected from now on. */
    UNREACHABLE,
    /** The peer sent data that fails a check; it is suspected, too. */
    CORRUPT,
    /** The peer has no copy and is not an owner. */
    REFUSED,
    /** The peer has another version of the file. */
    OTHER_VERSION,
    /** The peer answers, or sends, as much as it can. */
    BUSY,
    /** The reader has waited for long enough; whether the peer would have answered is not known. */
    LATE,
    /** The source failed, or answers other nodes but not this peer. */
    FAILED
  }

  private final Kind kind;

  public PeerException(Kind kind, String message) {
    // Misses are frequent and need no stack trace.
    super(message, null, false, false);
    this.kind = kind;
  }

  public Kind kind() {
    return kind;
  }
}
