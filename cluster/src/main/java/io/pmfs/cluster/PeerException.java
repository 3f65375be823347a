package io.pmfs.cluster;

/** A peer did not give what it was asked for: a miss, never a failure. */
public final class PeerException extends Exception {
  /** Whose doing it was. */
  public enum Kind {
    /** It was not reached, or was silent for too long: it is suspected from now on. */
    UNREACHABLE,
    /** What it sent is not what it says it is: it is suspected, too. */
    CORRUPT,
    /** It has no copy and is not an owner, or has another version, or is busy. */
    REFUSED,
    /** The source failed it, or does not answer it alone. */
    FAILED
  }

  private final Kind kind;

  public PeerException(Kind kind, String message) {
    // A miss is an everyday answer: it needs no stack trace.
    super(message, null, false, false);
    this.kind = kind;
  }

  public Kind kind() {
    return kind;
  }
}
