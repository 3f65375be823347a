package io.pmfs.cluster;

/** Kinds of the frames that streamed answers consist of: the first byte of each. */
final class PeerFrames {
  /** Nothing yet; the peer is alive. Has no more bytes. */
  static final byte WAIT = 0;

  /** Entries of a directory. */
  static final byte ENTRIES = 1;

  /** The end of a directory. */
  static final byte END = 2;

  /** A refusal: of the next item of a batch, or of all that would follow in a directory. */
  static final byte REFUSED = 3;

  /** The next item of a batch. */
  static final byte FILE = 4;

  private PeerFrames() {}
}
