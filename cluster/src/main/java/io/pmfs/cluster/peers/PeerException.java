package io.pmfs.cluster.peers;

/** A peer did not answer a question as asked. Callers treat that as a miss, never as a failure. */
public final class PeerException extends Exception {
  public enum Kind {
    /** The peer was not reached or was silent for too long, and is now suspected. */
    UNREACHABLE,
    /** The peer sent data that fails a check, and is now suspected. */
    CORRUPT,
    /** The peer has no copy and is not an owner. */
    REFUSED,
    OTHER_VERSION,
    BUSY,
    /** The reader's patience ended; whether the peer would have answered is unknown. */
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
