package io.pmfs.cluster.peers;

/** Sizes that both ends of the protocol know (docs/formats.md, Peers). */
final class HttpLimits {
  /** A path of 4,096 bytes, each percent-encoded. */
  static final int MAX_LINE_BYTES = 13_312;

  static final int MAX_HEAD_BYTES = 16_384;

  /**
   * A larger range is streamed without checksums; a pmfs client does not request more than this.
   */
  static final int MAX_CHECKED_BYTES = 16 << 20;

  static final int MAX_BATCH_ITEMS = 256;
  static final int MAX_BATCH_BYTES = 8 << 20;

  /** {@link #MAX_BATCH_ITEMS} paths of 4,096 bytes, each with its other fields. */
  static final int MAX_BATCH_REQUEST_BYTES = 1_100_000;

  static final int MAX_CONTROL_BYTES = 1 << 20;

  /** A write of 1 MiB, or an extended attribute and its name. */
  static final int MAX_OUTPUTS_BYTES = 2 << 20;

  /**
   * A directory's frame is sent when it has this many bytes; also the largest piece of a request's
   * body.
   */
  static final int FRAME_BYTES = 64 << 10;

  static final int MAX_FRAME_BYTES = 128 << 10;

  /** The largest answer of a peer with names, attributes or a link target. */
  static final int MAX_SMALL_ANSWER_BYTES = 4 << 20;

  /** The largest directory that is accepted from a peer: about a million names. */
  static final int MAX_DIRECTORY_BYTES = 96 << 20;

  private HttpLimits() {}
}
