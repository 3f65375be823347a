package io.pmfs.cluster.peers;

/** The kinds of frames in a streamed answer; a frame's first byte is its kind. */
final class PeerFrames {
  /** Keep-alive: the answer is not ready yet. The frame is this one byte. */
  static final byte WAIT = 0;

  /** Directory entries. */
  static final byte ENTRIES = 1;

  /** The end of a directory. */
  static final byte END = 2;

  /** A refusal of the next batch item, or of the rest of a directory. */
  static final byte REFUSED = 3;

  /** The next item of a batch. */
  static final byte FILE = 4;

  private PeerFrames() {}
}
