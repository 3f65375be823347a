package io.pmfs.fuse.protocol;

/**
 * Receives requests that were answered. The thread that answered a request calls the listener,
 * which must neither wait nor throw. Safe for use by many threads.
 */
public interface RequestListener {
  /**
   * Requests that took less time are not reported and cost nothing but this call: {@link
   * Long#MAX_VALUE} to receive none. May change at any time.
   */
  long leastNanos();

  /** Whether to report a request with this outcome, however little time it took. */
  default boolean wants(Opcode opcode, int errno) {
    return false;
  }

  /** Receives one request. Requests that expect no answer, such as FORGET, are not reported. */
  void answered(AnsweredRequest request);
}
