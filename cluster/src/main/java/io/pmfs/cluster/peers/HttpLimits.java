package io.pmfs.cluster.peers;

/** Sizes that both ends of the protocol know (docs/formats.md, Peers). */
public final class HttpLimits {
  /** A path of 4,096 bytes, each percent-encoded. */
  public static final int MAX_LINE_BYTES = 13_312;

  public static final int MAX_HEAD_BYTES = 16_384;

  /** Larger ranges are sent without checksums; pmfs clients do not request more than this. */
  public static final int MAX_CHECKED_BYTES = 16 << 20;

  public static final int MAX_BATCH_ITEMS = 256;
  public static final int MAX_BATCH_BYTES = 8 << 20;

  /** {@link #MAX_BATCH_ITEMS} paths of 4,096 bytes, each with its other fields. */
  public static final int MAX_BATCH_REQUEST_BYTES = 1_100_000;

  public static final int MAX_CONTROL_BYTES = 1 << 20;

  /** A write of 1 MiB, or an extended attribute and its name. */
  public static final int MAX_OUTPUTS_BYTES = 2 << 20;

  /** Size at which a directory's frame is sent; also the largest piece of a request's body. */
  public static final int FRAME_BYTES = 64 << 10;

  public static final int MAX_FRAME_BYTES = 128 << 10;

  /** The largest answer of a peer with names, attributes or a link target. */
  public static final int MAX_SMALL_ANSWER_BYTES = 4 << 20;

  /** The largest directory that is accepted from a peer: about a million names. */
  public static final int MAX_DIRECTORY_BYTES = 96 << 20;

  private HttpLimits() {}
}
