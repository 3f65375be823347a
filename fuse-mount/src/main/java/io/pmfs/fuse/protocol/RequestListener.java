package io.pmfs.fuse.protocol;

/**
 * Receives requests that were answered. Called by the thread that answered the request; must
 * neither wait nor throw. Thread-safe.
 */
public interface RequestListener {
  /**
   * Faster requests are not reported: {@link Long#MAX_VALUE} to receive none. May change at any
   * time.
   */
  long leastNanos();

  /** Whether to report a request with this outcome, however fast it was. */
  default boolean wants(Opcode opcode, int errno) {
    return false;
  }

  /** Receives one request. Requests that expect no answer, such as FORGET, are not reported. */
  void answered(AnsweredRequest request);
}
