package io.pmfs.cluster.peers;

/** The kinds of frames in a streamed answer; a frame's first byte is its kind. */
public final class PeerFrames {
  /** Keep-alive: the answer is not ready yet. The frame is this one byte. */
  public static final byte WAIT = 0;

  public static final byte ENTRIES = 1;

  public static final byte END = 2;

  /** A refusal of the next batch item, or of the rest of a directory. */
  public static final byte REFUSED = 3;

  public static final byte FILE = 4;

  private PeerFrames() {}
}
