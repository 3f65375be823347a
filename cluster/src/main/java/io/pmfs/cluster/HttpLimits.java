package io.pmfs.cluster;

/** Sizes that both ends of the protocol know (docs/formats.md, Peers). */
final class HttpLimits {
  /** A path of 4,096 bytes, each percent-encoded. */
  static final int MAX_LINE_BYTES = 13_312;

  static final int MAX_HEAD_BYTES = 16_384;

  /** More content is streamed without checksums, and a client of ours asks for less. */
  static final int MAX_CHECKED_BYTES = 16 << 20;

  static final int MAX_BATCH_ITEMS = 256;
  static final int MAX_BATCH_BYTES = 8 << 20;

  /** {@link #MAX_BATCH_ITEMS} paths of 4,096 bytes with what stands beside them. */
  static final int MAX_BATCH_REQUEST_BYTES = 1_100_000;

  static final int MAX_CONTROL_BYTES = 1 << 20;

  /** A frame of a directory but for its last entry, and the answer to an unbounded one. */
  static final int FRAME_BYTES = 64 << 10;

  static final int MAX_FRAME_BYTES = 128 << 10;

  /** Names, attributes, link targets: what one answer of a peer holds at most. */
  static final int MAX_SMALL_ANSWER_BYTES = 4 << 20;

  /** The names of a directory that are taken from a peer: about a million. */
  static final int MAX_DIRECTORY_BYTES = 96 << 20;

  private HttpLimits() {}
}
